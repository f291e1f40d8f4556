"""The archive of the packages for workers lies where it is removed: by the command, or by Spark when it stops."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from experiments.sweep.run.deployment import deploy


class Sent:
    """Stand for a session and its context, and read what is added to it."""

    def __init__(self) -> None:
        self.path = Path()
        self.names: list[str] = []

    @property
    def sparkContext(self) -> "Sent":
        return self

    def addPyFile(self, path: str) -> None:
        self.path = Path(path)
        self.names = zipfile.ZipFile(path).namelist()

    def addArtifacts(self, path: str, pyfile: bool) -> None:
        assert pyfile
        self.addPyFile(path)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_client_of_a_server_removes_the_archive_that_it_has_sent(temporary: Path) -> None:
    session: Any = type("SparkSession", (Sent,), {"__module__": "pyspark.sql.connect.session"})()
    deploy(session)
    assert "experiments/sweep/run/task.py" in session.names
    assert list(temporary.iterdir()) == []


def test_a_spark_of_this_process_has_the_archive_in_the_folder_that_it_removes(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyspark = pytest.importorskip("pyspark")
    root = tmp_path / "userFiles"
    root.mkdir()
    monkeypatch.setattr(pyspark.SparkFiles, "getRootDirectory", lambda: str(root))
    session: Any = Sent()
    deploy(session)
    assert "experiments/sweep/run/task.py" in session.names
    # Workers fetch it later.
    assert session.path.is_file()
    assert session.path.is_relative_to(root)
    assert list(temporary.iterdir()) == []
