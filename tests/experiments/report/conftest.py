"""A report of the synthetic sweep, made once by the command."""

from pathlib import Path
from typing import Any

import pytest

from tests.experiments.sweep.synthetic import synthetic_rows, write_synthetic
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
