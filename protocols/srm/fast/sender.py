"""The SRM source that plans bursts: it lists beforehand what it will send if no request arrives."""

from collections.abc import Sequence
from math import inf

from protocols.arq.fast.bursts import UnitBursts
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.tx_object import ObjectStore, TxObject
from protocols.fast.contract import FastMachine, OwnState
from protocols.fast.lookahead import Burst
from protocols.machine import Group, Ports
from protocols.snapshot import Snapshot
from protocols.srm.config import SrmConfig
from protocols.srm.sender import SrmSender

__all__ = ["FastSrmSender", "SrmObjectStore"]


class SrmObjectStore(FastObjectStore):
    """As `FastObjectStore`; repairs are no part of the chain, because any member sends them."""

    __slots__ = ()

    def message(self, item: TxObject, unit: int, repair: bool) -> FastData:
        """Return the DATA message of a unit, linked to the one before if it is a new one. OSError when the source fails."""
        if not repair:
            return super().message(item, unit, repair)
        payload, length = self.read(item, unit)
        message = self._make(item, unit, repair, payload, length)
        assert isinstance(message, FastData)
        return message


class FastSrmSender(SrmSender, FastMachine):
    """An `SrmSender` whose new units are linked, and whose next ones a host can ask for."""

    plans_bursts = True

    __slots__ = ("_bursts", "_linked", "fast_state")
    _linked: SrmObjectStore

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()
        self._bursts = UnitBursts(self, self._linked, config, group)

    def _make_store(self) -> ObjectStore:
        self._linked = SrmObjectStore(self._config, self._node, self._instance)
        return self._linked

    def counts(self) -> dict[str, int]:
        """Return what was sent, the NACKs received, and the repairs left to other members."""
        self.leave_lockstep()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the object that is being sent."""
        self.leave_lockstep()
        return super().snapshot(now)

    # -- bursts ----------------------------------------------------------------------------------------------------

    def plan_bursts(self) -> Sequence[Burst]:
        """Return the next new units of an object without bytes, if these are due before any timer."""
        begin = self._next_at
        if self._repairs or self._blocked or self.deadline != begin or self.ports.trace is not None:
            return ()
        # After a pause, content lets session messages begin again.
        return () if self._member.due == inf else self._bursts.plan(begin, self._first_timer())

    def _first_timer(self) -> float:
        return min(self._repair_timers.due, self._member.due)

    def commit(self, count: int, position: Position, last: float, clear: float) -> None:
        """Update the source as if it had sent `count` more units, the last at `last` seconds; the next is due at `clear`."""
        self._linked.skip(count, position)
        self._restart_ends()
        self._data_sent += count
        member = self._member
        member.active_at = max(member.active_at, last)
        self._position = (self._node, self._instance, position.object_id, position.unit)
        self._next_at = clear
        self._backlogged = True

    def _schedule(self) -> None:
        """Set the deadline; while the host carries a burst, end that where a timer runs out."""
        if self._bursts.current is None:
            super()._schedule()
        else:
            self._bursts.keep_until(self._first_timer())
