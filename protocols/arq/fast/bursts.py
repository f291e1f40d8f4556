"""The bursts of a sender of N1 or N2: the next new units of content without bytes."""

from typing import ClassVar, Protocol

from protocols.arq.fast.messages import FastData, Position
from protocols.arq.messages import Data
from protocols.fast.lookahead import Burst
from protocols.machine import Group

__all__ = ["BurstSender", "NewUnits"]


class BurstSender(Protocol):
    """The sender of bursts, as they see it."""

    def burst_taken(self, burst: "NewUnits", deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""

    def commit(self, count: int, position: Position, clear: float) -> None:
        """Update the sender as if it had sent `count` more units; the next is due at `clear`."""

    def burst_ended(self) -> None:
        """Drop what was planned and not sent."""

    def unit_message(self, before: Position, after: Position) -> FastData:
        """Return the DATA message of the unit between two positions."""


class NewUnits(Burst):
    """Units in the middle of one object, from a position on."""

    __slots__ = ("_positions", "_sender", "committed")
    shows_losses: ClassVar[bool] = True

    def __init__(
        self,
        sender: BurstSender,
        start: Position,
        begin: float,
        interval: float,
        count: int,
        identity: int,
        size: int,
        to: Group,
        until: float,
    ) -> None:
        super().__init__(begin, interval, count, identity, Data.kind, size, to)
        self._sender = sender
        self._positions: dict[int, Position] = {0: start}
        self.committed = 0
        """Messages that the sender knows to be sent."""
        self.until = until

    def position(self, number: int) -> Position:
        """Return the position of a receiver after `number` messages: always the same object."""
        known = self._positions.get(number)
        if known is None:
            start = self._positions[0]
            known = Position(start.origin, start.object_id, start.unit + number, start.sent + number, False)
            self._positions[number] = known
        return known

    def next_visible(self, number: int) -> int:
        """Return one behind the end: without losses no message concerns anybody."""
        del number
        return self.count

    def is_deferrable(self, number: int) -> bool:
        """Return False: a receiver that lost a message requests it when it receives the next."""
        del number
        return False

    def loss(self, number: int) -> None:
        """Return None: losses are not deferred."""

    def reveals_loss_of(self, other: Burst) -> bool:
        """Return True: everything before a new unit was sent."""
        del other
        return True

    def message(self, number: int) -> FastData:
        """Return message `number`, counted from 0."""
        return self._sender.unit_message(self.position(number), self.position(number + 1))

    def take(self, count: int, deadline: float) -> None:
        """Note that the host carries the first `count` messages."""
        self.count = count
        self._sender.burst_taken(self, deadline)

    def commit(self, sent: int, last: float, clear: float) -> None:
        """Commit the first `sent` messages."""
        del last
        count = sent - self.committed
        if count:
            self.committed = sent
            self._sender.commit(count, self.position(sent), clear)

    def end(self) -> None:
        """Drop the messages that are not committed."""
        self._sender.burst_ended()
