"""The bursts of a sender that repeats units on request: the next new units of content without bytes."""

from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

from protocols.arq.config import AConfig
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.messages import Data
from protocols.arq.wire import DATA_OVERHEAD
from protocols.fast.lookahead import Burst
from protocols.machine import Group

__all__ = ["BurstSender", "NewUnits", "UnitBursts"]

SHORTEST: Final = 8
LONGEST: Final = 256
"""Units of the shortest and the longest burst planned."""
PAUSE: Final = 16
"""Units sent without a burst after one that was cut to less than half of the shortest: to plan costs more than it saves."""


class BurstSender(Protocol):
    """The sender of bursts, as they see it."""

    def commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more units, the last at `last` seconds; the next is due at `clear`."""

    def _due(self, when: float) -> None:
        """Move the deadline."""

    def _schedule(self) -> None:
        """Set the deadline."""


class NewUnits(Burst):
    """Units in the middle of one object, from a position on."""

    __slots__ = ("_model", "_plan", "_positions", "committed")
    shows_losses: ClassVar[bool] = True

    def __init__(
        self,
        plan: "UnitBursts",
        start: Position,
        model: FastData,
        begin: float,
        interval: float,
        count: int,
        size: int,
        to: Group,
        until: float,
    ) -> None:
        assert model.identity is not None
        super().__init__(begin, interval, count, model.identity + start.unit - model.unit, Data.kind, size, to)
        self._plan = plan
        self._model = model
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
        return self._model.between(self.position(number), self.position(number + 1))

    def take(self, count: int, deadline: float) -> None:
        """Note that the host carries the first `count` messages."""
        self.count = count
        self._plan.take(self, deadline)

    def commit(self, sent: int, last: float, clear: float) -> None:
        """Commit the first `sent` messages."""
        count = sent - self.committed
        if count:
            self.committed = sent
            self._plan.sender.commit(count, self.position(sent), last, clear)

    def end(self) -> None:
        """Drop the messages that are not committed."""
        self._plan.end()


class UnitBursts:
    """Plans the bursts of one sender: each twice as long as what was sent of the one before."""

    __slots__ = ("_group", "_horizon", "_interval", "_next_plan", "_size", "_store", "current", "sender")

    def __init__(self, sender: BurstSender, store: FastObjectStore, config: AConfig, group: Group) -> None:
        self.sender = sender
        self._store = store
        self._group = group
        self._size = DATA_OVERHEAD + config.segment
        """Bytes of the message of a unit that is neither the first nor the last of its object."""
        self._interval = self._size / config.rate
        self._horizon = SHORTEST
        """Units to plan."""
        self._next_plan = 0
        """Number of the next message before which a burst may be planned."""
        self.current: NewUnits | None = None
        """The burst that the host carries."""

    def plan(self, begin: float, until: float) -> Sequence[Burst]:
        """Return the next new units of an object without bytes that are due from `begin` to before `until` seconds."""
        store = self._store
        start, model = store.position, store.model
        if model is None or start.sent < self._next_plan:
            return ()
        item, unit = store.waiting[-1]
        count = min(item.units - 1 - unit, self._horizon)
        if count <= 0:
            return ()
        return (NewUnits(self, start, model, begin, self._interval, count, self._size, self._group, until),)

    def take(self, burst: NewUnits, deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""
        self.current = burst
        self.sender._due(min(deadline, burst.until))

    def keep_until(self, until: float) -> None:
        """Let the burst that the host carries end at `until` seconds."""
        burst = self.current
        if burst is not None and burst.carrier is not None and until != burst.until:
            burst.until = until
            burst.carrier.shorten(until)

    def end(self) -> None:
        """Drop what was planned and not sent; the host asks again."""
        burst, self.current = self.current, None
        if burst is not None:
            sent = burst.committed
            self._horizon = min(max(2 * sent, SHORTEST), LONGEST)
            if 2 * sent < SHORTEST:
                self._next_plan = self._store.position.sent + PAUSE
        self.sender._schedule()
