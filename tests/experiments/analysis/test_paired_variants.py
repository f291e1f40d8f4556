"""Variants paired by common random numbers."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.analysis_request import AnalysisRequest, analyse
from experiments.analysis.paired_variants import compare_variants, variants_of
from experiments.analysis.runs import Runs, open_runs
from protocols.errors import UsageError
from tests.support.sweep_store import row, write_runs


def test_a_constant_difference_is_found_in_noisy_runs(runs: Runs) -> None:
    gaps = compare_variants(runs, "protocol.name", ["completion_time"], ["topology.receivers"])
    assert [gap.keys for gap in gaps] == [{"topology.receivers": count} for count in (10, 20, 50)]
    for gap in gaps:
        assert (gap.base, gap.variant, gap.lower, gap.higher) == ("norm", "srm", 0.0, 1.0)
        assert (gap.mean, gap.low, gap.high) == pytest.approx((2.0, 2.0, 2.0))
        assert gap.clear


def test_a_run_without_a_partner_is_left_out(runs: Runs) -> None:
    (gap,) = compare_variants(runs, "protocol.name", ["completion_time"])
    assert gap.pairs == 48 - 2


def test_equal_values_are_neither_lower_nor_higher(runs: Runs) -> None:
    (gap,) = compare_variants(runs, "protocol.name", ["nacks_sent"])
    assert (gap.lower, gap.higher, gap.mean, gap.clear) == (0.0, 0.0, 0.0, False)


def test_axes_that_change_together_are_compared_as_one(spark: Any, tmp_path: Path) -> None:
    made = [
        row({"queue": 10 * a, "a": a, "b": b}, seed, {"completion_time": 2.0 * a + b + seed}, point=2 * a + b)
        for a in (0, 1)
        for b in (0, 1)
        for seed in (1, 2)
    ]
    folder = write_runs(tmp_path, made)
    (gap,) = compare_variants(open_runs(spark, folder), "queue", ["completion_time"])
    assert (gap.base, gap.variant, gap.pairs, gap.mean) == (0, 10, 4, 2.0)
    assert analyse(spark, folder, AnalysisRequest(compare="queue")).about.endswith("; a: always changed together with queue")


def test_an_axis_in_which_no_two_runs_differ_alone_is_refused(spark: Any, tmp_path: Path) -> None:
    made = [row({"a": a, "b": a // 2}, seed, {"completion_time": 1.0}, point=a) for a in (0, 1, 2, 3) for seed in (1, 2)]
    with pytest.raises(UsageError, match="--compare: value 'b' is not allowed; no two runs of one seed differ in it alone"):
        analyse(spark, write_runs(tmp_path, made), AnalysisRequest(compare="b"))


def test_changing_the_base_reverses_the_sign(runs: Runs) -> None:
    (gap,) = compare_variants(runs, "protocol.name", ["completion_time"], base="srm")
    assert (gap.base, gap.variant) == ("srm", "norm")
    assert gap.mean == pytest.approx(-2.0)


@pytest.mark.parametrize("written", ["0.05", "5%", "5e-2"])
def test_a_base_may_be_written_as_in_a_table_or_as_in_a_sweep_file(written: str, spark: Any, tmp_path: Path) -> None:
    made = [row({"loss": loss}, seed, {"nacks_sent": 100 * loss}) for loss in (0.01, 0.05) for seed in (1, 2)]
    found = analyse(spark, write_runs(tmp_path, made), AnalysisRequest(compare=f"loss={written}"))
    assert [(line["variant"], line["base"], line["mean"]) for line in found.rows] == [(0.01, 0.05, pytest.approx(-4.0))]
    assert found.about.startswith("paired differences to loss = 0.05 on equal seeds; ")


def test_a_truth_value_is_a_base_as_written_in_yaml(spark: Any, tmp_path: Path) -> None:
    made = [row({"hub": hub}, seed, {"nacks_sent": float(hub)}) for hub in (False, True) for seed in (1, 2)]
    (gap,) = compare_variants(open_runs(spark, write_runs(tmp_path, made)), "hub", ["nacks_sent"], base="true")
    assert (gap.variant, gap.base, gap.mean) == (False, True, -1.0)


def test_every_variant_is_compared_with_the_first(runs: Runs) -> None:
    gaps = compare_variants(runs, "topology.receivers", ["nacks_sent"])
    assert [(gap.base, gap.variant, gap.mean) for gap in gaps] == [(10, 20, 10.0), (10, 50, 40.0)]


def test_the_compared_axis_may_be_listed_among_the_groups(runs: Runs) -> None:
    (gap,) = compare_variants(runs, "protocol.name", ["nacks_sent"], ["protocol.name"])
    assert gap.keys == {}


def test_a_base_without_runs_is_refused(runs: Runs) -> None:
    with pytest.raises(UsageError, match=r"--compare: value 'protocol.name=tcp' is not allowed; one of norm, srm"):
        compare_variants(runs, "protocol.name", ["completion_time"], base="tcp")


def test_an_axis_of_one_value_is_refused(runs: Runs) -> None:
    only = Runs(runs.frame.where("p_protocol__name = 'norm'"), runs.axes, runs.metrics, 48, 0, runs.version, runs.versions)
    with pytest.raises(UsageError, match="an axis with at least two values, it has 1"):
        compare_variants(only, "protocol.name", ["completion_time"])


def test_variants_are_sorted(runs: Runs) -> None:
    found: list[Any] = variants_of(runs, "topology.receivers")
    assert found == [10, 20, 50]
