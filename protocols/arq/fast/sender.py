"""The sender of N1 and N2 that plans bursts: it lists beforehand what it will send if no further unit is requested."""

from collections.abc import Sequence
from itertools import chain, repeat
from math import inf

from protocols.arq.config import N1Config
from protocols.arq.fast.messages import Position
from protocols.arq.fast.repairs import RepairBursts
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.messages import Nack
from protocols.arq.nacked_sender import GatheringSender
from protocols.arq.sender import Key
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
        self._bursts = RepairBursts(self, self._linked, config, group)

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
        """Return the next new units of an object without bytes, and the repairs requested by now."""
        if self._blocked or self.ports.trace is not None:
            return ()
        return self._bursts.plan_with(chain(zip(self._repairs, repeat(-inf)), self._requested.items()), self._next_at)

    def commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Update the sender as if it had sent `count` more units; the next is due at `clear`."""
        del last
        self._linked.skip(count, position)
        self._restart_ends()
        self._data_sent += count
        self._next_at = clear
        self._backlogged = True

    def commit_repairs(self, keys: Sequence[Key], times: Sequence[float], position: Position, clear: float) -> None:
        """Update the sender as if it had repeated units at these times (seconds); the next message is due at `clear`."""
        for key, when in zip(keys, times, strict=True):
            if key in self._repairs:
                del self._repairs[key]
            else:
                del self._requested[key]
            self._on_sent(key, True, when)
        self._repairs_sent += len(keys)
        self._linked.position = position
        self._next_at = clear
        self._backlogged = True

    # -- hooks of the plain sender ---------------------------------------------------------------------------------

    def _on_request(self, key: Key, nack: Nack, now: float) -> None:
        """React to a request: bursts go on until its repair is due, unless that is among them."""
        if key in self._repairs or self._requested.get(key, inf) <= now:
            # It may have been sent by now.
            self._bursts.report()
        known = len(self._requested)
        super()._on_request(key, nack, now)
        if len(self._requested) > known:
            self._bursts.expect(self._requested[key])

    def _schedule(self) -> None:
        """Set the deadline, unless the host carries bursts; while content waits, repairs are due when the rate allows them."""
        if self._bursts.current is not None:
            return
        if self._store.waiting and not self._blocked:
            self._due(self._next_at)
        else:
            super()._schedule()
