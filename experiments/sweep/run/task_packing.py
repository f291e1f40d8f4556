"""Runs packed to tasks: long enough that starting them costs little, short enough that little is lost, longest first."""

from collections.abc import Sequence

__all__ = ["LONGEST", "SHORTEST", "pack"]

SHORTEST, LONGEST = 2.0, 20.0
"""Seconds of a task. What is under way is lost when a sweep is killed."""
ROUNDS = 16
"""Tasks for each core, so that the last ones end together."""


def pack(costs: Sequence[float], cores: int) -> list[int]:
    """The task of each run, given the seconds each is thought to take; tasks are numbered in the order they should start."""
    total = sum(costs)
    target = min(max(total / cores / ROUNDS, SHORTEST), LONGEST)
    # A small sweep has work for all cores, too.
    target = min(target, total / (2 * cores))
    tasks = [0] * len(costs)
    task, filled = 0, 0.0
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        if filled > 0.0 and filled + costs[place] / 2 > target:
            task, filled = task + 1, 0.0
        tasks[place] = task
        filled += costs[place]
    return tasks
