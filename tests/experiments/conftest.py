"""One Spark session for all tests that need it, because its start takes longer than most of them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments.cli import invoke
from experiments.commands.new import TEMPLATE
from experiments.sweep.run.spark_session import session
from tests.support.needs import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Start a session of two cores; tests do not stop it."""
    need_spark()
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    made = session("local[2]", log)
    # A few rows do not need the default of eight tasks.
    made.conf.set("spark.sql.shuffle.partitions", "1")
    yield made
    made.stop()
    # Spark stops itself when it has no memory left for compiled code.
    assert "CodeCache is full" not in log.read_text()


class KeptOpen:
    """Wrap the shared session so that a command cannot stop it."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Do nothing."""


@pytest.fixture(scope="session")
def commands(spark: Any) -> Any:
    """Run command lines on the shared session."""

    def run(*arguments: str | Path) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("experiments.sweep.run.spark_session.session", lambda *_: KeptOpen(spark))
            return invoke([str(argument) for argument in arguments])

    return run


@pytest.fixture
def gossip(tmp_path: Path) -> Path:
    """Write the file of a protocol that counts little: no losses, no feedback, no repairs."""
    path = tmp_path / "gossip.py"
    path.write_text(TEMPLATE.read_text().replace("@name@", "gossip"))
    return path


def need_spark() -> None:
    """Skip a test if Java or PySpark is missing; fail it with CI=true."""
    if reason := missing("spark"):
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to have everything: {reason}", pytrace=False)
        pytest.skip(reason)
