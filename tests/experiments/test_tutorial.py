"""The tutorial notebook of the documentation runs from top to bottom."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.experiments.conftest import need_spark

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"
# nbformat has no type hints.
READ: Callable[..., Any] = nbformat.read

RUNNER = """
import json, sys
cells = json.loads(sys.stdin.read())
space = {"__name__": "__main__"}
for number, source in enumerate(cells):
    exec(compile(source, f"cell {number}", "exec"), space)
print(json.dumps({"low": min(space["theory"]["expected"]), "groups": len(space["groups"])}))
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_cell_of_the_tutorial_runs_and_draws_its_figure(tmp_path: Path) -> None:
    need_spark()
    notebook = READ(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    # Run in a separate process: the notebook stops its Spark session, which other tests share.
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(cells),
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "svg"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    output = json.loads(done.stdout.splitlines()[-1])
    assert output["groups"] == 8
    assert output["low"] > 1.0
    assert (tmp_path / "first.svg").stat().st_size > 5000


def test_the_tutorial_is_short_and_stored_without_outputs() -> None:
    cells = READ(NOTEBOOK, as_version=4).cells
    assert 8 <= len(cells) <= 16
    assert all(not cell.get("outputs") for cell in cells)
