"""Two sweeps compared: pairs, shared points, and clear messages where nothing can be compared."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.report.conftest import NEWER
from tests.experiments.sweep.synthetic import BASE, SWEEP, synthetic_rows
from tests.support.sweep_store import VERSION, row, write_runs


def data_of(page: Path) -> Any:
    """Return the data of a page's scripts."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    assert match is not None
    return json.loads(match[1])


def write_sweep(folder: Path, rows: list[dict[str, Any]], text: str = SWEEP) -> Path:
    """Write a sweep's folder with these runs."""
    folder.mkdir()
    (folder / "sweep.yaml").write_text(text)
    (folder / "base.yaml").write_text(BASE)
    return write_runs(folder, rows)


def test_differences_are_paired_by_point_and_seed(comparison: Path) -> None:
    (table,) = [table for table in data_of(comparison)["tables"] if table["name"] == "pairs"]
    assert table["columns"] == ["receivers", "name", "loss [%]", "metric", "unit", "pairs", "B minus A", "low", "high", "clear"]
    rows = {tuple(row[:4]): row[4:] for row in table["rows"]}
    assert {key[0] for key in rows} == {20, 50}
    assert rows[50, "srm", 10, "completion_time"] == ["s", 8, -0.5, -0.5, -0.5, "yes"]
    assert rows[50, "norm", 10, "completion_time"] == ["s", 8, 0, 0, 0, "no"]


def test_the_page_names_both_versions_and_the_points_of_one_sweep_only(comparison: Path, swept: Path, later: Path) -> None:
    text = comparison.read_text(encoding="utf-8")
    assert f"A: {swept.name} ({VERSION}) and B: {later.name} ({NEWER}): 64 pairs of runs at 8 shared points" in text
    assert "4 points only in A; 4 points only in B" in text
    assert f"mcastlab report {swept} {later}" in text
    assert (later / "comparison" / "sweeps-completion_time.svg").exists()
    assert (later / "comparison" / "lines-completion_time.png").exists()


def test_two_versions_in_one_folder_are_compared(commands: Any, tmp_path: Path) -> None:
    rows = synthetic_rows()
    folder = write_sweep(tmp_path / "both", rows)
    write_runs(folder, [row | {"version": NEWER, "run_id": row["run_id"] + "n"} for row in rows], job="two")
    page = tmp_path / "page.html"
    options = ["--version", f"{VERSION},{NEWER}", "--metric", "nacks_sent", "--no-figures", "--out", page]
    assert commands("report", folder, folder, *options) == 0
    assert f"A: {VERSION} ({VERSION}) and B: {NEWER} ({NEWER})" in page.read_text(encoding="utf-8")


def moved(rows: list[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    return [each | values for each in rows]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (moved(synthetic_rows(), p_loss=0.3), [], "share no points; loss is 0.01, 0.1 in the first and 0.3 in the second"),
        ([each | {"seed": each["seed"] + 100} for each in synthetic_rows()], [], "share no seeds"),
        (
            [{key: value for key, value in each.items() if key != "p_loss"} for each in synthetic_rows()],
            [],
            "axes of the first are topology.receivers, protocol.name, loss, of the second topology.receivers, protocol.name",
        ),
        (
            [row({"receivers": 20}, 1, {}, status="failed")],
            [],
            "other: no run succeeded; `mcastlab results ",
        ),
        (synthetic_rows(), ["--theory", "arq"], "--theory: is not allowed with two sweeps"),
        (synthetic_rows(), ["--version", VERSION], "with two sweeps both versions: OLD,NEW"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_line(
    commands: Any, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Any, options: list[str], message: str
) -> None:
    other = write_sweep(tmp_path / "other", rows)
    assert commands("report", swept, other, *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_sweep_is_not_compared_with_itself(commands: Any, swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands("report", swept, swept) == 2
    assert "these are the runs of" in capsys.readouterr().err
