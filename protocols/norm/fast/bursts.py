"""The bursts of a NORM sender: repairs, then the next new symbols of content without bytes, block after block."""

from abc import abstractmethod
from collections.abc import Hashable
from typing import Final, Protocol

from protocols.fast.lookahead import Burst
from protocols.machine import Group
from protocols.norm.fast.messages import FastData, Loss
from protocols.norm.fast.tx_object import FastTxObject
from protocols.norm.messages import FLAG_REPAIR, Data, Origin
from protocols.norm.position import Point, TransmitPosition

__all__ = ["BurstSender", "NewSymbols", "ParityRow", "Repairs", "Repeats", "Start", "Symbols", "plan_bursts"]


MOST_REPEATS: Final = 32
"""About the most repeats in a burst: feedback often ends one early, and its losses are drawn in vain then."""


class BurstSender(Protocol):
    """The sender of bursts, as they see it."""

    def burst_taken(self, burst: Burst, deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""

    def commit(self, burst: "Symbols", sent: int, count: int, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more messages, `sent` of the burst by now."""

    def commit_new(self, count: int) -> None:
        """Count so many new symbols of a burst."""

    def commit_repairs(self, item: FastTxObject, count: int, parity: int) -> None:
        """Count so many repairs of an object in a burst, and how many of them are parity."""

    def burst_ended(self) -> None:
        """Drop what was planned and not sent."""


class Start:
    """Where a burst begins: the position, the number of messages made before, and when the first is due (seconds)."""

    __slots__ = ("begin", "interval", "ordinal", "origin", "position", "to")

    def __init__(
        self, position: TransmitPosition, ordinal: int, begin: float, interval: float, origin: Origin, to: Group
    ) -> None:
        self.position = position
        self.ordinal = ordinal
        self.begin = begin
        self.interval = interval
        self.origin = origin
        self.to = to

    def most_before(self, until: float) -> int:
        """Return about how many messages are due before `until`, some more rather than fewer: the quotient is not exact."""
        return int((until - self.begin) / self.interval) + 2

    def move(self, burst: "Symbols") -> None:
        """Move behind a burst."""
        self.position = burst.position(burst.count)
        self.ordinal += burst.count
        for _ in range(burst.count):
            self.begin += self.interval


class Symbols(Burst):
    """Symbols of one object."""

    __slots__ = ("_committed", "_ordinal", "_positions", "_sender", "item", "key", "origin")

    def __init__(self, sender: BurstSender, item: FastTxObject, start: Start, count: int, identity: int) -> None:
        super().__init__(start.begin, start.interval, count, identity, Data.kind, item.packet, start.to)
        self._sender = sender
        self.item = item
        self.key = item.object_id
        self.origin = start.origin
        self._ordinal = start.ordinal
        self._committed = 0
        self._positions: dict[int, TransmitPosition] = {0: start.position}

    @abstractmethod
    def point(self, number: int) -> Point:
        """Return object, block and symbol of message `number`."""

    @abstractmethod
    def remove(self, count: int) -> None:
        """Remove the next `count` messages from what is to be sent."""

    def take(self, count: int, deadline: float) -> None:
        """Note that the host carries the first `count` messages."""
        self.count = count
        self._sender.burst_taken(self, deadline)

    def commit(self, sent: int, last: float, clear: float) -> None:
        """Commit the first `sent` messages."""
        count = sent - self._committed
        if count:
            self._committed = sent
            self.remove(count)
            self._sender.commit(self, sent, count, last, clear)

    def end(self) -> None:
        """Drop the messages that are not committed."""
        self._sender.burst_ended()

    def _data(self, number: int, flags: int, identity: int) -> FastData:
        """Return the NORM_DATA of message `number`, with the positions before and after it."""
        fti = self.item.fti
        key, block, symbol = self.point(number)
        length = fti.partition.length(block)
        ordinal = self._ordinal + number & 0xFFFF
        message = FastData(
            self.origin, ordinal, flags, fti.fec_id, key, block, symbol, length, fti, None, fti.segment, identity
        )
        message.expects_if_complete, message.next_state = self.position(number), self.position(number + 1)
        return message


class NewSymbols(Symbols):
    """New symbols of blocks of one length, from the cursor of `item` on."""

    __slots__ = ("_block", "_first", "_length")

    def __init__(self, sender: BurstSender, item: FastTxObject, start: Start, count: int) -> None:
        super().__init__(sender, item, start, count, item.bases[0] | (item.first + item.symbol) & 0xFFFFFFFF)
        self.is_new, self.is_indexed = True, not item.fti.is_coded
        # The item's cursor moves on while the last of them are still in flight.
        self._block, self._length, self._first = item.block, item.length, item.symbol

    def point(self, number: int) -> Point:
        """Return object, block and symbol of message `number`."""
        blocks, symbol = divmod(self._first + number, self._length)
        return self.key, self._block + blocks, symbol

    def position(self, number: int) -> TransmitPosition:
        """Return the position of a receiver after `number` messages: always the same object."""
        known = self._positions.get(number)
        if known is None:
            # As `point`, without a call.
            blocks, symbol = divmod(self._first + number, self._length)
            key, block = self.key, self._block + blocks
            known = TransmitPosition(key, block, symbol, self._ordinal + number, (key, block, symbol))
            self._positions[number] = known
        return known

    def next_visible(self, number: int) -> int:
        """Return the first symbol of the next block: with it incomplete receivers begin a NACK process."""
        return number + -(self._first + number) % self._length

    def is_deferrable(self, number: int) -> bool:
        """Return whether it is not the first symbol of a block, which begins the NACK process of incomplete receivers."""
        return (self._first + number) % self._length > 0

    def loss(self, number: int) -> Loss:
        """Return the missing symbol."""
        blocks, symbol = divmod(self._first + number, self._length)
        return self.key, self._block + blocks, 1 << symbol

    def lacked(self, number: int) -> tuple[Hashable, int]:
        """Return the block, and the symbol as a bit mask."""
        blocks, symbol = divmod(self._first + number, self._length)
        return (self.key, self._block + blocks), 1 << symbol

    def reveals_loss_of(self, other: Burst) -> bool:
        """Return True: everything before a new symbol was sent."""
        del other
        return True

    def message(self, number: int) -> FastData:
        """Return message `number`, counted from 0."""
        message = self._data(number, self.item.flags, self.identity + number)
        message.expects = message.expects_if_complete if message.symbol else None
        message.redundant = False
        return message

    def remove(self, count: int) -> None:
        """Move the cursor behind them."""
        self.item.skip(count)
        self._sender.commit_new(count)


class Repairs(Symbols):
    """Requested symbols, one after another; each concerns incomplete receivers."""

    __slots__ = ()

    def position(self, number: int) -> TransmitPosition:
        """Return the position of a receiver after `number` messages: the same next new symbol, another transmit point."""
        known = self._positions.get(number)
        if known is None:
            first = self._positions[0]
            known = TransmitPosition(first.object_id, first.block, first.symbol, self._ordinal + number, self.point(number - 1))
            self._positions[number] = known
        return known

    def next_visible(self, number: int) -> int:
        """Return `number`: each concerns the incomplete receivers."""
        return number

    def is_deferrable(self, number: int) -> bool:
        """Return True: a receiver that loses a repair is not missing anything new."""
        del number
        return True

    def loss(self, number: int) -> None:
        """Return None: nothing but the number of losses changes."""

    def reveals_loss_of(self, other: Burst) -> bool:
        """Return whether the other burst has repairs, too: a repair does not show which new symbols were sent."""
        return isinstance(other, Repairs)

    def message(self, number: int) -> FastData:
        """Return message `number`, counted from 0."""
        message = self._data(number, self.item.flags | FLAG_REPAIR, self.identity_of(number))
        message.expects, message.redundant = None, True
        return message

    def remove(self, count: int) -> None:
        """Remove them from the object's repairs."""
        for _ in range(count):
            self.item.repair_step()
        self._sender.commit_repairs(self.item, count, self.parity_among(count))

    @abstractmethod
    def parity_among(self, count: int) -> int:
        """Return how many of the `count` messages committed last are parity."""


class ParityRow(Repairs):
    """Parity symbols of one block that follow each other and were never sent."""

    __slots__ = ("_block", "_first")

    def __init__(self, sender: BurstSender, item: FastTxObject, start: Start, block: int, first: int, count: int) -> None:
        super().__init__(sender, item, start, count, item.parity_identity(block, first))
        self._block, self._first = block, first

    def point(self, number: int) -> Point:
        """Return object, block and symbol of message `number`."""
        return self.key, self._block, self._first + number

    def parity_among(self, count: int) -> int:
        """Return all of them."""
        return count


class Repeats(Repairs):
    """Requested symbols of which some were sent before: `steps` are their (block, symbol) in the order of sending."""

    __slots__ = ("_identities", "_steps")

    def __init__(self, sender: BurstSender, item: FastTxObject, start: Start, steps: list[tuple[int, int]]) -> None:
        super().__init__(sender, item, start, len(steps), 0)
        self.is_repeated = True
        self._steps = steps
        self._identities = item.identities(steps)

    def point(self, number: int) -> Point:
        """Return object, block and symbol of message `number`."""
        return self.key, *self._steps[number]

    def parity_among(self, count: int) -> int:
        """Return how many of the `count` messages committed last are parity."""
        length, steps = self.item.partition.length, self._steps[self._committed - count : self._committed]
        return sum([symbol >= length(block) for block, symbol in steps])

    def identity_of(self, number: int) -> int:
        """Return the identity of message `number`."""
        return self._identities[number]


def plan_bursts(
    sender: BurstSender, item: FastTxObject | None, repairs: list[FastTxObject], start: Start, until: float
) -> list[Burst]:
    """Return what is sent before `until`: the repairs of at most one object, then the symbols of `item` from its cursor on.

    Nothing when there are other repairs.
    """
    bursts: list[Symbols] = []
    if repairs:
        bursts = _repair_bursts(sender, repairs[0], start, until) if len(repairs) == 1 else []
        if not bursts or (item is not None and item.packet != repairs[0].packet):
            return []
    planned = sum([burst.count for burst in bursts])
    if item is not None and planned == sum([mask.bit_count() for each in repairs for mask in each.repairs.values()]):
        count = min(item.steady(), start.most_before(until))
        if count > 0 and not item.info_due:
            bursts.append(NewSymbols(sender, item, start, count))
    for each in bursts:
        each.until = until
    return [*bursts]


def _repair_bursts(sender: BurstSender, item: FastTxObject, start: Start, until: float) -> list[Symbols]:
    """Return the repairs of an object, and move `start` behind them; nothing if they are not simple."""
    rows = item.parity_rows()
    found: list[Symbols] = []
    if rows is None:
        steps = item.repair_steps(min(start.most_before(until), MOST_REPEATS))
        if steps:
            found.append(Repeats(sender, item, start, steps))
            start.move(found[0])
    for row in rows or ():
        found.append(ParityRow(sender, item, start, *row))
        start.move(found[-1])
    return found
