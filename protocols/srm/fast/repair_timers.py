"""The repair timers of a member in little memory: most members run few, or none."""

from functools import lru_cache
from heapq import heappush
from math import inf
from typing import Final

from protocols.rng import Rng
from protocols.srm.intervals import Interval
from protocols.srm.repair_timers import HOLD, Key, RepairTimer, RepairTimers

__all__ = ["FastRepairTimers"]

FEW: Final = 32
"""Timers up to which there is no heap of them, and stopped ones that are in the heap beyond as many as run."""
FEW_HELD: Final = 4
"""Units held down up to which those whose time is over are not removed."""
_NO_TIMERS: Final[dict[Key, RepairTimer]] = {}
_NOT_HELD: Final[dict[Key, tuple[float, float | None]]] = {}
_NO_HEAP: Final[list[tuple[float, Key]]] = []
"""Shared by the members without timers; never modified."""


@lru_cache(maxsize=16)
def _held_until(when: float) -> tuple[float, float | None]:
    """Return an entry of `_held`, one object for all members for which the time is the same."""
    return when, None


class FastRepairTimers(RepairTimers):
    """As `RepairTimers`; there is no heap while few timers run."""

    __slots__ = ()

    def __init__(self, interval: Interval, rng: Rng) -> None:
        super().__init__(interval, rng)
        self._timers, self._held, self._heap = _NO_TIMERS, _NOT_HELD, _NO_HEAP
        # With the first unit held down there are tables of this member's own.
        self._most_held = 0

    def hold(self, key: Key, distance: float, now: float, own: float | None = None) -> None:
        """Ignore requests for a unit for `HOLD` distances; `own` is this member's to the requester if it sent the repair."""
        held, until = self._held, now + HOLD * distance
        if len(held) >= self._most_held:
            held = self._held = {unit: entry for unit, entry in held.items() if entry[0] > now}
            self._most_held = max(2 * len(held), FEW_HELD)
        held[key] = _held_until(until) if own is None else (until, own)

    def _start(self, key: Key, timer: RepairTimer) -> None:
        if self._timers is _NO_TIMERS:
            self._timers = {}
        self._timers[key] = timer
        heap, running = self._heap, len(self._timers)
        if heap is not _NO_HEAP and len(heap) < 2 * running + FEW:
            heappush(heap, (timer.due, key))
        elif running > FEW:
            self._heap = sorted([(each.due, unit) for unit, each in self._timers.items()])
        else:
            self._heap = _NO_HEAP

    def _take_first(self) -> tuple[Key, RepairTimer]:
        if self._heap is not _NO_HEAP:
            return super()._take_first()
        _, key = min([(timer.due, key) for key, timer in self._timers.items()])
        return key, self._timers.pop(key)

    def _set_due(self) -> None:
        if not self._timers:
            self._timers, self._heap, self.due = _NO_TIMERS, _NO_HEAP, inf
        elif self._heap is not _NO_HEAP:
            super()._set_due()
        else:
            self.due = min([timer.due for timer in self._timers.values()])
