"""The SRM receiver (Floyd et al. 1997): multicasts requests by timers that double, and repairs what others request."""

from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import ClassVar, Final

from protocols.arq.messages import Data, Nack, identity_of
from protocols.arq.receiver import ArqReceiver
from protocols.arq.repair_policy import MissingUnit, RepairPolicy, SenderAddress
from protocols.arq.sender_state import MOST_MISSING
from protocols.arq.session import Session
from protocols.machine import Address, Group, Message, Packet, Ports
from protocols.snapshot import Snapshot
from protocols.srm.config import SrmConfig
from protocols.srm.intervals import repair_interval, request_interval
from protocols.srm.member import Member
from protocols.srm.messages import Position, Repair, Request, SessionMessage, microseconds, repair_of, request_of
from protocols.srm.repair_timers import RepairTimers, key_of
from protocols.srm.unit_cache import UnitCache
from protocols.srm.wire import size_of

__all__ = ["SrmPolicy", "SrmReceiver", "SrmUnit", "srm_receiver"]

# Every member looks up the units that requests name.
_identity_of: Final = lru_cache(maxsize=1024)(identity_of)
MOST_DOUBLINGS: Final = 6
"""The request timer grows to at most 2**6 times its first value, or to that of a distance not measured yet if this is more.

Members without a measurement ignore requests for three times the configured distance after a repair: a near member would have
made all its requests meanwhile.
"""
MOST_TRIES: Final = 64
"""Requests that are counted in a timer, so that no power overflows."""
ANSWER: Final = 3.0
"""A request is not repeated for the usual repair timer and this many distances, in which request and repair travel."""


class SrmUnit(MissingUnit):
    """A missing unit with the rounds of its requests."""

    __slots__ = ("found_at", "ignore_until", "requested_from")

    def __init__(self, origin: SenderAddress, object_id: int, unit: int) -> None:
        super().__init__(origin, object_id, unit)
        self.found_at = 0.0
        """When the unit was found missing, in seconds."""
        self.ignore_until = -inf
        """Until when (seconds) requests belong to one round: they are duplicates, and double the timer no more."""
        self.requested_from: float | None = None
        """The distance to the source in seconds at the first own request; None before."""


class SrmPolicy(RepairPolicy):
    """Requests missing units from the group, and repairs from a cache of the units received last what others request."""

    __slots__ = (
        "_config",
        "_nacks",
        "_nacks_heard",
        "_nacks_repeated",
        "_repair_interval",
        "_repairs",
        "_repairs_sent",
        "_request_interval",
        "_session",
        "_suppressed",
        "cache",
        "member",
    )
    missing_type = SrmUnit
    requests: ClassVar[bool] = True
    overhears: ClassVar[bool] = True

    def __init__(self, session: Session, config: SrmConfig) -> None:
        super().__init__()
        self._session = session
        self._config = config
        self.member = Member(session.ports, config, session.node, session.group, is_source=False)
        self._request_interval = request_interval(config, self.member)
        self._repair_interval = repair_interval(config, self.member)
        self._repairs = RepairTimers(self._repair_interval, session.ports.rng)
        self.cache = UnitCache(config.cache)
        self._nacks = self._nacks_repeated = self._nacks_heard = self._suppressed = self._repairs_sent = 0

    def counts(self) -> dict[str, int]:
        """Return the requests, repairs and session messages sent, suppressed and overheard."""
        return {
            "nacks_sent": self._nacks,
            "nacks_repeated": self._nacks_repeated,
            "nacks_suppressed": self._suppressed,
            "nacks_heard": self._nacks_heard,
            "repairs_sent": self._repairs_sent,
            "repairs_suppressed": self._repairs.suppressed,
            "sessions_sent": self.member.sent,
            "sessions_heard": self.member.heard,
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the members and the packets that are remembered, with their limits."""
        return {
            "members": (len(self.member.peers), self._config.peers),
            "packets for repair": (len(self.cache), self._config.cache),
        }

    def set_deadline(self) -> None:
        """Let the policy be woken for the next repair or session message."""
        self.deadline = min(self._repairs.due, self.member.due)

    # -- requests --------------------------------------------------------------------------------------------------

    def on_missing(self, missing: MissingUnit, now: float) -> float:
        """Start the request timer."""
        self._request_interval.on_loss()
        assert isinstance(missing, SrmUnit)
        missing.found_at = now
        return _after(now, self._request_interval.draw(self.member.distance(missing.origin.node), self._session.ports.rng))

    def on_due(self, missing: MissingUnit, now: float) -> float:
        """Multicast a request, and double the request timer."""
        assert isinstance(missing, SrmUnit)
        distance = self.member.distance(missing.origin.node)
        if not missing.tries:
            self._request_interval.on_answer((now - missing.found_at) / (2.0 * distance))
            self._request_interval.on_sent()
        self._nacks += 1
        self._nacks_repeated += missing.tries > 0
        missing.tries += 1
        if missing.requested_from is None:
            missing.requested_from = distance
        repair_timer = max(self._config.d1, 2.0 * self._repair_interval.delay)
        due = self._back_off(missing, distance, (ANSWER + repair_timer) * distance, now)
        measured = microseconds(self.member.peers.distance(missing.origin.node))
        request = request_of(missing.request(self._session.node), measured)
        self._session.ports.send(Packet(request, size_of(request), self._session.group))
        return due

    def on_overheard(self, nack: Nack, missing: MissingUnit | None, now: float) -> float | None:
        """Double the timer of an own request for the unit, or start a repair timer if the unit is in the cache."""
        self._nacks_heard += 1
        self.member.peers.requested(nack.node)
        if isinstance(missing, SrmUnit):
            return self._on_request_of_another(nack, missing, now)
        cached = self.cache.get(_identity_of(nack.sender, nack.object_id, nack.unit))
        if cached is not None and cached.instance == nack.instance and cached.object_id == nack.object_id:
            distance = self.member.distance_to_requester(nack.node, nack.sender)
            self._repairs.on_request(key_of(nack.sender, nack.object_id, nack.unit), distance, now)
            self.set_deadline()
        return None

    def _on_request_of_another(self, nack: Nack, missing: SrmUnit, now: float) -> float | None:
        """Return when the own timer runs out now; None if the request is one more of the same round."""
        if now < missing.ignore_until:
            reported = nack.distance * 1e-6 if isinstance(nack, Request) else 0.0
            self._request_interval.on_duplicate(missing.requested_from, reported)
            return None
        distance = self.member.distance(nack.sender)
        if not missing.tries:
            self._request_interval.on_answer((now - missing.found_at) / (2.0 * distance))
        self._suppressed += 1
        missing.tries += 1
        return self._back_off(missing, distance, 0.0, now)

    def _back_off(self, missing: SrmUnit, distance: float, least: float, now: float) -> float:
        """Return when the doubled timer runs out, at least `least` seconds from now; ignore requests for half of its time."""
        longest = max(distance, self._config.distance) * 2.0**MOST_DOUBLINGS
        scale = min(distance * 2.0 ** min(missing.tries, MOST_TRIES), longest)
        wait = max(self._request_interval.draw(scale, self._session.ports.rng), least)
        missing.ignore_until = now + wait / 2.0
        return _after(now, wait)

    # -- repairs ---------------------------------------------------------------------------------------------------

    def on_received(self, message: Data, source: Address, is_new: bool, now: float) -> None:
        """Keep a new unit in the cache; a repair by another member suppresses an own repair of the unit."""
        if is_new:
            self.cache.put(message)
        if message.repair:
            self.on_repair(message, now)

    def on_repair(self, message: Data, now: float) -> None:
        """Let the repair by another member suppress an own repair of the unit."""
        key = key_of(message.sender, message.object_id, message.unit)
        reported = message.distance * 1e-6 if isinstance(message, Repair) else 0.0
        repairs = self._repairs
        if not repairs.on_repair(key, reported, now):
            repairs.hold(key, self.member.distance(message.sender), now)
        self.deadline = min(repairs.due, self.member.due)

    def wake(self, now: float) -> None:
        """Multicast the repairs whose timers have run out."""
        for (source, object_id, unit), distance in self._repairs.take_due(now):
            message = self.cache.get(identity_of(source, object_id, unit))
            if message is not None and message.object_id == object_id:
                self._repairs_sent += 1
                repair = repair_of(message, microseconds(distance))
                self._session.ports.send(Packet(repair, size_of(repair), self._session.group))
        self.set_deadline()


class SrmReceiver(ArqReceiver):
    """An ARQ receiver that also takes part in the session: session messages show it distances and losses."""

    __slots__ = ("_srm",)

    def __init__(self, session: Session, policy: SrmPolicy) -> None:
        super().__init__(session, policy)
        self._srm = policy

    def start(self, now: float) -> None:
        """Join the group, and begin to send session messages."""
        super().start(now)
        self._take_part(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a session message of another member, and everything else as an ARQ receiver."""
        member = self._srm.member
        if isinstance(message, SessionMessage):
            member.on_session(message, now)
            lost = self._session.data_lost
            for position in message.positions:
                self._on_position(position, now)
                if self._session.data_lost - lost > MOST_MISSING:
                    # So much is found missing by one message; the rest by later ones.
                    break
            return
        if isinstance(message, (Data, Nack)):
            if member.due == inf:
                self._take_part(now)
            member.active_at = now
        super().receive(message, source, to, now)

    def wake(self, now: float) -> None:
        """Serve the timers that have run out, and send a session message if one is due."""
        member = self._srm.member
        if member.due <= now:
            member.wake(self._positions(), now)
        super().wake(now)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the members and the packets that are remembered."""
        return self._srm.held()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each sender with the round-trip time to it, once it is measured."""
        snapshot, distances = super().snapshot(now), self._srm.member.peers
        parts = [_with_rtt(part, distances.distance(int(part.name))) for part in snapshot.only("sender")]
        others = [part for part in snapshot.parts if part.part != "sender"]
        values = {**snapshot.values, "group_size": distances.count()}
        return replace(snapshot, values=values, parts=(*parts, *others))

    def _take_part(self, now: float) -> None:
        """Begin to send session messages, or go on after a pause."""
        self._srm.member.on_activity(now)
        self._srm.set_deadline()
        self._due(self._next_timer())

    def _on_position(self, position: Position, now: float) -> None:
        """Handle a report of the position of a source; one that is not ahead of the stored position changes nothing."""
        node, instance, object_id, unit = position
        sender = self._known(node)
        if sender is not None and sender.origin.instance == instance and (object_id, unit) > sender.reached:
            sender.on_position(object_id, unit, now)
            self._due(self._next_timer())

    def _positions(self) -> list[Position]:
        known = [(sender.origin.node, sender.origin.instance, *sender.reached) for sender in self._states()]
        return [position for position in known if position[2] >= 0]


def _with_rtt(sender: Snapshot, distance: float | None) -> Snapshot:
    """Add the round-trip time to the statistics of a sender; `distance` is the one-way delay in seconds, None if unknown."""
    return sender if distance is None else replace(sender, values={**sender.values, "rtt": 2 * distance})


def srm_receiver(ports: Ports, config: SrmConfig, node: int, group: Group) -> SrmReceiver:
    """Return an SRM receiver; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return SrmReceiver(session, SrmPolicy(session, config))


def _after(now: float, wait: float) -> float:
    """Return now + wait, strictly later than now in floating point, else a timer would run out again and again."""
    return now + max(wait, 1e-9 * max(now, 1.0))
