"""Selection of runs, and names of axes and metrics."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.analysis_request import AnalysisRequest, analyse
from experiments.analysis.runs import CASE, Runs, open_runs, pick
from experiments.sweep.store import datasets
from protocols.errors import UsageError
from tests.support.sweep_store import grid, row, write_runs


def test_axes_and_metrics_have_the_names_of_the_sweep_file(runs: Runs) -> None:
    assert runs.axes == ("topology.receivers", "protocol.name", "loss")
    assert {"completion_time", "goodput_mbit_s", "nacks_sent"} < set(runs.metrics)
    assert "overhead" not in runs.metrics
    assert runs.count == 96
    assert runs.ok.count() == 95


def test_a_unique_suffix_selects_a_name(runs: Runs) -> None:
    assert runs.chosen_axes(["receivers", " loss"]) == ("topology.receivers", "loss")
    with pytest.raises(UsageError, match=r"--by: value 'x' is not allowed; one of topology\.receivers"):
        runs.chosen_axes(["x"])
    with pytest.raises(UsageError, match=r"it is ambiguous: a\.loss, b\.loss"):
        pick("--by", "loss", ["a.loss", "b.loss"], "axis")


def test_a_name_among_none_is_refused_by_saying_that_there_is_none() -> None:
    with pytest.raises(UsageError, match=r"--compare: value 'loss' is not allowed; these runs have no axis$"):
        pick("--compare", "loss", [], "axis")


@pytest.mark.parametrize(
    "request_", [AnalysisRequest(metrics=["loss"]), AnalysisRequest(metrics=["loss"], by=["mean"], compare="n")]
)
def test_an_axis_with_the_name_of_a_number_keeps_its_values(request_: AnalysisRequest, spark: Any, tmp_path: Path) -> None:
    made = grid({"mean": (10, 20), "n": (1, 2), "metric": (7,)}, (1, 2), lambda **_: {"loss": 0.5})
    found = analyse(spark, write_runs(tmp_path, made), request_)
    assert {line["p_mean"] for line in found.rows} == {10, 20}
    assert {line["metric"] for line in found.rows} == {"loss"}


def test_a_repeated_run_counts_once_and_success_replaces_failure(spark: Any, tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {}, status="crashed", error="signal 11")], "first")
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.5}, attempt=1)], "second")
    found = open_runs(spark, tmp_path)
    assert found.count == 1
    assert [item["m_loss"] for item in found.ok.collect()] == [0.5]


@pytest.mark.parametrize("small", [0, 100])
def test_a_run_that_was_made_again_to_keep_something_else_counts_once(
    small: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "SMALL", small)
    write_runs(tmp_path, [row({"n": n}, 1, {"loss": 0.1}, run_id=f"{n}") for n in (1, 2)], "first")
    later = datetime(2027, 1, 1, tzinfo=UTC)
    write_runs(tmp_path, [row({"n": n}, 1, {"loss": 0.5}, run_id=f"{n}, with series", started=later) for n in (1, 2)], "second")
    found = open_runs(spark, tmp_path)
    assert found.count == 2
    assert [item["m_loss"] for item in found.ok.collect()] == [0.5, 0.5]
    assert [item["m_loss"] for item in datasets.table(tmp_path)] == [0.5, 0.5]


def test_code_versions_are_kept_apart(spark: Any, tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.1}, version="old", run_id="a")], "old")
    write_runs(tmp_path, [row({"n": 1}, 2, {"loss": 0.2}, version="new", run_id="b")], "new")
    assert open_runs(spark, tmp_path).version == "new"
    old = open_runs(spark, tmp_path, "old")
    assert [item["m_loss"] for item in old.ok.collect()] == [0.1]
    assert old.versions == ("new", "old")
    with pytest.raises(UsageError, match="--version: value 'x' is not allowed; one of new, old"):
        open_runs(spark, tmp_path, "x")


def test_named_cases_are_an_axis(spark: Any, tmp_path: Path) -> None:
    write_runs(tmp_path, [row({"n": 1}, 1, {"loss": 0.1}, case=name) for name in ("plain", "burst")])
    assert open_runs(spark, tmp_path).axes == ("n", CASE)


def test_a_folder_without_a_sweep_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no results of a sweep"):
        open_runs(spark, tmp_path)
