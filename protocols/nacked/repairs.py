"""Requests and repairs in the packets of bus and FJM; a unit is a packet of a publisher."""

from collections.abc import Sequence

from protocols.machine import Message
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Data, Nack, Status
from protocols.repairs import Repairs, Span, Suppression, Unit

__all__ = ["NackedRepairs"]


class NackedRepairs(Repairs):
    """Reads the packets. They do not name their group: the topics of an FJM publisher, each numbered from 0, are one stream."""

    def carried(self, message: Message) -> Unit | None:
        """See `Repairs.carried`."""
        return Unit(message.origin, message.sequence) if isinstance(message, Data) else None

    def announced(self, message: Message) -> Unit | None:
        """See `Repairs.announced`."""
        return Unit(message.origin, message.last) if isinstance(message, Status) else None

    def requested(self, message: Message) -> Sequence[Span]:
        """See `Repairs.requested`."""
        return [Span(message.origin, *missing) for missing in message.missing] if isinstance(message, Nack) else ()

    def refused(self, message: Message) -> Sequence[Span]:
        """See `Repairs.refused`."""
        return (Span(message.origin, 0, message.first - 1),) if isinstance(message, Status) else ()

    def suppression(self, config: NackedConfig) -> Suppression:
        """See `Repairs.suppression`."""
        return Suppression(config.holdoff, whole=True)
