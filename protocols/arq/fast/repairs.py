"""Bursts with repairs among the new units.

A unit is repeated some time after the first NACK for it. So a sender knows from its requests what it will send until the repair
of a unit is due that nobody has requested by now.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from math import inf
from typing import Protocol

from protocols.arq.config import AConfig
from protocols.arq.fast.bursts import BurstPlan, BurstSender, UnitBursts, Units
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.sender import Key
from protocols.fast.lookahead import Burst
from protocols.machine import Group

__all__ = ["RepairBursts", "RepairSender", "Repairs"]


class RepairSender(BurstSender, Protocol):
    """The sender of bursts with repairs, as they see it."""

    def commit_repairs(self, keys: Sequence[Key], times: Sequence[float], position: Position, clear: float) -> None:
        """Update the sender as if it had repeated units at these times (seconds); the next message is due at `clear`."""


class Repairs(Units):
    """Units of the same object that were sent before."""

    __slots__ = ("_keys", "_sender")

    def __init__(self, bursts: "RepairBursts", start: Position, model: FastData, begin: float) -> None:
        super().__init__(bursts, start, model, begin, 0, 0)
        self.is_repeated = True
        self._sender = bursts.repairer
        self._keys: list[Key] = []

    def add(self, key: Key) -> None:
        """Add a unit behind the others."""
        self._keys.append(key)
        self.count += 1

    def identity_of(self, number: int) -> int:
        """Return the identity of message `number`."""
        model = self._model
        assert model.identity is not None
        return model.identity + self._keys[number][1] - model.unit

    def next_visible(self, number: int) -> int:
        """Return `number`: each concerns the receivers that lack the unit."""
        return number

    def message(self, number: int) -> FastData:
        """Return message `number`, counted from 0."""
        return self._model.repairing(self._keys[number][1], self.position(number), self.position(number + 1))

    def _commit(self, count: int, position: Position, last: float, clear: float) -> None:
        begin = self.committed
        times = list(accumulate(repeat(self.interval, begin + count - 1), initial=self.begin))
        self._sender.commit_repairs(self._keys[begin : begin + count], times[begin:], position, clear)


class RepairBursts(UnitBursts):
    """Plans the bursts of a sender that repeats requested units."""

    __slots__ = ("repairer",)

    def __init__(self, sender: RepairSender, store: FastObjectStore, config: AConfig, group: Group) -> None:
        super().__init__(sender, store, config, group)
        self.repairer = sender

    def plan_with(self, repairs: Iterable[tuple[Key, float]], begin: float) -> Sequence[Burst]:
        """Return the next units of an object without bytes from `begin` (seconds) on, new ones and repairs.

        `repairs` are units and when each is due, in the order in which they are to be sent. The bursts end before one that is
        no unit in the middle of the object that is being sent.
        """
        plan = self._begin(begin, inf)
        if plan is None:
            return ()
        start = plan.position
        for key, due in repairs:
            if not plan.add_new(due) or key[0] != start.object_id or not 0 < key[1] < start.unit:
                return plan.bursts
            self._add_repair(plan, key)
        plan.add_new(inf)
        return plan.bursts

    def _add_repair(self, plan: BurstPlan, key: Key) -> None:
        last = plan.bursts[-1] if plan.bursts else None
        burst = last if isinstance(last, Repairs) else Repairs(self, plan.position, plan.model, plan.begin)
        burst.add(key)
        plan.add(burst, 1)

    def expect(self, repair_at: float) -> None:
        """Let the bursts end where a repair is due that is not among them."""
        self.keep_until(min(self._until, repair_at))

    def report(self) -> None:
        """Commit what was sent by now."""
        burst = self.current
        if burst is not None and burst.carrier is not None:
            burst.carrier.report()
