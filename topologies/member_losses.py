"""Bernoulli losses of the links from the members of a counted group, each of which carries packets of its own."""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from protocols.rng import extend
from protocols.rng_arrays import Words
from topologies.draws import FEW, extend_all, threshold_of
from topologies.losses import CONTROL, LinkLoss

__all__ = ["MemberLosses"]

_CONTROL: Final = np.uint64(CONTROL)


class MemberLosses:
    """Equal to a `LinkLoss` for each member, in four bytes for those that send control packets only.

    Args:
        key: that of the links; a member's is `extend(key, member)`.
        count: how many members there are.
        p: loss probability, more than 0.
        loses_control: whether packets without an identity are lost, too.
    """

    __slots__ = ("_controls", "_key", "_links", "_loses_control", "_p")

    def __init__(self, key: int, count: int, p: float, *, loses_control: bool = True) -> None:
        self._key = key
        self._p = p
        self._loses_control = loses_control
        # How many control packets each link carried.
        self._controls = array("I", bytes(4 * count))
        # What decides on packets with an identity, of members that sent any.
        self._links: dict[int, LinkLoss] = {}

    def link(self, member: int) -> LinkLoss:
        """Return what decides on packets with an identity on one link, always the same object."""
        loss = self._links.get(member)
        if loss is None:
            loss = self._links[member] = LinkLoss(extend(self._key, member), self._p)
        return loss

    def lost(self, identity: int | None, member: int) -> bool:
        """Return whether the packet arriving now is lost. Counts its occurrence."""
        if identity is not None:
            return self.link(member).lost(identity)
        if not self._loses_control:
            return False
        self._controls[member] = ordinal = self._controls[member] + 1
        return extend(extend(extend(self._key, member), CONTROL), ordinal) >= threshold_of(self._p).passing

    def lost_controls(self, members: Sequence[int]) -> list[int]:
        """Return the places in `members` of those that lose a control packet which each of them sends. Counts them."""
        if not self._loses_control or len(members) < FEW:
            return [place for place, member in enumerate(members) if self.lost(None, member)]
        at = np.array(members, np.int64)
        counts = np.frombuffer(self._controls, np.uint32)
        counts[at] += 1
        keys = extend_all(np.full(len(at), self._key, np.uint64), at.astype(np.uint64))
        ordinals: Words = counts[at].astype(np.uint64)
        drawn = extend_all(extend_all(keys, _CONTROL), ordinals)
        places: list[int] = (drawn >= np.uint64(threshold_of(self._p).passing)).nonzero()[0].tolist()
        return places
