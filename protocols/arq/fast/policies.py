"""Repair policies of fast receivers."""

from protocols.arq.policies import SuppressedNackPolicy

__all__ = ["FastSuppressedNackPolicy"]


class FastSuppressedNackPolicy(SuppressedNackPolicy):
    """N2 in a lockstep group, which delivers most NACKs of others by counting them."""

    __slots__ = ()

    def count_overheard(self, count: int) -> None:
        """Count NACKs of others for units that are not missing here."""
        self._nacks_heard += count
