"""The next symbols of counted content, block after block, which a sender can promise beforehand."""

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
    """Symbols of blocks of one length, from the cursor of `item` on; `sender` is told when they are over."""

    __slots__ = ("_block", "_first", "_length", "_noted", "_ordinal", "_positions", "_sender", "item", "key", "origin")

    def __init__(
        self, sender: "NormSender", chain: Chain, item: Outgoing, begin: float, interval: float, count: int, to: "Group"
    ) -> None:
        identity = item.bases[0] | (item.first + item.symbol) & 0xFFFFFFFF
        super().__init__(begin, interval, count, identity, Data.kind, item.packet, to)
        self._sender = sender
        self.item = item
        self.key = item.object_id
        # The item's cursor moves on while the last of them are still under way.
        self._block, self._length, self._first = item.block, item.length, item.symbol
        self.origin = chain.origin
        self._ordinal = chain.ordinal
        self._noted = 0
        self._positions: dict[int, Position | None] = {0: chain.position}

    def place(self, number: int) -> tuple[int, int, int]:
        """Object, block and symbol of one of them."""
        blocks, symbol = divmod(self._first + number, self._length)
        return self.key, self._block + blocks, symbol

    def position(self, number: int) -> Position:
        """Where who heard `number` of them stands: always the same object."""
        known = self._positions.get(number)
        if known is None:
            place = self.place(number)
            known = self._positions[number] = Position(*place, self._ordinal + number, place)
        return known

    def turn(self, number: int) -> int:
        """The first symbol of the next block: who lacks something of the block before begins to ask for it."""
        return number + -(self._first + number) % self._length

    def is_inner(self, number: int) -> bool:
        """It is when neither it nor the next is the first or last symbol of a block."""
        return 0 < (self._first + number) % self._length < self._length - 2

    def message(self, number: int) -> Data:
        """One of them, counted from 0."""
        item, fti = self.item, self.item.fti
        key, block, symbol = self.place(number)
        name = (fti.fec_id, key, block, symbol, self._length, fti)
        before, after = self.position(number), self.position(number + 1)
        sequence, identity = self._ordinal + number & 0xFFFF, self.identity + number
        token = before if symbol else None
        return Data(self.origin, sequence, item.flags, *name, None, fti.segment, identity, (), token, before, after)

    def take(self, count: int, deadline: float) -> None:
        """The host carries so many."""
        self.count = count
        self._sender.foreseen(self, deadline)

    def note(self, sent: int, last: float, clear: float) -> None:
        """So many are sent by now."""
        count = sent - self._noted
        if count:
            self._noted = sent
            self.item.skip(count)
            self._sender.advance(self, sent, count, last, clear)

    def end(self) -> None:
        """These are all."""
        self._sender.unforeseen()
