"""Summary statistics of groups of runs: count, mean, standard deviation, confidence intervals and percentiles of a metric."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, sqrt
from typing import Any

from experiments.analysis.bootstrap import bootstrap
from experiments.analysis.runs import Runs, axis_column, metric_column
from experiments.compare.paired import student_quantile

__all__ = ["EXACT_UP_TO", "PERCENTILES", "GroupSummary", "half_width", "sort_key", "summarise", "without_nan"]

PERCENTILES = (5, 25, 50, 75, 95)
EXACT_UP_TO = 2_000_000
"""Runs up to which percentiles are exact by default; exact percentiles of ten million runs take long."""
ACCURACY = 1000
"""The rank of an approximate percentile is off by at most 1/ACCURACY of the group's size."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One metric of one group of runs; `low`, `high`: Student's t interval; `boot_*`: bootstrap interval; None for one run."""

    keys: dict[str, Any]
    metric: str
    count: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    boot_low: float | None
    boot_high: float | None
    least: float
    most: float
    percentiles: dict[int, float]

    @property
    def error(self) -> float | None:
        """Standard error of the mean; None for a single run."""
        return None if self.sd is None else self.sd / sqrt(self.count)

    def plain(self) -> dict[str, Any]:
        """Return one flat row: the keys, then the numbers."""
        row = asdict(self)
        keys, percentiles = row.pop("keys"), row.pop("percentiles")
        return {**keys, **row, **{f"p{rank}": value for rank, value in percentiles.items()}}


def summarise(
    runs: Runs,
    by: Sequence[str],
    metrics: Sequence[str],
    *,
    percentiles: Sequence[int] = PERCENTILES,
    exact: bool | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
) -> list[GroupSummary]:
    """Summarise every metric of every group, sorted by the keys.

    `exact` selects exact or approximate percentiles (None: exact up to EXACT_UP_TO runs); `resamples` 0 skips the bootstrap.
    """
    if exact is None:
        exact = runs.count <= EXACT_UP_TO
    keys = [axis_column(name) for name in by]
    wanted = [item for metric in metrics for item in _aggregates(metric_column(metric), percentiles, exact)]
    rows = without_nan(runs.ok, metrics).groupBy(*keys).agg(*wanted).collect()
    rows.sort(key=lambda row: tuple(sort_key(row[key]) for key in keys))
    resampled = bootstrap(runs, by, metrics, rows, confidence, resamples) if resamples else {}
    return [
        group
        for metric in metrics
        for row in rows
        if (group := _group(row, by, metric, percentiles, confidence, resampled)) is not None
    ]


def without_nan(frame: Any, metrics: Sequence[str]) -> Any:
    """Replace not-a-number by null in the columns of the metrics, so that aggregates ignore it."""
    from pyspark.sql import functions as f

    columns = [metric_column(metric) for metric in metrics]
    return frame.withColumns({name: f.when(~f.isnan(f.col(name)), f.col(name)) for name in columns})


def _aggregates(column: str, percentiles: Sequence[int], exact: bool) -> list[Any]:
    from pyspark.sql import functions as f

    at = ", ".join(str(rank / 100) for rank in percentiles)
    call = f"percentile({column}, array({at}))" if exact else f"percentile_approx({column}, array({at}), {ACCURACY})"
    col = f.col(column)
    found = {"n": f.count(col), "mean": f.avg(col), "sd": f.stddev_samp(col), "least": f.min(col), "most": f.max(col)}
    return [value.alias(f"{column}.{name}") for name, value in found.items()] + [f.expr(call).alias(f"{column}.at")]


def _group(
    row: Any,
    by: Sequence[str],
    metric: str,
    percentiles: Sequence[int],
    confidence: float,
    resampled: dict[tuple[Any, ...], tuple[float, float]],
) -> GroupSummary | None:
    column = metric_column(metric)
    count, mean, sd = row[f"{column}.n"], row[f"{column}.mean"], row[f"{column}.sd"]
    if not count:
        return None
    keys = tuple(row[axis_column(name)] for name in by)
    wide = half_width(sd, count, confidence)
    boot_low, boot_high = resampled.get((metric, *keys), (None, None))
    low, high = (None, None) if wide is None else (mean - wide, mean + wide)
    at = dict(zip(percentiles, row[f"{column}.at"], strict=True))
    return GroupSummary(
        keys=dict(zip(by, keys, strict=True)),
        metric=metric,
        count=count,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        boot_low=boot_low,
        boot_high=boot_high,
        least=row[f"{column}.least"],
        most=row[f"{column}.most"],
        percentiles=at,
    )


def half_width(sd: float | None, count: int, confidence: float = 0.95) -> float | None:
    """Return half the width of Student's t interval of a mean; None for a single value."""
    if sd is None or count < 2 or not isfinite(sd):
        return None
    return student_quantile(0.5 + confidence / 2, count - 1) * sd / sqrt(count)


def sort_key(value: Any) -> tuple[int, float, str]:
    """Return a key that sorts numbers by size, then strings, then null."""
    if value is None:
        return (2, inf, "")
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, float(value), "")
