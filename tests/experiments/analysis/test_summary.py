"""Summaries of groups of runs, compared with independent computations."""

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from experiments.analysis.bootstrap import CHUNKS, interval
from experiments.analysis.paired_variants import compare_variants
from experiments.analysis.runs import Runs, open_runs
from experiments.analysis.summary import GroupSummary, summarise
from experiments.statistics.intervals import mean_interval
from tests.experiments.sweep.synthetic import Rows
from tests.support.sweep_store import one_axis, row, write_runs


def one(groups: list[GroupSummary], **keys: Any) -> GroupSummary:
    """Return the only group with these values."""
    (found,) = [group for group in groups if all(group.keys[name] == value for name, value in keys.items())]
    return found


def test_a_group_is_summarised_by_mean_and_spread_of_its_successful_runs(runs: Runs, rows: Rows) -> None:
    groups = summarise(runs, ["topology.receivers", "protocol.name"], ["completion_time"])
    assert len(groups) == 6
    for group in groups:
        values = [
            item["m_completion_time"]
            for item in rows
            if (item["p_topology__receivers"], item["p_protocol__name"]) == tuple(group.keys.values())
            and item["m_completion_time"] is not None
        ]
        assert (group.count, group.least, group.most) == (len(values), min(values), max(values))
        assert group.mean == pytest.approx(fmean(values))
        assert group.sd == pytest.approx(stdev(values))
        assert (group.low, group.high) == pytest.approx(mean_interval(fmean(values), stdev(values), len(values), "positive"))
        ranks = list(group.percentiles)
        assert list(group.percentiles.values()) == pytest.approx(list(np.percentile(values, ranks)))


def test_failed_runs_and_missing_values_are_left_out(runs: Runs) -> None:
    groups = summarise(runs, ["topology.receivers", "protocol.name", "loss"], ["completion_time"])
    assert [group.count for group in groups[:2]] == [7, 7]
    assert {group.count for group in groups[2:]} == {8}


def test_groups_are_sorted_by_their_keys(runs: Runs) -> None:
    groups = summarise(runs, ["topology.receivers"], ["nacks_sent", "completion_time"], resamples=0)
    assert [(group.metric, group.keys["topology.receivers"]) for group in groups] == [
        (metric, count) for metric in ("nacks_sent", "completion_time") for count in (10, 20, 50)
    ]


def test_approximate_percentiles_are_group_values_near_the_exact_ones(runs: Runs) -> None:
    exact = summarise(runs, ["topology.receivers"], ["completion_time"], exact=True, resamples=0)
    rough = summarise(runs, ["topology.receivers"], ["completion_time"], exact=False, resamples=0)
    for one_, other in zip(exact, rough, strict=True):
        assert other.percentiles[50] == pytest.approx(one_.percentiles[50], abs=one_.most - one_.least)
        assert other.least <= other.percentiles[5] <= other.percentiles[95] <= other.most


def test_a_single_run_has_no_interval(spark: Any, tmp_path: Path) -> None:
    group = summarise(open_runs(spark, write_runs(tmp_path, one_axis({1: [3.0]}))), ["n"], ["completion_time"])[0]
    assert (group.mean, group.sd, group.low, group.boot_low, group.error) == (3.0, None, None, None, None)


def test_the_bootstrap_is_reproducible_and_near_students_interval(runs: Runs) -> None:
    first, second = (summarise(runs, ["topology.receivers"], ["completion_time"]) for _ in range(2))
    assert [(group.boot_low, group.boot_high) for group in first] == [(group.boot_low, group.boot_high) for group in second]
    for group in first:
        assert group.low is not None
        assert group.boot_low is not None
        assert group.boot_low == pytest.approx(group.low, abs=0.2 * (group.mean - group.low))


def test_bootstrap_intervals_have_their_nominal_coverage() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        low, high = interval(list(rng.exponential(size=60)))
        hits += low <= 1.0 <= high
    assert 0.90 <= hits / 400 <= 0.97


def test_large_groups_are_resampled_in_chunks_with_equal_intervals(spark: Any, tmp_path: Path) -> None:
    values = list(np.random.default_rng(2).normal(10, 3, size=6 * CHUNKS))
    found = open_runs(spark, write_runs(tmp_path, one_axis({1: values, 2: values[:50]})))
    large, small = summarise(found, ["n"], ["completion_time"])
    assert large.low is not None
    assert large.boot_low is not None
    assert large.mean - large.boot_low == pytest.approx(large.mean - large.low, rel=0.1)
    assert small.low is not None
    assert small.boot_low is not None
    assert small.mean - small.boot_low == pytest.approx(small.mean - small.low, rel=0.25)


def test_nan_is_a_missing_value(spark: Any, tmp_path: Path) -> None:
    made = one_axis({1: [1.0, float("nan"), 3.0]})
    group = summarise(open_runs(spark, write_runs(tmp_path, made)), ["n"], ["completion_time"])[0]
    assert (group.count, group.mean) == (2, 2.0)


def test_a_group_is_one_flat_row(runs: Runs) -> None:
    row = summarise(runs, ["protocol.name"], ["nacks_sent"], percentiles=(50,))[0].plain()
    assert list(row)[:5] == ["protocol.name", "metric", "count", "left_out", "mean"]
    assert "p50" in row
    assert one(summarise(runs, ["protocol.name"], ["nacks_sent"]), **{"protocol.name": "srm"}).count == 48


def test_intervals_stay_in_the_range_of_each_metric(spark: Any, tmp_path: Path) -> None:
    values = {
        "requests_per_loss": [0.1, 0.2, 9.0, 0.1, 0.2],
        "nacks_sent": [0.0, 0.0, 0.0, 0.0, 0.0],
        "loss": [0.001, 0.0, 0.0, 0.02, 0.0],
        "completed": [1.0, 1.0, 1.0, 1.0, 0.0],
        "receivers_complete": [10.0, 10.0, 9.0, 10.0, 10.0],
        "receivers": [10.0] * 5,
    }
    made = [row({"n": 1}, seed, {name: column[seed] for name, column in values.items()}) for seed in range(5)]
    groups = {each.metric: each for each in summarise(open_runs(spark, write_runs(tmp_path, made)), ["n"], tuple(values))}
    ends = {name: (each.low, each.high) for name, each in groups.items() if each.low is not None and each.high is not None}
    assert ends.keys() == values.keys()
    for name, (low, high) in ends.items():
        top = {"loss": 1.0, "completed": 1.0, "receivers_complete": 10.0}.get(name, 100.0)
        assert 0.0 <= low <= groups[name].mean <= high <= top, name
    # Student's interval of the first is -2.9 to 6.7; no NACK in five runs is possible with a mean up to 0.77.
    assert ends["requests_per_loss"][0] > 0
    assert ends["nacks_sent"] == pytest.approx((0.0, 0.768), abs=1e-3)
    assert ends["receivers"] == (10.0, 10.0)


def test_differences_may_be_negative(spark: Any, tmp_path: Path) -> None:
    made = [row({"n": n}, seed, {"nacks_sent": float(5 - n + seed % 2)}) for n in (1, 2) for seed in range(4)]
    (gap,) = compare_variants(open_runs(spark, write_runs(tmp_path, made)), "n", ["nacks_sent"])
    assert (gap.mean, gap.low, gap.high) == (-1.0, -1.0, -1.0)
