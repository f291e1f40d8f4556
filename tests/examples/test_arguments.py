"""The examples refuse what they can't use in one line, before they work."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT


def answer(*arguments: str) -> tuple[int, str]:
    """Return the exit code of an example that has nothing on its standard input, and the last line on stderr."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, check=False, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("example", ["two_worlds", "one_to_many", "sweep_pictures"])
def test_a_figure_that_cannot_be_written_is_refused_before_the_runs(example: str) -> None:
    folder = ["docs"] if example == "sweep_pictures" else []
    code, line = answer(f"examples.{example}", *folder, "--svg", "/proc/figure.svg")
    refused = "argument --svg: '/proc/figure.svg' is not allowed; it can't be written (No such file or directory)"
    assert (code, line) == (2, f"{example}.py: error: {refused}")


def test_pictures_of_a_folder_without_results_are_refused(tmp_path: Path) -> None:
    code, line = answer("examples.sweep_pictures", str(tmp_path / "none"), "--svg", str(tmp_path / "figure.svg"))
    assert code == 2
    assert line.startswith(f"sweep_pictures.py: error: {tmp_path}/none: holds no results of a sweep")


def test_a_chat_reads_what_is_no_terminal(tmp_path: Path) -> None:
    assert answer("examples.chat", "--group", "239.7.7.14:6003", "--iface", "lo", "--name", "Ada") == (0, "")
