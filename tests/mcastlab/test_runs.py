"""Runs from Python, and the methods of their results."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import mcastlab
from experiments.running.run import run
from experiments.scenario.scenario import load

SMALL: dict[str, Any] = {"topology.receivers": 3, "workload.size": "20kB"}


@pytest.fixture(scope="module")
def result() -> mcastlab.Result:
    """Return the result of a small run."""
    return mcastlab.run(mcastlab.load("lan-file", SMALL))


def test_a_run_equals_that_of_the_command_line(result: mcastlab.Result) -> None:
    plain = run(load("lan-file", ["topology.receivers=3", "workload.size=20kB"]))
    assert result.fingerprint == plain.fingerprint
    assert result.ok


def test_metrics_are_attributes(result: mcastlab.Result) -> None:
    assert result.nacks_sent == result.metrics["nacks_sent"]
    assert result.completion_time is not None
    assert "packets" in dir(result)
    with pytest.raises(AttributeError, match="no metric 'nack'"):
        _ = result.nack


def test_frames_have_a_row_per_receiver_or_per_run(result: mcastlab.Result) -> None:
    receivers, whole = result.to_frame(), result.to_frame("run")
    assert list(receivers.index) == ["r1", "r2", "r3"]
    assert receivers["equal"].all()
    assert whole["completion_time"].tolist() == [result.completion_time]


def test_numbers_that_no_receiver_has_are_missing_numbers(result: mcastlab.Result) -> None:
    # A counts no NACKs; its receivers repair nothing for others.
    found = mcastlab.run(mcastlab.load("lan-file", SMALL, protocol={"name": "a", "rate": "20Mbit"}))
    for frame in (found.to_frame(), found.to_frame("run")):
        assert frame["nacks_sent"].isna().all()
        assert frame["nacks_sent"].dtype == float
    assert result.to_frame()["nacks_sent"].dtype == int


def test_a_result_is_one_line_in_a_terminal(result: mcastlab.Result) -> None:
    assert repr(result).startswith("<Result of lan-file (seed 1, sim): 3 of 3 receivers complete, completion time 0.")
    late = mcastlab.run(mcastlab.load("lan-file", SMALL, duration="1ms"))
    assert repr(late) == "<Result of lan-file (seed 1, sim): 0 of 3 receivers complete>"


def test_comparisons_and_verdicts_are_one_line_in_a_terminal() -> None:
    scenario = mcastlab.load("lan-file", SMALL)
    compared = repr(mcastlab.compare(scenario, ["norm", "a"], runs=2))
    assert compared.startswith("<Comparison of lan-file: 2 runs each, completion time [s]: norm ")
    assert "\n" not in compared
    assert repr(mcastlab.twin(scenario, 2, ("sim", "sim"))) == "<TwinVerdict of lan-file (sim, sim): equivalent>"


def test_a_comparison_is_a_frame_with_a_row_for_each_run() -> None:
    found = mcastlab.compare(mcastlab.load("lan-file", SMALL), ["norm", "a"], runs=2)
    frame = found.to_frame()
    assert list(zip(frame["protocol"], frame["seed"], strict=True)) == [("norm", 1), ("norm", 2), ("a", 1), ("a", 2)]
    assert frame["completion_time"].tolist() == [
        *found.values["norm"]["completion_time"],
        *found.values["a"]["completion_time"],
    ]


def test_a_notebook_shows_a_table(result: mcastlab.Result) -> None:
    html = result._repr_html_()
    assert "<caption>lan-file (seed 1, sim)</caption>" in html
    assert "3 of 3 receivers" in html


def test_a_notebook_shows_a_comparison_as_a_table() -> None:
    found = mcastlab.compare(mcastlab.load("lan-file", SMALL, name="a<b"), ["norm", "a"], runs=2)
    html = found._repr_html_()
    assert "<caption>a&lt;b: 2 runs each, seeds 1 to 2</caption><tr><th></th><th>norm</th><th>a</th></tr>" in html
    assert "<tr><th>runs completed</th><td>2 of 2</td><td>2 of 2</td></tr>" in html
    assert "differences to norm: mean of pairs and 95 % interval" in html


def test_a_notebook_shows_the_verdict_on_two_worlds_as_a_table() -> None:
    html = mcastlab.twin(mcastlab.load("lan-file", SMALL), 2, ("sim", "sim"))._repr_html_()
    assert "<caption>lan-file: equivalent</caption><tr><th></th><th>sim</th><th>sim</th><th>difference</th>" in html
    assert html.count("<td>equivalent</td>") >= 5


def test_a_notebook_shows_what_a_sweep_made_as_a_table(tmp_path: Path) -> None:
    summary = mcastlab.SweepSummary(tmp_path, "1.0", total=3, made=2, status=Counter(ok=2))
    html = summary._repr_html_()
    assert f"<caption>{tmp_path}</caption><tr><th>runs</th><td>3</td></tr><tr><th>ok</th><td>2</td></tr>" in html
    assert "<tr><th>left</th><td>1</td></tr>" in html


def test_a_result_can_be_drawn(result: mcastlab.Result, tmp_path: Path) -> None:
    result.plot().savefig(tmp_path / "result.svg")
    assert "receivers complete" in (tmp_path / "result.svg").read_text() or (tmp_path / "result.svg").stat().st_size > 5000


def test_a_name_with_dollars_is_drawn_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    mcastlab.run(mcastlab.load("lan-file", {"name": "$a_{$", "workload.size": "5kB"})).plot().savefig(tmp_path / "result.svg")
    assert "<!-- $a_{$: receivers complete -->" in (tmp_path / "result.svg").read_text(encoding="utf-8")


def test_a_result_is_saved_as_the_files_of_a_run(tmp_path: Path) -> None:
    mcastlab.run(mcastlab.load("lan-file", SMALL, capture=["sender"]), out=tmp_path / "out")
    assert (tmp_path / "out" / "result.json").exists()
    assert (tmp_path / "out" / "captures" / "sender.pcapng").exists()


def test_another_seed_is_another_run(result: mcastlab.Result) -> None:
    assert mcastlab.run(mcastlab.load("lan-file", SMALL), seed=2).fingerprint != result.fingerprint


def test_protocols_can_be_compared() -> None:
    found = mcastlab.compare(mcastlab.load("lan-file", SMALL), ["norm", "a"], runs=2, settings={"a": {"timeout": "100ms"}})
    assert found.completed == {"norm": 2, "a": 2}
    assert "completion_time" in found.differences["a"]


def test_a_world_compared_with_itself_is_equivalent() -> None:
    scenario = mcastlab.load("lan-file", SMALL)
    assert mcastlab.twin(scenario, runs=2, worlds=("sim", "sim")).equivalent
    slower = {"protocol.rate": "2Mbit"}
    assert not mcastlab.twin(scenario, runs=2, worlds=("sim", "sim"), second=slower).equivalent


def test_an_unknown_world_is_refused() -> None:
    with pytest.raises(mcastlab.UsageError, match=r"^on: value 'moon' is not allowed; one of sim, emu"):
        mcastlab.run("lan-file", on="moon")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "x"])
def test_a_seed_that_a_scenario_cannot_have_is_refused(seed: Any) -> None:
    with pytest.raises(
        mcastlab.UsageError, match=r"^seed: value .* is not allowed; a whole number from 0 to 18446744073709551615$"
    ):
        mcastlab.run("lan-file", seed=seed)


def test_a_comparison_needs_a_run_and_two_protocols() -> None:
    with pytest.raises(mcastlab.UsageError, match=r"^runs: value 0 is not allowed; a whole number from 1 on$"):
        mcastlab.compare("lan-file", ["norm", "n2"], runs=0)
    with pytest.raises(mcastlab.UsageError, match="at least two, all different"):
        mcastlab.compare("lan-file", [])


def test_a_twin_needs_two_pairs_of_runs() -> None:
    with pytest.raises(mcastlab.UsageError, match=r"^runs: value 0 is not allowed; a whole number from 2 to 1000$"):
        mcastlab.twin("lan-file", runs=0, worlds=("sim", "sim"))
