"""The synthetic sweep, loaded into Spark."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.runs import Runs, open_runs
from tests.experiments.sweep.made_up import Rows, made_up_rows, write_made_up


@pytest.fixture(scope="session")
def rows() -> Rows:
    """Return its rows."""
    return made_up_rows()


@pytest.fixture(scope="session")
def folder(rows: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write it and return its folder."""
    return write_made_up(tmp_path_factory.mktemp("store"), rows)


@pytest.fixture(scope="session")
def runs(spark: Any, folder: Path) -> Runs:
    """Load its runs."""
    return open_runs(spark, folder)
