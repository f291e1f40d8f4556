"""The repair timers of one member: which requested units it will repeat, and when (Floyd et al. 1997, section III-B)."""

from functools import lru_cache
from heapq import heappop, heappush
from math import inf
from typing import Final

from protocols.rng import Rng
from protocols.srm.intervals import Interval

__all__ = ["HOLD", "NOT_HELD", "Key", "RepairTimer", "RepairTimers", "key_of"]

HOLD: Final = 3.0
"""Requests for a unit are ignored for this many distances after its repair."""
FEW_HELD: Final = 16
"""Units held down up to which those whose time is over are not removed."""
MOST_HELD: Final = 1 << 16
"""Units held down at a time; beyond, the first ones are forgotten."""
MOST_TIMERS: Final = 1 << 16
"""Timers that run at a time; requests for further units are ignored, and come again."""

NOT_HELD: Final[tuple[float, float | None]] = (-inf, None)

Key = tuple[int, int, int]
"""A unit of a source: (source, object id, unit)."""


@lru_cache(maxsize=1024)
def key_of(source: int, object_id: int, unit: int) -> Key:
    """Return the key of a unit, one object for all members: they start timers for the same units at the same time."""
    return source, object_id, unit


class RepairTimer:
    """A running timer: when it was set and when it runs out, and the distance to the requester, in seconds."""

    __slots__ = ("distance", "due", "set_at")

    def __init__(self, set_at: float, due: float, distance: float) -> None:
        self.set_at = set_at
        self.due = due
        self.distance = distance


class RepairTimers:
    """Starts a timer at the first request of a unit; a repair by another member stops it. `due` is when the next runs out."""

    __slots__ = ("_heap", "_held", "_interval", "_most_held", "_rng", "_timers", "due", "suppressed")

    def __init__(self, interval: Interval, rng: Rng) -> None:
        self._interval = interval
        self._rng = rng
        self._timers: dict[Key, RepairTimer] = {}
        self._heap: list[tuple[float, Key]] = []
        """Times and units of timers; one is valid while it agrees with the timer's `due`."""
        self._held: dict[Key, tuple[float, float | None]] = {}
        """Until when (seconds) requests are ignored, and this member's distance to the requester if it sent the repair."""
        self._most_held = FEW_HELD
        """Units held down above which those whose time is over are removed: twice as many as were left last."""
        self.due = inf
        self.suppressed = 0
        """Timers stopped by the repairs of others."""

    def on_request(self, key: Key, distance: float, now: float) -> None:
        """Start the timer of a unit requested by a member at this distance in seconds, unless it runs or is held down."""
        if key in self._timers or now < self._held.get(key, NOT_HELD)[0] or len(self._timers) >= MOST_TIMERS:
            return
        self._interval.on_loss()
        due = now + self._interval.draw(distance, self._rng)
        self._start(key, RepairTimer(now, due, distance))
        if due < self.due:  # noqa: PLR1730 (a third of the time of min)
            self.due = due

    def on_repair(self, key: Key, reported: float, now: float) -> bool:
        """Stop the timer of a unit that another member repaired, and hold the unit down; False if no request is known.

        `reported` is the distance of the other member to the requester in seconds, 0 if it is not known.
        """
        timer = self._timers.pop(key, None)
        if timer is not None:
            self.suppressed += 1
            self._interval.on_answer((now - timer.set_at) / (2.0 * timer.distance))
            self.hold(key, timer.distance, now)
            if self.due == timer.due:
                self._set_due()
            return True
        until, own = self._held.get(key, NOT_HELD)
        if now >= until:
            return False
        self._interval.on_duplicate(own, reported)
        return True

    def take_due(self, now: float) -> list[tuple[Key, float]]:
        """Return the units whose timers have run out, with the distances to their requesters, and hold them down."""
        found = []
        while self.due <= now:
            key, timer = self._take_first()
            self._interval.on_answer((now - timer.set_at) / (2.0 * timer.distance))
            self._interval.on_sent()
            self.hold(key, timer.distance, now, timer.distance)
            found.append((key, timer.distance))
            self._set_due()
        return found

    def hold(self, key: Key, distance: float, now: float, own: float | None = None) -> None:
        """Ignore requests for a unit for `HOLD` distances; `own` is this member's to the requester if it sent the repair."""
        self._held[key] = now + HOLD * distance, own
        if len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]
        elif len(self._held) > self._most_held:
            self._held = {key: held for key, held in self._held.items() if held[0] > now}
            self._most_held = min(max(2 * len(self._held), FEW_HELD), MOST_HELD)

    def _start(self, key: Key, timer: RepairTimer) -> None:
        self._timers[key] = timer
        heappush(self._heap, (timer.due, key))

    def _take_first(self) -> tuple[Key, RepairTimer]:
        """Remove the timer that runs out first, at `due`."""
        key = heappop(self._heap)[1]
        return key, self._timers.pop(key)

    def _set_due(self) -> None:
        heap, timers = self._heap, self._timers
        while heap:
            timer = timers.get(heap[0][1])
            if timer is not None and timer.due == heap[0][0]:
                self.due = heap[0][0]
                return
            heappop(heap)
        self.due = inf
