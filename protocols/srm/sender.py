"""The SRM source (Floyd et al. 1997): sends new content at a rate, and repairs on request like any other member."""

from typing import Final

from protocols.arq.messages import Data, Nack
from protocols.arq.nacked_sender import NackedSender
from protocols.arq.sender import Key
from protocols.arq.tx_object import TxObject
from protocols.machine import Address, Group, Message, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.intervals import repair_interval
from protocols.srm.member import Member
from protocols.srm.messages import Position, Repair, Request, SessionMessage, microseconds, repair_of
from protocols.srm.repair_timers import RepairTimers

__all__ = ["SrmSender"]

LAST_WAIT: Final = 8.0
"""After the last END, receivers have the longest request timer, doubled three times, to send a request."""


class SrmSender(NackedSender):
    """Repairs a requested unit after a random wait, unless another member repairs it first."""

    __slots__ = ("_distances", "_member", "_position", "_repair_timers", "_srm_config", "_unqueued")

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance, last_wait=config.timeout)
        self._srm_config = config
        self._member = Member(ports, config, node, group, is_source=True)
        self._repair_timers = RepairTimers(repair_interval(config, self._member), ports.rng)
        self._distances: dict[Key, float] = {}
        """Distances to the requesters of the units in `_repairs`, in seconds."""
        self._unqueued = 0
        """Repairs of others that came when the own one waited for the rate."""
        self._position: Position | None = None
        """What follows the last unit sent for the first time."""

    def start(self, now: float) -> None:
        """Join the group, and begin to send session messages."""
        super().start(now)
        self._member.on_activity(now)
        self._schedule()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle requests, session messages, and repairs by other members, which suppress an own repair of the unit."""
        if isinstance(message, SessionMessage):
            self._member.on_session(message, now)
            return
        if isinstance(message, (Data, Nack)):
            self._member.on_activity(now)
        if isinstance(message, Nack):
            self._member.peers.requested(message.node)
        if isinstance(message, Data) and message.sender == self._node and message.instance == self._instance:
            self._on_repair(message, now)
        else:
            super().receive(message, source, to, now)
        self._schedule()

    def counts(self) -> dict[str, int]:
        """Return what was sent, the NACKs received, and the repairs left to other members."""
        return {
            **super().counts(),
            "repairs_suppressed": self._repair_timers.suppressed + self._unqueued,
            "sessions_sent": self._member.sent,
            "sessions_heard": self._member.heard,
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the members that are remembered."""
        return {"members": (len(self._member.peers), self._srm_config.peers)}

    def _on_repair(self, message: Data, now: float) -> None:
        key = (message.object_id, message.unit)
        if key in self._repairs:
            del self._repairs[key]
            self._distances.pop(key, None)
            self._unqueued += 1
        reported = message.distance * 1e-6 if isinstance(message, Repair) else 0.0
        unit = (self._node, *key)
        if not self._repair_timers.on_repair(unit, reported, now):
            self._repair_timers.hold(unit, self._srm_config.distance, now)

    def _on_request(self, key: Key, nack: Nack, now: float) -> None:
        """Start the repair timer by the distance to the requester: the measured one, or else that which the request states."""
        if key in self._repairs:
            return
        stated = nack.distance * 1e-6 if isinstance(nack, Request) else 0.0
        distance = self._member.peers.distance(nack.node) or stated or self._srm_config.distance
        self._repair_timers.on_request((self._node, *key), distance, now)

    def _on_sent(self, key: Key, repair: bool, now: float) -> None:
        super()._on_sent(key, repair, now)
        self._member.on_activity(now)
        if not repair:
            self._position = (self._node, self._instance, key[0], key[1] + 1)

    def _on_timers(self, now: float) -> None:
        for (_, *unit), distance in self._repair_timers.take_due(now):
            key = (unit[0], unit[1])
            self._repairs[key] = None
            self._distances[key] = distance
        if self._member.due <= now and not self._blocked:
            self._blocked = self._member.wake([self._position] if self._position else [], now)

    def _on_idle(self, now: float) -> Message | None:
        config = self._srm_config
        farthest = self._member.peers.farthest() or config.distance
        self._last_wait = config.timeout + LAST_WAIT * farthest * (config.c1 + config.c2)
        return super()._on_idle(now)

    def _next_timer(self) -> float:
        return min(super()._next_timer(), self._member.due)

    def _first_repair_at(self) -> float:
        return self._repair_timers.due

    def _read(self, item: TxObject, unit: int, repair: bool) -> Data | None:
        message = super()._read(item, unit, repair)
        distance = self._distances.pop((item.object_id, unit), None)
        return repair_of(message, microseconds(distance)) if message is not None and repair else message
