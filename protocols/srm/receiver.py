"""The SRM receiver: asks after a random wait, backs off exponentially, and repairs what others ask for."""

from dataclasses import replace
from math import inf

from protocols.arq.messages import Data, Nack
from protocols.arq.receiver import ArqReceiver
from protocols.arq.sender_state import Key, SenderState, Want
from protocols.arq.wire import size_of
from protocols.machine import Address, Group, Packet, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.sender import HOLD

__all__ = ["SrmReceiver"]

MOST_DOUBLINGS = 6
"""Waits grow to at most 2**6 times the first."""

Named = tuple[int, int, int]
"""A unit of a sender: (sender, object id, unit)."""


class SrmReceiver(ArqReceiver):
    """Keeps the packets that came last, to repair them for others."""

    __slots__ = (
        "_cache",
        "_held",
        "_ignore",
        "_nacks",
        "_nacks_heard",
        "_nacks_repeated",
        "_planned",
        "_repairs_sent",
        "_settings",
        "_spared",
        "_suppressed",
    )

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        self._settings = config
        self._cache: dict[Named, Data] = {}
        self._planned: dict[Named, float] = {}
        """Repairs this member is going to send, and when."""
        self._held: dict[Named, float] = {}
        self._ignore: dict[Named, float] = {}
        """Until when further requests for a missing unit do not double the wait again."""
        self._nacks = self._nacks_repeated = self._nacks_heard = self._suppressed = 0
        self._repairs_sent = self._spared = 0

    def counts(self) -> dict[str, int]:
        """What was received, heard and said."""
        return {
            **super().counts(),
            "nacks_sent": self._nacks,
            "nacks_repeated": self._nacks_repeated,
            "nacks_suppressed": self._suppressed,
            "nacks_heard": self._nacks_heard,
            "repairs_sent": self._repairs_sent,
            "repairs_suppressed": self._spared,
        }

    # -- asking ----------------------------------------------------------------------------------------------------

    def want(self, remote: SenderState, key: Key, now: float) -> Want | None:
        """Ask after a random wait."""
        want = Want()
        self._wait(remote, key, want, now)
        return want

    def on_due(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Ask, and wait twice as long before asking again."""
        self._nacks += 1
        self._nacks_repeated += want.tries > 0
        want.tries += 1
        self._wait(remote, key, want, now)
        nack = Nack(remote.node, remote.instance, *key, self.node)
        self.ports.send(Packet(nack, size_of(nack), self._group))

    def on_request(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        """Another asked: wait twice as long, once for all requests of one round."""
        if now < self._ignore.get((remote.node, *key), -inf):
            return
        self._suppressed += 1
        want.tries += 1
        self._wait(remote, key, want, now)

    def _wait(self, remote: SenderState, key: Key, want: Want, now: float) -> None:
        known = self._settings
        scale = known.distance * 2.0 ** min(want.tries, MOST_DOUBLINGS)
        wait = scale * (known.c1 + known.c2 * self.ports.rng.uniform())
        if want.tries:
            self._ignore[remote.node, *key] = now + wait / 2.0
        # A time that is not later than now would be asked for again and again.
        remote.plan(key, want, now + max(wait, 1e-9 * max(now, 1.0)))

    # -- repairing -------------------------------------------------------------------------------------------------

    def on_unit(self, message: Data) -> None:
        """Keep it."""
        key = (message.sender, message.object_id, message.unit)
        self._ignore.pop(key, None)
        if self._settings.cache:
            self._cache[key] = message
            if len(self._cache) > self._settings.cache:
                del self._cache[next(iter(self._cache))]

    def _on_data(self, message: Data, source: Address, now: float) -> None:
        if message.repair:
            key = (message.sender, message.object_id, message.unit)
            self._spared += self._planned.pop(key, None) is not None
            self._hold(key, now)

    def _on_nack(self, remote: SenderState, nack: Nack, now: float) -> None:
        self._nacks_heard += 1
        remote.overhear(nack, now)
        key = (nack.sender, nack.object_id, nack.unit)
        kept = self._cache.get(key)
        if kept is None or kept.instance != nack.instance:
            return
        if key not in self._planned and now >= self._held.get(key, -inf):
            known = self._settings
            self._planned[key] = now + known.distance * (known.d1 + known.d2 * self.ports.rng.uniform())

    def _hold(self, key: Named, now: float) -> None:
        self._held[key] = now + HOLD * self._settings.distance
        if len(self._held) > 1024:
            self._held = {key: when for key, when in self._held.items() if when > now}

    def _act(self, now: float) -> None:
        for key in [key for key, when in self._planned.items() if when <= now]:
            del self._planned[key]
            message = self._cache.get(key)
            if message is not None:
                self._hold(key, now)
                self._repairs_sent += 1
                repair = message if message.repair else replace(message, repair=True)
                self.ports.send(Packet(repair, size_of(repair), self._group))

    def _own_due(self) -> float:
        return min(self._planned.values()) if self._planned else inf
