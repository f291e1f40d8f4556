"""Pack runs into tasks, longest first: long enough to amortise task start-up, short enough to limit losses on a kill."""

from collections.abc import Sequence

__all__ = ["LONGEST", "SHORTEST", "pack"]

SHORTEST, LONGEST = 2.0, 20.0
"""Bounds of a task's estimated seconds; unfinished tasks are lost when a sweep is killed."""
ROUNDS = 16
"""Tasks per core, so that the last ones end close together."""


def pack(costs: Sequence[float], cores: int) -> list[int]:
    """Return the task number of each run, given its estimated seconds; tasks should start in numerical order."""
    total = sum(costs)
    target = min(max(total / cores / ROUNDS, SHORTEST), LONGEST)
    # Give every core of a small sweep some work.
    target = min(target, total / (2 * cores))
    tasks = [0] * len(costs)
    task, filled = 0, 0.0
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        if filled > 0.0 and filled + costs[place] / 2 > target:
            task, filled = task + 1, 0.0
        tasks[place] = task
        filled += costs[place]
    return tasks
