"""The bursts of a sender in the middle of an object of content without bytes: the next new units."""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, repeat
from math import inf
from typing import Final, Protocol

from protocols.arq.config import AConfig
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.messages import Data
from protocols.arq.wire import DATA_OVERHEAD
from protocols.fast.lookahead import Burst
from protocols.machine import Group

__all__ = ["BurstSender", "BurstPlan", "NewUnits", "UnitBursts", "Units"]

SHORTEST: Final = 8
LONGEST: Final = 256
"""Units of the shortest and the longest bursts planned at a time."""
PAUSE: Final = 16
"""Units sent without a burst after bursts cut to less than half of the shortest: to plan costs more than it saves."""


class BurstSender(Protocol):
    """The sender of bursts, as they see it."""

    def commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more units, the last at `last` seconds; the next is due at `clear`."""

    def _due(self, when: float) -> None:
        """Move the deadline."""

    def _schedule(self) -> None:
        """Set the deadline."""


class Units(Burst):
    """Units in the middle of one object, of which `model` is one."""

    __slots__ = ("_bursts", "_model", "_positions", "committed", "step")

    def __init__(self, bursts: "UnitBursts", start: Position, model: FastData, begin: float, count: int, identity: int) -> None:
        super().__init__(begin, bursts.interval, count, identity, Data.kind, bursts.size, bursts.group)
        self._bursts = bursts
        self._model = model
        self._positions: dict[int, Position] = {0: start}
        self.committed = 0
        """Messages that the sender knows to be sent."""
        self.step = 0
        """By how many units each message advances the receivers."""

    def position(self, number: int) -> Position:
        """Return the position of a receiver after `number` messages: always the same object."""
        known = self._positions.get(number)
        if known is None:
            start = self._positions[0]
            unit, sent = start.unit + self.step * number, start.sent + number
            known = self._positions[number] = Position(start.origin, start.object_id, unit, sent, False)
        return known

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

    def take(self, count: int, deadline: float) -> None:
        """Note that the host carries the first `count` messages."""
        self.count = count
        self._bursts.take(self, deadline)

    def commit(self, sent: int, last: float, clear: float) -> None:
        """Commit the first `sent` messages."""
        count = sent - self.committed
        if count:
            self._commit(count, self.position(sent), last, clear)
            self.committed = sent
            self._bursts.committed += count

    @abstractmethod
    def _commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Commit the next `count` messages."""

    def end(self) -> None:
        """Drop the messages that are not committed."""
        self._bursts.end()


class NewUnits(Units):
    """The next new units."""

    __slots__ = ()

    def __init__(self, bursts: "UnitBursts", start: Position, model: FastData, begin: float, count: int, identity: int) -> None:
        super().__init__(bursts, start, model, begin, count, identity)
        self.is_new = self.shows_losses = True
        self.step = 1

    def next_visible(self, number: int) -> int:
        """Return one behind the end: without losses no message concerns anybody."""
        del number
        return self.count

    def message(self, number: int) -> FastData:
        """Return message `number`, counted from 0."""
        return self._model.between(self.position(number), self.position(number + 1))

    def _commit(self, count: int, position: Position, last: float, clear: float) -> None:
        self._bursts.sender.commit(count, position, last, clear)


class BurstPlan:
    """Bursts that follow each other: one message at each of some times, until these or the `left` new units are used up."""

    __slots__ = ("_bursts", "_count", "_left", "_times", "bursts", "model", "position")

    def __init__(self, bursts: "UnitBursts", position: Position, model: FastData, times: list[float], left: int) -> None:
        self._bursts = bursts
        self._times = times
        self._left = left
        self._count = 0
        self.position = position
        """Of a receiver after the messages."""
        self.model = model
        """A unit in the middle of the object."""
        self.bursts: list[Units] = []

    @property
    def begin(self) -> float:
        """When the next message is due, in seconds; there must be a time left."""
        return self._times[self._count]

    def add_new(self, until: float) -> bool:
        """Add the new units due before `until` (seconds); return whether another message may follow."""
        due = bisect_left(self._times, until, self._count) - self._count
        count = min(due, self._left)
        if count:
            identity, model = self.model.identity, self.model
            assert identity is not None
            first = identity + self.position.unit - model.unit
            self.add(NewUnits(self._bursts, self.position, model, self.begin, count, first), count)
            self._left -= count
        return count == due and self._count < len(self._times)

    def add(self, burst: Units, count: int) -> None:
        """Add a burst, or `count` more messages of the last one."""
        if not self.bursts or burst is not self.bursts[-1]:
            self.bursts.append(burst)
        self.position = burst.position(burst.count)
        self._count += count


class UnitBursts:
    """Plans the bursts of one sender: each time twice as many units as were sent of those before."""

    __slots__ = ("_horizon", "_next_plan", "_store", "_until", "committed", "current", "group", "interval", "sender", "size")

    def __init__(self, sender: BurstSender, store: FastObjectStore, config: AConfig, group: Group) -> None:
        self.sender = sender
        self._store = store
        self.group = group
        self.size = DATA_OVERHEAD + config.segment
        """Bytes of the message of a unit that is neither the first nor the last of its object."""
        self.interval = self.size / config.rate
        self._horizon = SHORTEST
        """Units to plan."""
        self._next_plan = 0
        """Number of the next message before which bursts may be planned."""
        self._until = inf
        """When the bursts end at the latest (seconds)."""
        self.committed = 0
        """Messages of the bursts planned last that the sender knows to be sent."""
        self.current: Units | None = None
        """The last of the bursts that the host carries."""

    def plan(self, begin: float, until: float) -> Sequence[Burst]:
        """Return the next new units of an object without bytes that are due from `begin` to before `until` seconds."""
        plan = self._begin(begin, until)
        if plan is None:
            return ()
        plan.add_new(until)
        return plan.bursts

    def _begin(self, begin: float, until: float) -> BurstPlan | None:
        """Return a plan without messages, from `begin` on; None if no new unit in the middle of an object is next."""
        store = self._store
        position, model = store.position, store.model
        if model is None or position.sent < self._next_plan:
            return None
        self._until, self.committed = until, 0
        times = list(accumulate(repeat(self.interval, self._horizon - 1), initial=begin))
        item, unit = store.waiting[-1]
        return BurstPlan(self, position, model, times, item.units - 1 - unit)

    def take(self, burst: Units, deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""
        self.current = burst
        self.sender._due(min(deadline, self._until))

    def keep_until(self, until: float) -> None:
        """Let the bursts that the host carries end at `until` seconds."""
        burst = self.current
        if burst is not None and burst.carrier is not None and until != self._until:
            self._until = until
            burst.carrier.shorten(until)

    def end(self) -> None:
        """Drop what was planned and not sent; the host asks again."""
        if self.current is not None:
            self.current = None
            self._horizon = min(max(2 * self.committed, SHORTEST), LONGEST)
            if 2 * self.committed < SHORTEST:
                self._next_plan = self._store.position.sent + PAUSE
        self.sender._schedule()
