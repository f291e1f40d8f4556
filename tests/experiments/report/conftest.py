"""A report of the made-up sweep, made once by the command."""

from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from tests.experiments.sweep.made_up import made_up_rows, write_made_up
from tests.support.sweep_store import write_series


class KeptOpen:
    """The session of all tests, which a command must not stop."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Go on."""


@pytest.fixture(scope="session")
def commands(spark: Any) -> Any:
    """Runs command lines on the session of all tests."""

    def run(*arguments: str | Path) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("experiments.sweep.run.spark_session.session", lambda *_: KeptOpen(spark))
            return invoke([str(argument) for argument in arguments])

    return run


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sweep, with a time series of each run."""
    rows = made_up_rows()
    folder = write_made_up(tmp_path_factory.mktemp("swept"), rows)
    points = [
        {"run_id": row["run_id"], "name": "queue s1-r", "t": float(t), "value": float(row["seed"] * t)}
        for row in rows
        for t in range(5)
    ]
    return write_series(folder, points)


@pytest.fixture(scope="session")
def report(commands: Any, swept: Path) -> Path:
    """The page, with theory; figures lie beside it."""
    assert commands("report", swept, "--theory", "arq", "--theory", "fec") == 0
    return swept / "report.html"
