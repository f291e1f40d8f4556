"""What a sender can promise beforehand: repairs by parity, then the next symbols of counted content, block after block."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from protocols.fast.lookahead import Burst
from protocols.norm.messages import FLAG_REPAIR, Data, Loss, Origin, TransmitPosition
from protocols.norm.tx_object import TxObject

if TYPE_CHECKING:
    from protocols.machine import Group
    from protocols.norm.sender import NormSender

__all__ = ["Flow", "Repairs", "Start", "Symbols", "plan_bursts"]


class Start:
    """Where a promise begins: the position there, how many messages were made before, and when the first is due."""

    __slots__ = ("begin", "interval", "ordinal", "origin", "position", "to")

    def __init__(
        self, position: TransmitPosition, ordinal: int, begin: float, interval: float, origin: Origin, to: "Group"
    ) -> None:
        self.position = position
        self.ordinal = ordinal
        self.begin = begin
        self.interval = interval
        self.origin = origin
        self.to = to

    def move(self, run: "Symbols") -> None:
        """To behind this run."""
        self.position = run.position(run.count)
        self.ordinal += run.count
        for _ in range(run.count):
            self.begin += self.interval


class Symbols(Burst):
    """Symbols of one object, of which `sender` is told how many were sent."""

    __slots__ = ("_noted", "_ordinal", "_positions", "_sender", "item", "key", "origin")

    def __init__(self, sender: "NormSender", item: TxObject, start: Start, count: int, identity: int) -> None:
        super().__init__(start.begin, start.interval, count, identity, Data.kind, item.packet, start.to)
        self._sender = sender
        self.item = item
        self.key = item.object_id
        self.origin = start.origin
        self._ordinal = start.ordinal
        self._noted = 0
        self._positions: dict[int, TransmitPosition] = {0: start.position}

    @abstractmethod
    def place(self, number: int) -> tuple[int, int, int]:
        """Object, block and symbol of one of them."""

    @abstractmethod
    def settle(self, count: int) -> None:
        """So many more were sent: they are not to be sent any more."""

    def take(self, count: int, deadline: float) -> None:
        """The host carries so many."""
        self.count = count
        self._sender.bursts_taken(self, deadline)

    def note(self, sent: int, last: float, clear: float) -> None:
        """So many are sent by now."""
        count = sent - self._noted
        if count:
            self._noted = sent
            self.settle(count)
            self._sender.advance(self, sent, count, last, clear)

    def end(self) -> None:
        """These are all."""
        self._sender.bursts_ended()


class Flow(Symbols):
    """Symbols of blocks of one length, from the cursor of `item` on."""

    __slots__ = ("_block", "_first", "_length")

    def __init__(self, sender: "NormSender", item: TxObject, start: Start, count: int) -> None:
        super().__init__(sender, item, start, count, item.bases[0] | (item.first + item.symbol) & 0xFFFFFFFF)
        # The item's cursor moves on while the last of them are still under way.
        self._block, self._length, self._first = item.block, item.length, item.symbol

    def place(self, number: int) -> tuple[int, int, int]:
        """Object, block and symbol of one of them."""
        blocks, symbol = divmod(self._first + number, self._length)
        return self.key, self._block + blocks, symbol

    def position(self, number: int) -> TransmitPosition:
        """Where who heard `number` of them stands: always the same object."""
        known = self._positions.get(number)
        if known is None:
            key, block, symbol = place = self.place(number)
            known = self._positions[number] = TransmitPosition(key, block, symbol, self._ordinal + number, place)
        return known

    def next_visible(self, number: int) -> int:
        """The first symbol of the next block: who lacks something of the block before begins to ask for it."""
        return number + -(self._first + number) % self._length

    def is_deferrable(self, number: int) -> bool:
        """All but the first of a block: who misses the last begins to ask with the next, as all who lack something do."""
        return (self._first + number) % self._length > 0

    def loss(self, number: int) -> Loss:
        """The symbol is missing."""
        blocks, symbol = divmod(self._first + number, self._length)
        return self.key, self._block + blocks, 1 << symbol

    def reveals_loss_of(self, other: Burst) -> bool:
        """All that comes before a fresh symbol was sent."""
        del other
        return True

    def message(self, number: int) -> Data:
        """One of them, counted from 0."""
        item, fti = self.item, self.item.fti
        key, block, symbol = self.place(number)
        before, next_state = self.position(number), self.position(number + 1)
        return Data(
            self.origin,
            self._ordinal + number & 0xFFFF,
            item.flags,
            fti.fec_id,
            key,
            block,
            symbol,
            self._length,
            fti,
            None,
            fti.segment,
            self.identity + number,
            (),
            before if symbol else None,
            before,
            next_state,
        )

    def settle(self, count: int) -> None:
        """The cursor moves behind them."""
        self.item.skip(count)
        self._sender.flowed(count)


class Repairs(Symbols):
    """Parity symbols of one block, one after another, that were asked for; who lacks something has to hear each."""

    __slots__ = ("_block", "_first")

    def __init__(self, sender: "NormSender", item: TxObject, start: Start, block: int, first: int, count: int) -> None:
        super().__init__(sender, item, start, count, item.parity_identity(block, first))
        self._block, self._first = block, first

    def place(self, number: int) -> tuple[int, int, int]:
        """Object, block and symbol of one of them."""
        return self.key, self._block, self._first + number

    def position(self, number: int) -> TransmitPosition:
        """Where who heard `number` of them stands: no symbol further, but the sender went back."""
        known = self._positions.get(number)
        if known is None:
            front = self._positions[0]
            place = self.place(number - 1)
            known = TransmitPosition(front.object_id, front.block, front.symbol, self._ordinal + number, place)
            self._positions[number] = known
        return known

    def next_visible(self, number: int) -> int:
        """Each."""
        return number

    def is_deferrable(self, number: int) -> bool:
        """All are: who misses one is not even short of anything."""
        del number
        return True

    def loss(self, number: int) -> None:
        """None but that it was lost."""

    def reveals_loss_of(self, other: Burst) -> bool:
        """A repair leaves open how far the sender has come with what is new."""
        return isinstance(other, Repairs)

    def message(self, number: int) -> Data:
        """One of them, counted from 0."""
        item, fti = self.item, self.item.fti
        before, next_state = self.position(number), self.position(number + 1)
        return Data(
            self.origin,
            self._ordinal + number & 0xFFFF,
            item.flags | FLAG_REPAIR,
            fti.fec_id,
            self.key,
            self._block,
            self._first + number,
            item.partition.length(self._block),
            fti,
            None,
            fti.segment,
            self.identity + number,
            (),
            None,
            before,
            next_state,
        )

    def settle(self, count: int) -> None:
        """They are not asked for any more."""
        for _ in range(count):
            self.item.repair_step()
        self._sender.repaired(self.item, count)


def plan_bursts(sender: "NormSender", item: TxObject, repairs: list[TxObject], start: Start, until: float) -> list[Burst]:
    """What is sent before `until`: the repairs of at most one object, and then the symbols of `item` from its cursor on.

    Nothing when there are other repairs.
    """
    runs: list[Burst] = []
    for other in repairs:
        rows = other.parity_rows() if len(repairs) == 1 and other.packet == item.packet else None
        if rows is None:
            return []
        for row in rows:
            again = Repairs(sender, other, start, *row)
            runs.append(again)
            start.move(again)
    # By a few more than the division says, which is not exact.
    count = min(item.steady(), int((until - start.begin) / start.interval) + 2)
    if item.info_due or count <= 0:
        return []
    runs.append(Flow(sender, item, start, count))
    for run in runs:
        run.until = until
    return runs
