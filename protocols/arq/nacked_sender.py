"""Senders that repair what NACKs request, and announce with END messages that everything was sent."""

from abc import abstractmethod
from itertools import takewhile
from math import inf
from typing import Final

from protocols.arq.config import AConfig, N1Config
from protocols.arq.messages import Ack, Nack
from protocols.arq.sender import ArqSender, Key
from protocols.machine import Group, Message, Ports

__all__ = ["GatheringSender", "NackedSender"]

MOST_HELD: Final = 4096
"""Entries of the table of recent repairs above which the expired ones are removed."""
MOST_REQUESTED: Final = 1 << 16
"""Units that wait to be repeated; NACKs for others are ignored, and come again."""


class NackedSender(ArqSender):
    """Repeats a requested unit after a delay; finished when `robust` END messages, `timeout` seconds apart, caused no NACK.

    After the last END, receivers have `last_wait` seconds to send a NACK.
    """

    __slots__ = ("_end_at", "_ends", "_ends_sent", "_last_wait", "_nacks")

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group, instance: int, *, last_wait: float) -> None:
        super().__init__(ports, config, node, group, instance)
        self._last_wait = last_wait
        self._ends = 0
        """END messages since the last NACK or content."""
        self._end_at = -inf
        """When the next END is due, in seconds, if `_ends` is not 0."""
        self._nacks = self._ends_sent = 0

    @abstractmethod
    def _on_request(self, key: Key, nack: Nack, now: float) -> None:
        """React to the request of a unit that is served: decide when to repeat it."""

    @abstractmethod
    def _first_repair_at(self) -> float:
        """Return when a requested unit is to be repeated, in seconds; inf if none is requested."""

    def counts(self) -> dict[str, int]:
        """Return what was sent, and the NACKs received."""
        return {**super().counts(), "nacks_received": self._nacks, "flushes_sent": self._ends_sent}

    def _on_submit(self) -> None:
        self._restart_ends()

    def _on_feedback(self, message: Ack | Nack, now: float) -> None:
        if isinstance(message, Ack):
            return
        self._nacks += 1
        key = (message.object_id, message.unit)
        item = self._store.objects.get(message.object_id)
        if item is None or message.unit >= item.units:
            return
        if len(self._repairs) >= MOST_REQUESTED and key not in self._repairs:
            return
        # END is announced anew after the repair, also when the session had finished.
        self._finished = False
        self._restart_ends()
        self._on_request(key, message, now)

    def _on_sent(self, key: Key, repair: bool, now: float) -> None:
        self._restart_ends()

    def _on_idle(self, now: float) -> Message | None:
        if self._finished or self._first_repair_at() < inf or now < self._end_at:
            return None
        if self._ends >= self._config.robust:
            self._end_at = -inf
            self._finish()
            return None
        self._ends += 1
        self._ends_sent += 1
        is_last = self._ends >= self._config.robust
        self._end_at = now + (self._last_wait if is_last else self._config.timeout)
        return self._store.end()

    def _next_timer(self) -> float:
        repair_at = self._first_repair_at()
        if repair_at < inf:
            return repair_at
        if self._finished:
            return inf
        return self._end_at if self._ends else self._next_at

    def _restart_ends(self) -> None:
        self._ends, self._end_at = 0, -inf


class GatheringSender(NackedSender):
    """The sender of N1 and N2: one repair serves all NACKs that come within `gather` seconds of the first.

    NACKs for a unit are ignored for `hold` seconds after its repair.
    """

    __slots__ = ("_gather", "_held_until", "_hold", "_requested")

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group, instance: int) -> None:
        last_wait = 2.0 * (config.timeout + getattr(config, "window", 0.0))
        super().__init__(ports, config, node, group, instance, last_wait=last_wait)
        self._gather = config.gather
        self._hold = config.hold
        self._requested: dict[Key, float] = {}
        """Requested units, and when to repeat them, in seconds. All delays are equal, so they are in order of time."""
        self._held_until: dict[Key, float] = {}
        """Until when (seconds) NACKs for a repeated unit are ignored."""

    def _on_request(self, key: Key, nack: Nack, now: float) -> None:
        if len(self._requested) >= MOST_REQUESTED:
            return
        if now >= self._held_until.get(key, -inf) and key not in self._requested and key not in self._repairs:
            self._requested[key] = now + self._gather

    def _on_sent(self, key: Key, repair: bool, now: float) -> None:
        super()._on_sent(key, repair, now)
        if repair and self._hold:
            self._held_until[key] = now + self._hold

    def _on_timers(self, now: float) -> None:
        for key in list(takewhile(lambda key: self._requested[key] <= now, self._requested)):
            del self._requested[key]
            self._repairs[key] = None
        if len(self._held_until) > MOST_HELD:
            self._held_until = {key: when for key, when in self._held_until.items() if when > now}

    def _repairs_due(self, now: float) -> int:
        # They move from one to the other when the sender is woken, which is not before the rate allows a message.
        return len(self._repairs) + sum(1 for _ in takewhile(lambda when: when <= now, self._requested.values()))

    def _first_repair_at(self) -> float:
        return next(iter(self._requested.values()), inf)
