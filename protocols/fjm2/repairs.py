"""Requests and repairs of FJM2 in messages of NORM without FEC; a unit is a source symbol."""

from collections.abc import Collection, Sequence
from math import inf
from typing import ClassVar, Final

from protocols.fjm2.config import Fjm2Config
from protocols.machine import Message
from protocols.norm.messages import FLAG_STREAM, Data, Nack
from protocols.norm.requests import FORM_RANGES, LEVEL_BLOCK, LEVEL_OBJECT, LEVEL_SEGMENT, Item, Request
from protocols.repairs import Repairs, Span, Suppression, Unit

__all__ = ["Fjm2Repairs"]

_SYMBOLS: Final = 1 << 16
"""Symbols that a block may have."""
_BLOCKS: Final = 1 << 32
"""Blocks that an object may have."""


class Fjm2Repairs(Repairs):
    """Reads the messages. The symbols of an object have consecutive numbers with gaps between the blocks.

    With FEC a receiver requests parity by count and not by name, and the symbols of streams are numbered anew: neither is read.
    """

    discards: ClassVar[str] = "pool_exhausted"
    gathers: ClassVar[str] = "repair_aggregation"

    def carried(self, message: Message) -> Unit | None:
        """See `Repairs.carried`."""
        if not isinstance(message, Data) or message.fec_id or message.flags & FLAG_STREAM:
            return None
        origin = message.origin
        return Unit((origin.source_id, origin.instance_id), _number(message.object_id, message.block, message.symbol))

    def requested(self, message: Message) -> Sequence[Span]:
        """See `Repairs.requested`."""
        if not isinstance(message, Nack):
            return ()
        stream = message.sender_id, message.instance_id
        return [Span(stream, *ends) for request in message.requests for ends in _spans(request)]

    def suppression(self, config: Fjm2Config) -> Suppression:
        """See `Repairs.suppression`. Requests are compared in a back-off only (RFC 5740 5.3)."""
        return Suppression(inf, whole=True, begins="nack_backoff", resumes="nack_resumed")

    def unchecked(self, config: Fjm2Config) -> Collection[str]:
        """See `Repairs.unchecked`. A sender ignores what it is asked for again while it repairs it (RFC 5740 5.4)."""
        return ("answered", "merged") if config.repair == "immediate" else ("answered",)


def _number(object_id: int, block: int, symbol: int) -> int:
    return (object_id * _BLOCKS + block) * _SYMBOLS + symbol


def _spans(request: Request) -> list[tuple[int, int]]:
    """Return the first and last numbers of what a request names."""
    items = request.items
    pairs = zip(items[::2], items[1::2], strict=False) if request.form == FORM_RANGES else zip(items, items, strict=True)
    return [(_ends(request.level, low)[0], _ends(request.level, high)[1]) for low, high in pairs if _is_read(request, low)]


def _is_read(request: Request, item: Item) -> bool:
    return not item.fec_id and bool(request.level & (LEVEL_SEGMENT | LEVEL_BLOCK | LEVEL_OBJECT))


def _ends(level: int, item: Item) -> tuple[int, int]:
    """Return the first and the last number of a symbol, a block or an object."""
    if level & LEVEL_SEGMENT:
        number = _number(*item[1:4])
        return number, number
    if level & LEVEL_BLOCK:
        return _number(item.object_id, item.block, 0), _number(item.object_id, item.block, _SYMBOLS - 1)
    return _number(item.object_id, 0, 0), _number(item.object_id, _BLOCKS - 1, _SYMBOLS - 1)
