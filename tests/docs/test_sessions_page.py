"""The programs of docs/sessions.md run and print what the page says."""

import re
from pathlib import Path

import pytest

from experiments.contract.worlds import new_group
from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.M | re.S)


def test_every_program_of_the_page_has_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") >= 4


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_a_program_prints_what_the_page_says(
    program: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # Its own group and address, so that tests that run beside it don't meet.
    program = program.replace("239.7.7.20:6003", new_group()).replace('"lo"', '"127.0.0.1"')
    exec(compile(program, "docs/sessions.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output
