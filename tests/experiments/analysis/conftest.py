"""The synthetic sweep, loaded into Spark."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.runs import Runs, open_runs
from tests.experiments.sweep.synthetic import Rows, synthetic_rows, write_synthetic


@pytest.fixture(scope="session")
def rows() -> Rows:
    """Return its rows."""
    return synthetic_rows()


@pytest.fixture(scope="session")
def folder(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write it and return its folder."""
    return write_synthetic(tmp_path_factory.mktemp("store"), rows)


@pytest.fixture(scope="session")
def runs(spark: Any, folder: Path) -> Runs:
    """Load its runs."""
    return open_runs(spark, folder)
