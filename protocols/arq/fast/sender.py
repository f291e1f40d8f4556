"""The sender of N1 and N2 that plans bursts: it lists beforehand what it will send if no NACK arrives."""

from collections.abc import Sequence
from math import inf
from typing import Final

from protocols.arq.config import N1Config
from protocols.arq.fast.bursts import NewUnits
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.messages import Ack, Nack, identity_of
from protocols.arq.nacked_sender import GatheringSender
from protocols.arq.tx_object import ObjectStore
from protocols.arq.wire import DATA_OVERHEAD
from protocols.fast.contract import FastMachine, OwnState
from protocols.fast.lookahead import Burst
from protocols.machine import Address, Group, Message, Ports
from protocols.snapshot import Snapshot

__all__ = ["FastGatheringSender"]

SHORTEST: Final = 8
LONGEST: Final = 256
"""Units of the shortest and the longest burst planned."""
PAUSE: Final = 16
"""Units sent without a burst after one that was cut to less than half of the shortest: to plan costs more than it saves."""


class FastGatheringSender(GatheringSender, FastMachine):
    """A `GatheringSender` whose messages are linked, and whose next messages a host can ask for."""

    plans_bursts = True

    __slots__ = ("_burst", "_horizon", "_linked", "_next_plan", "_unit_size", "fast_state")
    _linked: FastObjectStore

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()
        self._burst: NewUnits | None = None
        self._horizon = SHORTEST
        """Units to plan: twice as many as were sent of the last burst."""
        self._next_plan = 0
        """Number of the next message before which a burst may be planned."""
        self._unit_size = DATA_OVERHEAD + config.segment
        """Bytes of the message of a unit that is neither the first nor the last of its object."""

    def _make_store(self) -> ObjectStore:
        self._linked = FastObjectStore(self._config, self._node, self._instance)
        return self._linked

    def counts(self) -> dict[str, int]:
        """Return what was sent, and the NACKs received."""
        self.leave_lockstep()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the object that is being sent."""
        self.leave_lockstep()
        return super().snapshot(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle feedback; a NACK ends a burst where its repair is due."""
        burst = self._burst
        if burst is None or burst.carrier is None or not isinstance(message, (Ack, Nack)):
            super().receive(message, source, to, now)
        elif message.sender == self._node and message.instance == self._instance:
            self._on_feedback(message, now)
            if self._requested and self._first_repair_at() < burst.until:
                burst.until = self._first_repair_at()
                burst.carrier.shorten(burst.until)

    # -- bursts ----------------------------------------------------------------------------------------------------

    def plan_bursts(self) -> Sequence[Burst]:
        """Return the next new units of an object without bytes, if these are due before any repair."""
        store, begin = self._linked, self._next_at
        if store.position.sent < self._next_plan or self._repairs or not store.waiting or self._blocked:
            return ()
        if self.ports.trace is not None or self.deadline != begin:
            return ()
        item, unit = store.waiting[-1]
        start = store.position
        count = min(item.units - 1 - unit, self._horizon)
        if not unit or count <= 0 or start.unit != unit or start.object_id != item.object_id or not store.has_no_bytes:
            return ()
        until = self._first_repair_at() if self._requested else inf
        size, identity = self._unit_size, identity_of(self._node, item.object_id, unit)
        return (NewUnits(self, start, begin, size / self._config.rate, count, identity, size, self._group, until),)

    def unit_message(self, before: Position, after: Position) -> FastData:
        """Return the DATA message of the unit between two positions."""
        return self._linked.linked(before, after, self._config.segment)

    def burst_taken(self, burst: NewUnits, deadline: float) -> None:
        """Note that the host carries a burst, whose next message would be due at `deadline`."""
        self._burst = burst
        self._due(min(deadline, self._first_repair_at()) if self._requested else deadline)

    def commit(self, count: int, position: Position, clear: float) -> None:
        """Update the sender as if it had sent `count` more units; the next is due at `clear`."""
        self._linked.skip(count, position)
        self._restart_ends()
        self._data_sent += count
        self._next_at = clear
        self._backlogged = True

    def burst_ended(self) -> None:
        """Drop what was planned and not sent; the host asks again."""
        burst, self._burst = self._burst, None
        if burst is not None:
            sent = burst.committed
            self._horizon = min(max(2 * sent, SHORTEST), LONGEST)
            if 2 * sent < SHORTEST:
                self._next_plan = self._linked.position.sent + PAUSE
        self._schedule()
