"""Requests and repairs in messages of the Distributor; a unit is a segment of a publisher."""

from collections.abc import Sequence
from typing import ClassVar

from protocols.distributor.config import DistributorConfig
from protocols.distributor.messages import Nak, Request, Segment, Source
from protocols.machine import Message
from protocols.repairs import Limit, Repairs, Span, Suppression, Unit

__all__ = ["DistributorRepairs"]


class DistributorRepairs(Repairs):
    """Reads the messages. A request does not name the address of a publisher, so a stream is its id and start time."""

    discards: ClassVar[str] = "segment_dropped"

    def carried(self, message: Message) -> Unit | None:
        """See `Repairs.carried`."""
        return Unit(_stream(message.source), message.seqno) if isinstance(message, Segment) else None

    def requested(self, message: Message) -> Sequence[Span]:
        """See `Repairs.requested`."""
        if not isinstance(message, Request):
            return ()
        return (Span((message.target_id, message.target_start), message.low, message.high),)

    def refused(self, message: Message) -> Sequence[Span]:
        """See `Repairs.refused`."""
        if not isinstance(message, Nak):
            return ()
        return [Span(_stream(message.source), seqno, seqno) for seqno in message.seqnos]

    def suppression(self, config: DistributorConfig) -> Suppression:
        """See `Repairs.suppression`."""
        return Suppression(config.timeout)

    def limit(self, config: DistributorConfig) -> Limit:
        """See `Repairs.limit`."""
        return Limit(config.nagging_window, config.nagging_check, config.nagging_max)


def _stream(source: Source) -> tuple[int, int]:
    return source.sender_id, source.start
