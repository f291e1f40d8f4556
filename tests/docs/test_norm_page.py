"""docs/norm.md names every file of NORM, and every reason for which an object is aborted."""

import re

import pytest

from tests.tidy.tree import ROOT

NORM = ROOT / "protocols" / "norm"
PAGE = (ROOT / "docs" / "norm.md").read_text(encoding="utf-8")


def named(folder: str) -> set[str]:
    """Return the files of a folder that a table of the page names in its first column; of `norm/` itself for ""."""
    cells = re.findall(r"^\| (`[^|]*`) \|", PAGE, re.M)
    names = {name for cell in cells for name in re.findall(r"`([^`]*)`", cell)}
    return {name.removeprefix(folder) for name in names if name.startswith(folder)}


@pytest.mark.parametrize(("folder", "prefix"), [("", ""), ("wire", "wire/"), ("congestion", "")])
def test_every_file_of_norm_stands_in_a_table_of_the_page(folder: str, prefix: str) -> None:
    there = {path.name for path in (NORM / folder).glob("*.py")} - {"__init__.py"}
    assert there <= named(prefix)


def test_the_table_of_aborts_has_every_reason() -> None:
    reasons = set()
    for path in NORM.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "_give_up(" in line or "ObjectAborted(" in line:
                reasons.update(re.findall(r'"(\w[^"{]*)', line))
    assert reasons >= {"cancelled", "expired", "squelched", "sink: ", "source: "}
    for reason in reasons:
        assert f"| `{reason.strip()}" in PAGE, reason
