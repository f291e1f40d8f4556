"""The symbols in the middle of a block of counted content, which a sender can promise beforehand."""

from typing import TYPE_CHECKING

from protocols.foresight import Run
from protocols.norm.chain import Chain
from protocols.norm.messages import Data, Position
from protocols.norm.outgoing import Outgoing

if TYPE_CHECKING:
    from protocols.machine import Group
    from protocols.norm.sender import NormSender

__all__ = ["Flow"]


class Flow(Run):
    """Symbols of one block, from the cursor of `item` on; `sender` is told when they are over."""

    __slots__ = ("_item", "_length", "_ordinal", "_positions", "_sender", "block", "first", "key", "origin")

    def __init__(
        self, sender: "NormSender", chain: Chain, item: Outgoing, begin: float, interval: float, count: int, to: "Group"
    ) -> None:
        identity = item.bases[0] | (item.first + item.symbol) & 0xFFFFFFFF
        super().__init__(begin, interval, count, identity, Data.kind, item.packet, to)
        self._sender = sender
        self._item = item
        self.key = item.object_id
        # The item's cursor moves on while the last of them are still under way.
        self.block, self._length = item.block, item.length
        self.origin = chain.origin
        self._ordinal = chain.ordinal
        self.first = item.symbol
        self._positions: dict[int, Position | None] = {0: chain.position}

    def position(self, number: int) -> Position:
        """Where who heard `number` of them stands: always the same object."""
        known = self._positions.get(number)
        if known is None:
            place = (self._item.object_id, self.block, self.first + number)
            known = self._positions[number] = Position(*place, self._ordinal + number, place)
        return known

    def message(self, number: int) -> Data:
        """One of them, counted from 0."""
        item, fti = self._item, self._item.fti
        sequence, symbol = self._ordinal + number & 0xFFFF, self.first + number
        name = (fti.fec_id, item.object_id, self.block, symbol, self._length, fti)
        before, after = self.position(number), self.position(number + 1)
        identity = self.identity + number
        return Data(self.origin, sequence, item.flags, *name, None, fti.segment, identity, (), before, before, after)

    def take(self, count: int, deadline: float) -> None:
        """The host carries so many."""
        self.count = count
        self._sender.foreseen(deadline)

    def end(self, sent: int, last: float, clear: float) -> None:
        """So many were sent."""
        self._sender.advance(self._item, self.position(sent), sent, last, clear)
