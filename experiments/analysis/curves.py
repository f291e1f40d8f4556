"""Time series of many runs as bands: the quantiles of a quantity at each time, over the runs of a group."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.analysis.runs import Runs, axis_column
from experiments.analysis.summary import order
from experiments.sweep import store
from protocols.errors import UsageError

__all__ = ["QUANTILES", "Band", "bands"]

QUANTILES = (5, 25, 50, 75, 95)
POINTS = 100
ACCURACY = 1000


@dataclass(frozen=True, slots=True)
class Band:
    """Quantiles over the runs of a group: `at[rank][i]` is the one of `times[i]`, the beginning of a bin."""

    keys: dict[str, Any]
    name: str
    times: tuple[float, ...]
    at: dict[int, tuple[float, ...]]
    runs: tuple[int, ...]

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each time."""
        return [
            {
                **self.keys,
                "name": self.name,
                "t": t,
                "runs": self.runs[n],
                **{f"p{rank}": line[n] for rank, line in self.at.items()},
            }
            for n, t in enumerate(self.times)
        ]


def bands(
    session: Any,
    folder: Path,
    runs: Runs,
    by: Sequence[str] = (),
    names: Sequence[str] = (),
    quantiles: Sequence[int] = QUANTILES,
    points: int = POINTS,
) -> list[Band]:
    """Bands of every group and quantity (all of them unless `names`), over `points` bins of time from 0 to the end.

    A run counts once in a bin, with the mean of what it had there.
    """
    from pyspark.sql import functions as f

    keys = [axis_column(name) for name in by]
    series: Any = store.series(session, folder)
    if names:
        series = series.where(f.col("name").isin(list(names)))
    end = series.agg(f.max("t")).first()[0]
    if end is None:
        raise UsageError(f"--series: value {', '.join(names)!r} is not allowed; the sweep kept no such time series")
    width = end / points or 1.0
    place = f.least(f.floor(f.col("t") / width), f.lit(points - 1)).alias("_bin")
    each = series.groupBy("run_id", "name", place).agg(f.avg("value").alias("_value"))
    joined = each.join(runs.ok.select("run_id", *keys), "run_id")
    at = ", ".join(str(rank / 100) for rank in quantiles)
    call = f.expr(f"percentile_approx(_value, array({at}), {ACCURACY})").alias("_at")
    rows = joined.groupBy(*keys, "name", "_bin").agg(call, f.count("*").alias("_n")).collect()
    return _together(rows, by, quantiles, width)


def _together(rows: Sequence[Any], by: Sequence[str], quantiles: Sequence[int], width: float) -> list[Band]:
    groups: dict[tuple[Any, ...], list[tuple[int, list[float], int]]] = {}
    for *key, place, at, count in rows:
        groups.setdefault(tuple(key), []).append((place, at, count))
    found = []
    for key in sorted(groups, key=lambda key: tuple(map(order, key))):
        parts = sorted(groups[key])
        at = {rank: tuple(values[n] for _, values, _ in parts) for n, rank in enumerate(quantiles)}
        times = tuple(place * width for place, _, _ in parts)
        found.append(Band(dict(zip(by, key, strict=False)), key[-1], times, at, tuple(count for _, _, count in parts)))
    return found
