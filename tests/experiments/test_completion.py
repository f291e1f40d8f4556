"""What the shell's completion answers, asked as bash asks the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT


def completed(folder: Path, *words: str) -> list[str]:
    asked = {"_MCASTLAB_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "mcastlab"]
    environment = {**os.environ, **asked, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=True).stdout.split()


@pytest.mark.parametrize("command", ["run", "compare", "doctor", "twin", "channel show"])
def test_ready_scenarios_and_scenario_files_are_completed(command: str, tmp_path: Path) -> None:
    for name in ("lan-mine.yaml", "lan-notes.txt", "other.yaml"):
        (tmp_path / name).write_text("")
    assert completed(tmp_path, "mcastlab", *command.split(), "lan-") == ["lan-file", "lan-mine.yaml"]
    assert completed(tmp_path, "mcastlab", *command.split(), "twin/lan-1") == ["twin/lan-1"]
    assert completed(tmp_path, "mcastlab", *command.split(), "[") == []
