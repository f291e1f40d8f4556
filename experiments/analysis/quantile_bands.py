"""Time series of many runs as quantile bands: quantiles of a quantity over the runs of a group, per time bin."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from experiments.analysis.runs import Runs, axis_column, flat_row
from experiments.analysis.summary import ACCURACY, sort_key
from experiments.scenario.suggestion import one_of
from experiments.sweep.store import datasets as store
from protocols.errors import UsageError

__all__ = ["QUANTILES", "QuantileBand", "quantile_bands"]

QUANTILES = (5, 25, 50, 75, 95)
POINTS = 100
"""Default number of time bins."""
TOLERANCE = 1e-6
"""Tolerance as a fraction of a bin; times are sums of intervals and carry rounding errors."""
CUMULATIVE = ("objects_received", "receivers_complete")
"""Cumulative quantities, by the first word of the name; of all others rows of value 0 are omitted."""


@dataclass(frozen=True, slots=True)
class QuantileBand:
    """Quantiles over the runs of a group: `at[rank][i]` belongs to the bin that begins at `times[i]` seconds."""

    keys: dict[str, Any]
    name: str
    times: tuple[float, ...]
    at: dict[int, tuple[float, ...]]
    runs: tuple[int, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per time."""
        return [
            flat_row(
                self.keys,
                {"name": self.name, "t": t, "runs": self.runs[n]} | {f"p{rank}": line[n] for rank, line in self.at.items()},
            )
            for n, t in enumerate(self.times)
        ]


def quantile_bands(
    session: Any,
    folder: Path,
    runs: Runs,
    by: Sequence[str] = (),
    names: Sequence[str] = (),
    quantiles: Sequence[int] = QUANTILES,
    points: int = POINTS,
) -> list[QuantileBand]:
    """Return bands of every group and quantity (all, or those in `names`), over at most `points` time bins.

    Each run counts once per bin, with the mean of its intervals there, and 0 where it has no row. After its end a run counts
    with 0, or with its final value if the quantity is cumulative. Raises UsageError for a name of which the sweep kept none.
    """
    from pyspark.sql import functions as f

    series: Any = store.series(session, folder)
    keys = [axis_column(name) for name in by]
    members = runs.ok.select("run_id", *keys).join(series.select("run_id").distinct(), "run_id")
    spans = {row[0]: row[1:] for row in series.where("t > 0").groupBy("name").agg(f.min("t"), f.max("t")).collect()}
    wanted = _known(names, sorted(spans))
    series = series.where(f.col("name").isin(wanted))
    step, end = min(spans[name][0] for name in wanted), max(spans[name][1] for name in wanted)
    each = ceil(end / step / points)
    bins = ceil(end / (step * each) - TOLERANCE)
    grid = members.withColumn("name", f.explode(f.lit(wanted))).withColumn(
        "_bin", f.explode(f.sequence(f.lit(0), f.lit(bins - 1)))
    )
    filled = _filled(grid, series, step * each, each)
    at = ", ".join(str(rank / 100) for rank in quantiles)
    call = f.expr(f"percentile_approx(_value, array({at}), {ACCURACY})").alias("_at")
    rows = filled.groupBy(*keys, "name", "_bin").agg(call, f.count("*").alias("_n")).collect()
    return _collate(rows, by, quantiles, step * each)


def _known(names: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Return the names, or without any all that the sweep kept. UsageError if it did not keep one, or none at all."""
    if not kept:
        raise UsageError("--series: there are none; a sweep keeps them with keep: {series: 100ms} in its file")
    for name in names:
        if name not in kept:
            raise UsageError(f"--series: value {name!r} is not allowed; {one_of(name, kept)}")
    return list(names or kept)


def _filled(grid: Any, series: Any, width: float, each: int) -> Any:
    """Return one value per run, quantity and bin of the grid; `each` intervals make a bin."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    cumulative = f.split("name", " ")[0].isin(list(CUMULATIVE))
    # A row carries the end of its interval.
    place = f.greatest(f.ceil(f.col("t") / width - TOLERANCE) - 1, f.lit(0)).cast("int").alias("_bin")
    known = series.groupBy("run_id", "name", place).agg(f.sum("value").alias("_sum"), f.max("value").alias("_most"))
    before = Window.partitionBy("run_id", "name").orderBy("_bin")
    value = f.when(cumulative, f.last("_most", ignorenulls=True).over(before)).otherwise(f.col("_sum") / each)
    return grid.join(known, ["run_id", "name", "_bin"], "left").withColumn("_value", f.coalesce(value, f.lit(0.0)))


def _collate(rows: Sequence[Any], by: Sequence[str], quantiles: Sequence[int], width: float) -> list[QuantileBand]:
    groups: dict[tuple[Any, ...], list[tuple[int, list[float], int]]] = {}
    for *key, place, at, count in rows:
        groups.setdefault(tuple(key), []).append((place, at, count))
    found = []
    for key in sorted(groups, key=lambda key: tuple(map(sort_key, key))):
        parts = sorted(groups[key])
        at = {rank: tuple(values[n] for _, values, _ in parts) for n, rank in enumerate(quantiles)}
        times = tuple(place * width for place, _, _ in parts)
        found.append(QuantileBand(dict(zip(by, key, strict=False)), key[-1], times, at, tuple(count for _, _, count in parts)))
    return found
