"""Small sweeps for tests."""

from pathlib import Path
from typing import Any

import yaml

from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.spec.sweep_file import load_sweep

__all__ = ["BASE", "plan_of", "write_sweep"]

BASE: dict[str, Any] = {
    "topology": {"kind": "star", "receivers": 2, "link": {"rate": "100Mbit", "down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "robust": 3},
    "workload": {"size": "20kB"},
    "duration": "20s",
}


def write_sweep(folder: Path, **keys: Any) -> Path:
    """Write a sweep file of BASE with these keys."""
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({"name": "small", "scenario": BASE, **keys}, sort_keys=False), encoding="utf-8")
    return path


def plan_of(folder: Path, **keys: Any) -> SweepPlan:
    """Write such a file and return its plan."""
    path = write_sweep(folder, **keys)
    return SweepPlan(load_sweep(path), path)
