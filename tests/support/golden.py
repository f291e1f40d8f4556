"""Golden files: the output of commands at several widths, compared character by character.

With MCASTLAB_GOLDEN=write in the environment the files are written in place of the comparison; docs/testing.md has the command.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

__all__ = ["WIDTHS", "check_golden", "normalised", "recorded"]

FOLDER = ROOT / "tests" / "vectors" / "output"
WIDTHS = (80, 120)
_TIMED = (
    r"(?<=CPU time \[s\]).*",
    r"(?<=in )[\d.]+(?=m?s|m\d)",
    r"[\d.]+(?=\w+ of CPU time)|(?<=of CPU time, )[\d.]+",
    r"(?<=version )\S+(?=\))",
)
"""What differs from one run or version of the code to the next; its digits are replaced by #."""


def normalised(text: str) -> str:
    """Return the text with the digits of times and versions replaced, and the repository's folder by a dot."""
    for pattern in _TIMED:
        text = re.sub(pattern, lambda match: re.sub(r"[0-9a-f]", "#", match[0]) if match[0].strip() else match[0], text)
    return text.replace(str(ROOT), ".")


def recorded(run: Callable[[], object], width: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command with COLUMNS set, and return what it prints on stdout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        run()
        return normalised(capsys.readouterr().out)


def check_golden(name: str, text: str) -> None:
    """Compare the text with the golden file of this name."""
    path = Path(FOLDER, f"{name}.txt")
    if os.environ.get("MCASTLAB_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"differs from {path}; docs/testing.md says how to renew it"
