"""The sender of N1 and N2 that plans bursts: it lists beforehand what it will send if no NACK arrives."""

from collections.abc import Sequence

from protocols.arq.config import N1Config
from protocols.arq.fast.bursts import UnitBursts
from protocols.arq.fast.messages import Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.nacked_sender import GatheringSender
from protocols.arq.tx_object import ObjectStore
from protocols.fast.contract import FastMachine, OwnState
from protocols.fast.lookahead import Burst
from protocols.machine import Group, Ports
from protocols.snapshot import Snapshot

__all__ = ["FastGatheringSender"]


class FastGatheringSender(GatheringSender, FastMachine):
    """A `GatheringSender` whose messages are linked, and whose next messages a host can ask for."""

    plans_bursts = True

    __slots__ = ("_bursts", "_linked", "fast_state")
    _linked: FastObjectStore

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()
        self._bursts = UnitBursts(self, self._linked, config, group)

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

    # -- bursts ----------------------------------------------------------------------------------------------------

    def plan_bursts(self) -> Sequence[Burst]:
        """Return the next new units of an object without bytes, if these are due before any repair."""
        begin = self._next_at
        if self._repairs or self._blocked or self.deadline != begin or self.ports.trace is not None:
            return ()
        return self._bursts.plan(begin, self._first_repair_at())

    def commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more units; the next is due at `clear`."""
        del last
        self._linked.skip(count, position)
        self._restart_ends()
        self._data_sent += count
        self._next_at = clear
        self._backlogged = True

    def _schedule(self) -> None:
        """Set the deadline; while the host carries a burst, end that where a repair is due."""
        if self._bursts.current is None:
            super()._schedule()
        else:
            self._bursts.keep_until(self._first_repair_at())
