"""What a command shows while it reads the results of a sweep."""

from pathlib import Path
from typing import Any

import pytest

from experiments.commands import reading
from experiments.sweep.run import spark_servers, spark_session
from tests.experiments.conftest import need_spark


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what is shown of a folder with these options while the server says this of itself."""

    def shown(status: Any, **options: Any) -> str:
        lines: list[Any] = []
        monkeypatch.setattr(reading, "working", lines.append)
        monkeypatch.setattr(spark_servers, "address", lambda: Path("socket"))
        monkeypatch.setattr(spark_servers, "status_of", lambda path: status)
        reading.reading(Path("out"), Path("other"), **options)
        line: str = lines[0]()
        return line

    return shown


def test_a_command_says_that_it_waits_while_others_hold_all_cores(text: Any) -> None:
    waiting = "reading out and other; other commands hold all cores of the Spark server, this one waits"
    assert text({"waiting": 1}, master="local[*]") == waiting
    for status in (None, {"waiting": 0}):
        assert text(status, master="local[*]") == "reading out and other"


@pytest.mark.parametrize("options", [{"master": "local[2]"}, {"master": "local[*]", "remote": "sc://here:15002"}])
def test_a_session_of_its_own_waits_for_nobody(text: Any, options: dict[str, Any]) -> None:
    assert text({"waiting": 1}, **options) == "reading out and other"


def test_the_log_of_a_folder_that_can_not_be_written_to_is_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_spark()
    logs: list[Path] = []
    monkeypatch.setattr(spark_session, "own_session", lambda master, log, *_: logs.append(log))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    closed, open_ = tmp_path / "closed", tmp_path / "open"
    for folder in (closed, open_):
        folder.mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != closed)
    for folder in (closed, open_):
        spark_session.session("local[1]", folder / "spark.log")
    assert logs[0].parent == tmp_path / "temporary"
    assert logs[1] == open_ / "spark.log"
