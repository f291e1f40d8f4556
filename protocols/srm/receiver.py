"""The SRM receiver (Floyd et al. 1997): multicasts requests by timers that double, and repairs what others request."""

from dataclasses import replace
from math import inf
from typing import ClassVar, Final

from protocols.arq.messages import Data, Nack
from protocols.arq.receiver import ArqReceiver
from protocols.arq.repair_policy import MissingUnit, RepairPolicy
from protocols.arq.session import Session
from protocols.machine import Address, Group, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.sender import HOLD

__all__ = ["SrmPolicy", "srm_receiver"]

MOST_DOUBLINGS: Final = 6
"""The request timer grows to at most 2**6 times its first value."""
MOST_HELD: Final = 1024
"""Entries of the table of recent repairs above which the expired ones are removed."""

Key = tuple[int, int, int]
"""A unit of a sender: (sender, object id, unit)."""


class SrmPolicy(RepairPolicy):
    """Requests missing units from the group, and repairs from a cache of the units received last what others request."""

    __slots__ = (
        "_cache",
        "_config",
        "_held_until",
        "_ignore_until",
        "_nacks",
        "_nacks_heard",
        "_nacks_repeated",
        "_repair_timers",
        "_repairs_sent",
        "_repairs_suppressed",
        "_session",
        "_suppressed",
    )
    overhears: ClassVar[bool] = True

    def __init__(self, session: Session, config: SrmConfig) -> None:
        super().__init__()
        self._session = session
        self._config = config
        self._ignore_until: dict[Key, float] = {}
        """Until when (seconds) requests for a missing unit belong to one round and do not double its timer again."""
        self._cache: dict[Key, Data] = {}
        self._repair_timers: dict[Key, float] = {}
        """Requested units that this member will repair, and when, in seconds."""
        self._held_until: dict[Key, float] = {}
        """Until when (seconds) requests for a repaired unit are ignored."""
        self._nacks = self._nacks_repeated = self._nacks_heard = self._suppressed = 0
        self._repairs_sent = self._repairs_suppressed = 0

    def counts(self) -> dict[str, int]:
        """Return the requests and repairs sent, suppressed and overheard."""
        return {
            "nacks_sent": self._nacks,
            "nacks_repeated": self._nacks_repeated,
            "nacks_suppressed": self._suppressed,
            "nacks_heard": self._nacks_heard,
            "repairs_sent": self._repairs_sent,
            "repairs_suppressed": self._repairs_suppressed,
        }

    # -- requests --------------------------------------------------------------------------------------------------

    def on_missing(self, missing: MissingUnit, now: float) -> float:
        """Start the request timer."""
        return self._request_time(missing, now)

    def on_due(self, missing: MissingUnit, now: float) -> float:
        """Multicast a request, and double the request timer."""
        self._nacks += 1
        self._nacks_repeated += missing.tries > 0
        missing.tries += 1
        due = self._request_time(missing, now)
        self._session.send(missing.request(self._session.node), self._session.group)
        return due

    def on_overheard(self, nack: Nack, missing: MissingUnit | None, now: float) -> float | None:
        """Suppress an own request for the unit, or start a repair timer if the unit is in the cache."""
        self._nacks_heard += 1
        key = (nack.sender, nack.object_id, nack.unit)
        due = None
        if missing is not None and now >= self._ignore_until.get(key, -inf):
            self._suppressed += 1
            missing.tries += 1
            due = self._request_time(missing, now)
        cached = self._cache.get(key)
        if cached is not None and cached.instance == nack.instance:
            self._schedule_repair(key, now)
        return due

    def _request_time(self, missing: MissingUnit, now: float) -> float:
        """Return now + 2**tries * d * (c1 + c2 * U), U uniform in [0, 1)."""
        config = self._config
        scale = config.distance * 2.0 ** min(missing.tries, MOST_DOUBLINGS)
        wait = scale * (config.c1 + config.c2 * self._session.ports.rng.uniform())
        if missing.tries:
            self._ignore_until[missing.origin.node, missing.object_id, missing.unit] = now + wait / 2.0
        # Strictly later than now in floating point, else the timer would run out again and again.
        return now + max(wait, 1e-9 * max(now, 1.0))

    # -- repairs ---------------------------------------------------------------------------------------------------

    def on_received(self, message: Data, source: Address, is_new: bool, now: float) -> None:
        """Keep a new unit in the cache; a repair by another member suppresses an own repair of the unit."""
        key = (message.sender, message.object_id, message.unit)
        if is_new:
            self._ignore_until.pop(key, None)
            if self._config.cache:
                self._cache[key] = message
                if len(self._cache) > self._config.cache:
                    del self._cache[next(iter(self._cache))]
        if message.repair:
            if self._repair_timers.pop(key, None) is not None:
                self._repairs_suppressed += 1
                self._set_deadline()
            self._hold(key, now)

    def wake(self, now: float) -> None:
        """Multicast the repairs whose timers have run out."""
        for key in [key for key, when in self._repair_timers.items() if when <= now]:
            del self._repair_timers[key]
            message = self._cache.get(key)
            if message is not None:
                self._hold(key, now)
                self._repairs_sent += 1
                self._session.send(message if message.repair else replace(message, repair=True), self._session.group)
        self._set_deadline()

    def _schedule_repair(self, key: Key, now: float) -> None:
        """Start a repair timer of d * (d1 + d2 * U), U uniform in [0, 1), unless one runs or the unit was repaired just now."""
        if key not in self._repair_timers and now >= self._held_until.get(key, -inf):
            config = self._config
            self._repair_timers[key] = now + config.distance * (config.d1 + config.d2 * self._session.ports.rng.uniform())
            self._set_deadline()

    def _hold(self, key: Key, now: float) -> None:
        self._held_until[key] = now + HOLD * self._config.distance
        if len(self._held_until) > MOST_HELD:
            self._held_until = {key: when for key, when in self._held_until.items() if when > now}

    def _set_deadline(self) -> None:
        self.deadline = min(self._repair_timers.values(), default=inf)


def srm_receiver(ports: Ports, config: SrmConfig, node: int, group: Group) -> ArqReceiver:
    """Return an SRM receiver; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return ArqReceiver(session, SrmPolicy(session, config))
