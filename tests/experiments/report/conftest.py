"""A report of the synthetic sweep, made once by the command."""

from pathlib import Path
from typing import Any

import pytest

from tests.experiments.sweep.synthetic import Rows, synthetic_rows, write_synthetic
from tests.support.sweep_store import write_series


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the sweep with a time series of each run and return its folder."""
    rows = synthetic_rows()
    folder = write_synthetic(tmp_path_factory.mktemp("swept"), rows)
    points = [
        {"run_id": row["run_id"], "name": "queue s1-r", "t": float(t), "value": float(row["seed"] * t)}
        for row in rows
        for t in range(5)
    ]
    return write_series(folder, points)


@pytest.fixture(scope="session")
def report(commands: Any, swept: Path) -> Path:
    """Make the page with theory and figures."""
    assert commands("report", swept, "--theory", "arq", "--theory", "fec") == 0
    return swept / "report.html"


NEWER = "0.2.0+def"


def newer(rows: Rows) -> Rows:
    """Return the runs of a later version: no 10 receivers but 100, srm 0.5 s faster in each run, norm unchanged."""
    found = []
    for row in rows:
        if row["p_topology__receivers"] != 10:
            row = row | {"version": NEWER}
            if row["p_protocol__name"] == "srm" and row["m_completion_time"] is not None:
                row["m_completion_time"] -= 0.5
            found.append(row)
    return found + [row | {"run_id": row["run_id"] + "x", "p_topology__receivers": 100} for row in found if row["point"] >= 8]


@pytest.fixture(scope="session")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the sweep as a later version of the code made it."""
    return write_synthetic(tmp_path_factory.mktemp("later"), newer(synthetic_rows()))


@pytest.fixture(scope="session")
def comparison(commands: Any, swept: Path, later: Path) -> Path:
    """Make the page of two sweeps, and its figures."""
    assert commands("report", swept, later, "--metric", "completion_time,goodput_mbit_s,nacks_sent") == 0
    return later / "comparison.html"
