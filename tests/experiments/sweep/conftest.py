"""Folders of Spark servers, and a server, of a test's own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.sweep.run.spark_servers import DIRECTORY, address, status_of
from tests.experiments.conftest import need_spark


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a folder of servers of its own, with a path that is short enough for sockets in it."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "run")
        monkeypatch.setenv(DIRECTORY, str(directory))
        yield directory


@pytest.fixture
def own(private: Path) -> Iterator[dict[str, Any]]:
    """Start a server of the test's own, and return its status; whatever runs in its folder at the end is stopped."""
    need_spark()
    assert invoke(["spark", "start"]) == 0
    found = status_of(address())
    assert found is not None
    yield found
    assert invoke(["spark", "stop"]) == 0
