"""Subscribers with a defect in what they know of a publisher's segments."""

from collections.abc import Sequence

from protocols.distributor.messages import Segment
from protocols.distributor.publisher_state import LargeUpdate, PublisherState
from protocols.distributor.requests import Range
from protocols.distributor.serial import unwrap
from protocols.distributor.subscriber import DistributorSubscriber

__all__ = ["HighestGoesBackSubscriber", "ReassemblyOffsetSubscriber", "StuckGapSubscriber"]


class _HighestGoesBack(PublisherState):
    __slots__ = ()

    def receive(self, segment: Segment, now: float) -> bool:
        """Take a segment, and its number as the highest one, also when it is lower."""
        number, expected = unwrap(segment.seqno, self.highest), self.expected
        assert expected is not None
        # The requests of a gap begin anew when it is found again, and end with any copy of a segment.
        self.requests.refused(max(self.highest + 1, 1), number)
        self.requests.served(number)
        taken = super().receive(segment, now)
        if taken and number > expected:
            self.highest = number
        return taken


class HighestGoesBackSubscriber(DistributorSubscriber):
    """Requests everything again that follows a retransmission which came out of order."""

    __slots__ = ()
    state_type = _HighestGoesBack


class _ReassemblyOffset(PublisherState):
    __slots__ = ()

    def _joined(self, large: LargeUpdate) -> bytes:
        content, offset = bytearray(large.total), 0
        for part in large.parts:
            content[offset : offset + len(part)] = part
            offset = len(part)
        return bytes(content[: large.total])


class ReassemblyOffsetSubscriber(DistributorSubscriber):
    """Sets the place of a part to the length of the one before it, instead of advancing it by that."""

    __slots__ = ()
    state_type = _ReassemblyOffset


class _StuckGap(PublisherState):
    __slots__ = ()

    def give_up(self, ranges: Sequence[Range], reason: str) -> None:
        """Request these numbers no more, and neither report them nor go on after them."""


class StuckGapSubscriber(DistributorSubscriber):
    """Does not go on after a gap that can't be filled."""

    __slots__ = ()
    state_type = _StuckGap
