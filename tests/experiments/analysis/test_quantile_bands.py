"""Quantile bands of time series over many runs."""

from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.quantile_bands import quantile_bands
from experiments.analysis.runs import Runs, open_runs
from protocols.errors import UsageError
from tests.support.sweep_store import one_axis, write_runs, write_series


@pytest.fixture(scope="module")
def stored(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Runs]:
    """Write five runs at each of two points, with a queue that grows with time in proportion to the seed."""
    made = one_axis({1: [1.0] * 5, 2: [1.0] * 5})
    folder = write_runs(tmp_path_factory.mktemp("bands"), made)
    points = [
        {"run_id": item["run_id"], "name": name, "t": t / 10, "value": item["seed"] * factor * t / 10}
        for item in made
        for name, factor in (("queue", 1.0), ("rate", 2.0))
        for t in range(1, 101)
    ]
    return write_series(folder, points), open_runs(spark, folder)


def test_a_band_holds_the_quantiles_over_runs_in_each_bin(spark: Any, stored: tuple[Path, Runs]) -> None:
    folder, runs = stored
    found = quantile_bands(spark, folder, runs, ["n"], ["queue"], points=10)
    assert [(band.keys, band.name) for band in found] == [({"n": 1}, "queue"), ({"n": 2}, "queue")]
    band = found[0]
    assert band.times == pytest.approx([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert set(band.runs) == {5}
    # In the bin from 5 to 6 the mean time is 5.55, and the median seed is 3.
    assert band.at[50][5] == pytest.approx(3 * 5.55)
    assert band.at[5][5] == pytest.approx(1 * 5.55)
    assert band.at[95][5] == pytest.approx(5 * 5.55)


def test_missing_counts_are_zero_and_missing_levels_keep_their_value(spark: Any, tmp_path: Path) -> None:
    made = one_axis({1: [1.0, 1.0]})
    folder = write_runs(tmp_path, made)
    short, long = (item["run_id"] for item in made)
    points = [(short, "receivers_complete", 1.0, 7.0), (short, "nacks", 1.0, 4.0)]
    points += [(long, "receivers_complete", float(t), float(t)) for t in range(1, 5)] + [(long, "nacks", 3.0, 6.0)]
    write_series(folder, [dict(zip(("run_id", "name", "t", "value"), point, strict=True)) for point in points])
    nacks, complete = quantile_bands(spark, folder, open_runs(spark, folder), quantiles=(0, 100), points=4)
    assert (nacks.name, complete.name) == ("nacks", "receivers_complete")
    assert (nacks.at[100], nacks.at[0]) == ((4.0, 0.0, 6.0, 0.0), (0.0, 0.0, 0.0, 0.0))
    assert (complete.at[100], complete.at[0]) == ((7.0, 7.0, 7.0, 7.0), (1.0, 2.0, 3.0, 4.0))


def test_bands_of_every_series_are_computed_by_default(spark: Any, stored: tuple[Path, Runs]) -> None:
    folder, runs = stored
    assert [band.name for band in quantile_bands(spark, folder, runs)] == ["queue", "rate"]


def test_a_sweep_without_series_names_the_key_that_keeps_them(spark: Any, tmp_path: Path) -> None:
    folder = write_runs(tmp_path, one_axis({1: [1.0]}))
    with pytest.raises(UsageError, match=r"keep: \{series: 100ms\}"):
        quantile_bands(spark, folder, open_runs(spark, folder))


def test_a_series_that_was_not_stored_is_refused(spark: Any, stored: tuple[Path, Runs]) -> None:
    folder, runs = stored
    with pytest.raises(UsageError, match=r"--series: value 'x' is not allowed; one of queue, rate$"):
        quantile_bands(spark, folder, runs, names=["queue", "x"])
