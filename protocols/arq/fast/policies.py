"""Repair policies of fast receivers."""

from protocols.arq.policies import AckPolicy, SuppressedNackPolicy

__all__ = ["FastAckPolicy", "FastSuppressedNackPolicy"]


class FastAckPolicy(AckPolicy):
    """Protocol A in a lockstep group, which sends most ACKs."""

    __slots__ = ()

    def counts(self) -> dict[str, int]:
        """Return the ACKs sent: one for each DATA message received."""
        return {"acks_sent": self._session.data_received}


class FastSuppressedNackPolicy(SuppressedNackPolicy):
    """N2 in a lockstep group, which delivers most NACKs of others by counting them."""

    __slots__ = ()

    def count_overheard(self, count: int) -> None:
        """Count NACKs of others for units that are not missing here."""
        self._nacks_heard += count
