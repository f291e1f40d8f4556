"""One analysis request and its result as flat rows."""

import csv
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.analysis_request import AnalysisRequest, AnalysisResult, analyse, write_csv
from experiments.cli import invoke
from protocols.errors import UsageError
from tests.support.sweep_store import VERSION, row, write_runs


def answer_to(spark: Any, folder: Path, **question: Any) -> AnalysisResult:
    """Answer a request."""
    return analyse(spark, folder, AnalysisRequest(**question))


def test_the_default_request_lists_all_points_with_the_main_metrics(spark: Any, folder: Path) -> None:
    answer = answer_to(spark, folder)
    assert (answer.runs, answer.failed) == (96, 1)
    assert {row["metric"] for row in answer.rows} == {"completion_time", "goodput_mbit_s", "transmissions"}
    assert len(answer.rows) == 3 * 12
    assert "exact percentiles" in answer.about


@pytest.mark.parametrize(
    ("question", "columns", "count"),
    [
        ({"by": ["receivers"], "metrics": ["nacks_sent"]}, {"topology.receivers", "mean", "p50", "boot_low"}, 3),
        ({"compare": "name=srm", "metrics": ["nacks_sent"]}, {"variant", "base", "pairs", "lower", "clear"}, 1),
        ({"effects": True, "metrics": ["completion_time"]}, {"axis", "share", "correlation"}, 5),
        ({"theory": ["arq"]}, {"formula", "expected", "residual", "holds"}, 6),
    ],
)
def test_each_request_has_its_columns(spark: Any, folder: Path, question: Any, columns: set[str], count: int) -> None:
    answer = answer_to(spark, folder, **question)
    assert len(answer.rows) == count
    assert columns <= answer.rows[0].keys()
    assert all(row.keys() == answer.rows[0].keys() for row in answer.rows)


def test_a_request_asks_one_question() -> None:
    with pytest.raises(UsageError, match="--effects: is not allowed beside --compare"):
        AnalysisRequest(compare="name", effects=True)


def test_rows_are_written_as_csv(tmp_path: Path) -> None:
    write_csv([{"a": 1, "b": "x,y"}, {"a": 2, "b": None}], tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["1", "x,y"], ["2", ""]]
    with pytest.raises(UsageError, match=r"--csv: value .* is not allowed; a file that can be written"):
        write_csv([], tmp_path / "missing" / "rows.csv")


def test_a_margin_is_a_fraction_above_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"--margin: value 0\.0 is not allowed; a fraction above 0"):
        AnalysisRequest(theory=["arq"], margin=0.0)
    assert invoke(["analyse", str(tmp_path), "--theory", "arq", "--margin", "wide"]) == 2
    assert "--margin: " in capsys.readouterr().err


@pytest.mark.parametrize("question", [{}, {"effects": True}, {"compare": "n"}, {"theory": ["arq"]}])
def test_a_sweep_without_a_run_that_succeeded_is_named(spark: Any, tmp_path: Path, question: Any) -> None:
    folder = tmp_path / "two words"
    write_runs(folder, [row({"n": 1}, seed, {}, status="timeout") for seed in (1, 2)])
    with pytest.raises(UsageError, match=r"two words: no run succeeded; `mcastlab results '.*two words'` shows the reasons"):
        answer_to(spark, folder, **question)


def test_a_version_without_runs_is_named(spark: Any, tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.5})])
    (tmp_path / "jobs" / "later.json").write_text('{"version": "9.9", "started": "2027"}')
    assert answer_to(spark, tmp_path).version == VERSION
    with pytest.raises(UsageError, match=r"holds no runs of version 9\.9"):
        answer_to(spark, tmp_path, version="9.9")


def test_a_metric_that_no_run_has_is_told_from_one_that_does_not_exist(spark: Any, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"--metric: value 'overhead' is not allowed; no run here has a value of it$"):
        answer_to(spark, folder, metrics=["overhead"])
    with pytest.raises(UsageError, match=r"--metric: value 'beauty' is not allowed; one of "):
        answer_to(spark, folder, metrics=["beauty"])


def test_effects_of_nothing_say_why_there_are_none(spark: Any, tmp_path: Path) -> None:
    folder = write_runs(tmp_path, [row({"a": 1}, seed, {"overhead": 2.0}, point=0) for seed in (1, 2)])
    answer = answer_to(spark, folder, effects=True)
    assert (answer.rows, answer.about) == ([], "no axis has several values, or no metric varies")


def test_runs_without_a_completion_time_are_counted(
    spark: Any, commands: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [row({"a": 1}, seed, {"completed": float(seed > 1), "overhead": 2.0}, point=0) for seed in (1, 2, 3)]
    folder = write_runs(tmp_path, made)
    assert analyse(spark, folder, AnalysisRequest()).plain()["incomplete"] == 1
    assert commands("analyse", folder) == 0
    assert capsys.readouterr().out.startswith("3 runs, 1 incomplete, code ")


@pytest.mark.parametrize("options", [[], ["--effects"], ["--compare", "a"], ["--theory", "arq"], ["--series", "loss"]])
def test_a_sweep_whose_runs_all_failed_is_refused(
    options: list[str], commands: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [row({"a": a}, 1, {}, point=a, status="failed", error="ValueError: no") for a in (1, 2)]
    folder = write_runs(tmp_path, made)
    assert commands("analyse", folder, *options) == 2
    assert capsys.readouterr().err == f"mcastlab: {folder}: no run succeeded; `mcastlab results {folder}` shows the reasons\n"


INCOMPLETE = [
    row(
        {"a": a, "b": b},
        seed,
        {"completion_time": None if a == 2 or (a, seed) == (1, 3) else 1.0 + a + b / seed},
        point=2 * a + b,
    )
    for a in (0, 1, 2)
    for b in (0, 1)
    for seed in (1, 2, 3)
]
"""At a = 1 one run of three has no completion time, at a = 2 none has."""


@pytest.mark.parametrize(
    ("question", "count", "expected"),
    [
        ({"by": ["a"]}, "count", [(6, 0), (4, 2), (0, 6)]),
        ({"compare": "a"}, "pairs", [(4, 2), (0, 6)]),
        ({"effects": True}, "count", [(10, 8)] * 4),
    ],
)
def test_runs_without_a_value_are_counted_in_every_row(
    spark: Any, tmp_path: Path, question: dict[str, Any], count: str, expected: list[tuple[int, int]]
) -> None:
    found = answer_to(spark, write_runs(tmp_path, INCOMPLETE), metrics=["completion_time"], **question)
    assert [(each[count], each["left_out"]) for each in found.rows] == expected
    assert found.about.endswith("left_out: without a value, as incomplete runs without a completion time")
    assert len({frozenset(each) for each in found.rows}) == 1
