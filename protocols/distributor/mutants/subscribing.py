"""Subscribers with a defect in how they request, in how they watch themselves, and in how they tell publishers apart."""

from protocols.distributor.messages import Heartbeat, Nak, Segment, Source
from protocols.distributor.nagging import NaggingMonitor
from protocols.distributor.publisher_state import PublisherState
from protocols.distributor.requests import Requests
from protocols.distributor.serial import on_wire, unwrap
from protocols.distributor.subscriber import DistributorSubscriber, Key

__all__ = ["CrosstalkSubscriber", "DeadMonitorSubscriber", "IdentitySumSubscriber", "UnsuppressedSubscriber"]


class _Unsuppressed(Requests):
    __slots__ = ()

    def heard(self, low: int, high: int, now: float) -> None:
        """Do nothing about the request of another subscriber."""


class UnsuppressedSubscriber(DistributorSubscriber):
    """Requests what it misses even if another subscriber has just requested it."""

    __slots__ = ()
    requests_type = _Unsuppressed


class _DeadMonitor(NaggingMonitor):
    __slots__ = ()

    def count(self) -> None:
        """Do not count a request."""


class DeadMonitorSubscriber(DistributorSubscriber):
    """Has a nagging monitor that sees no requests."""

    __slots__ = ()
    monitor_type = _DeadMonitor


class CrosstalkSubscriber(DistributorSubscriber):
    """Looks at the number of a retransmission or of a NAK, and not at its publisher."""

    __slots__ = ()

    def _take(self, reception: PublisherState, message: Segment | Heartbeat, now: float) -> None:
        super()._take(reception, message, now)
        if isinstance(message, Segment) and message.is_retransmission:
            for other in list(self._asking.values()):
                other.requests.served(unwrap(message.seqno, other.highest))
                self._note_requests(other)

    def _take_refusal(self, message: Nak, now: float) -> None:
        super()._take_refusal(message, now)
        for other in list(self._asking.values()):
            other.refuse(message.seqnos)
            self._note_requests(other)


class IdentitySumSubscriber(DistributorSubscriber):
    """Takes publishers for one whose ids and start times have the same sum."""

    __slots__ = ()

    def _key_of(self, source: Source) -> Key:
        return (on_wire(source.sender_id + source.start),)
