"""Losses of content alone: the lossless feedback that the closed forms of reliable multicast assume."""

from collections.abc import Sequence

from topologies.losses import GroupLoss, LinkLoss

__all__ = ["ContentGroupLoss", "ContentLinkLoss"]


class ContentLinkLoss(LinkLoss):
    """`LinkLoss` for content; control packets pass."""

    __slots__ = ()

    def lost(self, identity: int | None) -> bool:
        """Is the packet arriving now lost?"""
        return identity is not None and super().lost(identity)


class ContentGroupLoss(GroupLoss):
    """`GroupLoss` for content; control packets pass."""

    __slots__ = ()

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Members that lose the packet arriving now."""
        return () if identity is None else super().losers(identity, skip)

    def lost(self, identity: int | None, member: int) -> bool:
        """Does this member lose the packet that comes on its link alone?"""
        return identity is not None and super().lost(identity, member)
