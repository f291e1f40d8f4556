"""Bernoulli loss of content packets only: the lossless feedback that closed forms of reliable multicast assume."""

from collections.abc import Sequence

from topologies.losses import GroupLoss, LinkLoss

__all__ = ["ContentGroupLoss", "ContentLinkLoss"]


class ContentLinkLoss(LinkLoss):
    """`LinkLoss` for content; control packets pass."""

    __slots__ = ()

    def lost(self, identity: int | None) -> bool:
        """Return whether the packet arriving now is lost. Counts its occurrence."""
        return identity is not None and super().lost(identity)


class ContentGroupLoss(GroupLoss):
    """`GroupLoss` for content; control packets pass."""

    __slots__ = ()

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Return the members that lose the packet arriving now on all links but that of `skip`, ascending."""
        return () if identity is None else super().losers(identity, skip)

    def lost(self, identity: int | None, member: int) -> bool:
        """Return whether a member loses the packet that arrives on its link only."""
        return identity is not None and super().lost(identity, member)
