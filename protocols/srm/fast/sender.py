"""The SRM source for the fast engine."""

from math import inf

from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.tx_object import ObjectStore, TxObject
from protocols.arq.wire import DATA_OVERHEAD
from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Group, Packet, Ports
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

    def next_inner(self, segment: int) -> FastData | None:
        """Take the next new unit if it is in the middle of an object without bytes, as the one before; None for another."""
        if not self.has_no_bytes or not self.waiting:
            return None
        item, unit = self.waiting[-1]
        before = self.position
        if before.object_id != item.object_id or unit + 1 >= item.units or not self.is_steady:
            return None
        after = Position(before.origin, before.object_id, unit + 1, before.sent + 1, False)
        message = self.linked(before, after, segment)
        self.skip(1, after)
        return message


class FastSrmSender(SrmSender, FastMachine):
    """An `SrmSender` whose new units are linked. It plans no bursts: its own timers come between its packets."""

    __slots__ = ("_linked", "fast_state")
    _linked: SrmObjectStore

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()

    def _make_store(self) -> ObjectStore:
        self._linked = SrmObjectStore(self._config, self._node, self._instance)
        return self._linked

    def wake(self, now: float) -> None:
        """Serve the timers, and send what the rate allows by now; with less steps if that is one unit like the one before."""
        member, timers = self._member, self._repair_timers
        is_usual = self._next_at == now < member.due < inf and now < timers.due and not self._repairs and not self._blocked
        message = self._linked.next_inner(self._config.segment) if is_usual else None
        if message is None:
            super().wake(now)
            return
        self._restart_ends()
        self._data_sent += 1
        member.active_at = now
        self._position = (self._node, self._instance, message.object_id, message.unit + 1)
        size = DATA_OVERHEAD + message.length
        self._blocked = bool(self.ports.send(Packet(message, size, self._group)))
        self._next_at = following = now + size / self._config.rate
        self._backlogged = True
        if self._blocked or following <= now:
            super().wake(now)
        else:
            self._due(min(following, member.due, timers.due))
