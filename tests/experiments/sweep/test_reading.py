"""What a command shows while it reads the results of a sweep."""

from pathlib import Path
from typing import Any

import pytest

from experiments.commands import reading
from experiments.sweep.run import spark_servers


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
