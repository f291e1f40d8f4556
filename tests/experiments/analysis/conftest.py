"""A sweep with known answers, and its runs in Spark."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from experiments.analysis.runs import Runs, open_runs
from tests.support.sweep_store import grid, row, write_runs

Rows = list[dict[str, Any]]
BOTH = ("norm", "srm")
SEEDS = range(1, 9)


def measure(seed: int, receivers: int, name: str, loss: float) -> Mapping[str, float | None]:
    """Chance is of the seed and the point and not of the protocol, so pairs differ by exactly 2."""
    chance = Random(f"{seed} {receivers} {loss}").gauss(0, 1)
    time = receivers * loss * 10 + chance
    return {"completion_time": time + 2 * BOTH.index(name), "goodput_mbit_s": 100 - time, "nacks_sent": float(receivers)}


@pytest.fixture(scope="session")
def rows() -> Rows:
    """Three axes, eight seeds; one run failed, and one came to no completion time."""
    axes = {"topology.receivers": (10, 20, 50), "protocol.name": BOTH, "topology.link.loss": (0.01, 0.1)}
    made = grid(axes, SEEDS, measure)
    made[0] = made[0] | {"status": "error", "error": "ValueError: no"} | {key: None for key in made[0] if key.startswith("m_")}
    made[9] = made[9] | {"m_completion_time": None}
    return made


@pytest.fixture(scope="session")
def folder(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of these runs, in two parts."""
    made = tmp_path_factory.mktemp("store")
    write_runs(made, rows[50:], "two")
    return write_runs(made, rows[:50], "one")


@pytest.fixture(scope="session")
def runs(spark: Any, folder: Path) -> Runs:
    """The runs in Spark."""
    return open_runs(spark, folder)


def one_axis(values: Mapping[int, list[float]]) -> Rows:
    """Runs of one axis `n` with the given completion times."""
    return [
        row({"n": n}, seed, {"completion_time": value}, point=n)
        for n, times in values.items()
        for seed, value in enumerate(times, 1)
    ]
