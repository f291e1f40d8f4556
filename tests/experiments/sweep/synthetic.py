"""A synthetic sweep with known answers: three axes and eight seeds, written as the store of a finished sweep."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from experiments.theory.multicast import repetition
from tests.support.sweep_store import grid, write_runs

__all__ = ["BASE", "BOTH", "SEEDS", "Rows", "synthetic_rows", "measure", "write_synthetic"]

Rows = list[dict[str, Any]]
BOTH = ("norm", "srm")
SEEDS = range(1, 9)
DATA = 10_000

BASE = """topology: {kind: star, receivers: 10, trunk: {rate: 100Mbit}, link: {rate: 100Mbit, delay: 5ms}}
protocol: {name: norm, rate: 10Mbit}
workload: {kind: file, from: sender, size: 14MB}
duration: 60s
"""
SWEEP = """name: made-up
scenario: base.yaml
axes:
  topology.receivers: [10, 20, 50]
  protocol.name: [norm, srm]
  loss: {key: topology.link.down.loss, values: [1%, 10%]}
replications: 8
"""


def measure(seed: int, receivers: int, name: str, loss: float) -> Mapping[str, float | None]:
    """Draw noise by seed and point but not by protocol, so that pairs differ by exactly 2; repairs of srm agree with theory."""
    chance = Random(f"{seed} {receivers} {loss}").gauss(0, 1)
    time = receivers * loss * 10 + chance + 2 * BOTH.index(name)
    repairs = DATA * (repetition(receivers, loss) - 1) + 50 * chance if name == "srm" else DATA * 3
    return {
        "completion_time": time,
        "goodput_mbit_s": 100 - time,
        "nacks_sent": float(receivers),
        "data_sent": float(DATA),
        "repairs_sent": repairs,
        "transmissions": 1 + repairs / DATA,
    }


def synthetic_rows() -> Rows:
    """Return the rows; one run failed, and one has no completion time."""
    axes = {"topology.receivers": (10, 20, 50), "protocol.name": BOTH, "loss": (0.01, 0.1)}
    made = grid(axes, SEEDS, measure)
    nothing = {key: None for key in made[0] if key.startswith("m_")}
    made[0] = made[0] | {"status": "error", "error": "Traceback: ...\nValueError: <b>no</b>"} | nothing
    made[9] = made[9] | {"m_completion_time": None}
    return made


def write_synthetic(folder: Path, rows: Rows) -> Path:
    """Write the store in two parts, with the files that describe the sweep."""
    (folder / "sweep.yaml").write_text(SWEEP)
    (folder / "base.yaml").write_text(BASE)
    write_runs(folder, rows[50:], "two")
    return write_runs(folder, rows[:50], "one")
