"""One Spark session for every test of this folder: starting another would take seconds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on two processors, or a skip where Spark can't run."""
    from experiments.sweep.spark import session
    from protocols.errors import UnsupportedError

    log: Path = tmp_path_factory.mktemp("spark") / "spark.log"
    try:
        made = session("local[2]", log)
    except UnsupportedError as error:
        pytest.skip(str(error))
    # Sixty rows need no eight tasks.
    made.conf.set("spark.sql.shuffle.partitions", "1")
    yield made
    made.stop()
