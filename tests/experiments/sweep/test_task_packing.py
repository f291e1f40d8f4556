"""Packing of runs into tasks."""

from collections import Counter, defaultdict

import pytest

from experiments.sweep.run.task_packing import LONGEST, SHORTEST, pack


def sums(costs: list[float], tasks: list[int]) -> dict[int, float]:
    found: dict[int, float] = defaultdict(float)
    for cost, task in zip(costs, tasks, strict=True):
        found[task] += cost
    return found


def test_tasks_take_two_to_twenty_seconds() -> None:
    few, many = [0.1] * 2000, [0.5] * 20_000
    assert max(sums(few, pack(few, 2)).values()) == pytest.approx(len(few) * 0.1 / 2 / 16, rel=0.1)
    assert max(sums(few, pack(few, 32)).values()) == pytest.approx(SHORTEST, rel=0.1)
    assert max(sums(many, pack(many, 2)).values()) == pytest.approx(LONGEST, rel=0.1)


def test_the_longest_runs_are_in_the_first_tasks() -> None:
    costs = [0.1, 30.0, 5.0, 0.2, 60.0, 3.0]
    tasks = pack(costs, 2)
    assert tasks[4] == 0
    assert tasks[1] == 1
    assert max(tasks) == tasks[0]


def test_tasks_are_numbered_without_gaps_and_hold_every_run() -> None:
    costs = [float(n % 7) / 10 + 0.01 for n in range(500)]
    counted = Counter(pack(costs, 4))
    assert sorted(counted) == list(range(len(counted)))
    assert counted.total() == 500


def test_a_small_sweep_has_work_for_all_cores() -> None:
    assert len(set(pack([0.01] * 40, 4))) >= 4


def test_a_single_run_is_one_task() -> None:
    assert pack([3.0], 8) == [0]
