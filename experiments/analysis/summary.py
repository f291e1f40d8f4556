"""Groups of runs in numbers: count, mean, spread, intervals and percentiles of a metric."""

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
"""Runs for which percentiles are exact unless something else is asked; an exact one of ten millions takes long."""
ACCURACY = 1000
"""An approximate percentile's rank is at most 1/ACCURACY of the group's size away."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One metric of one group of runs. `low` and `high` are Student's t, `boot_*` the bootstrap's; None for a single run."""

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
        """The standard error of the mean."""
        return None if self.sd is None else self.sd / sqrt(self.count)

    def plain(self) -> dict[str, Any]:
        """One flat row: the keys, then the numbers."""
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
    """Every metric of every group, in order of the keys. `exact`: how percentiles are found; `resamples` 0: no bootstrap."""
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
    """With not-a-number as missing, so that it spoils no mean."""
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
    """Half the width of Student's interval; None for a single value."""
    if sd is None or count < 2 or not isfinite(sd):
        return None
    return student_quantile(0.5 + confidence / 2, count - 1) * sd / sqrt(count)


def sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then words, then nothing: axes hold any of them."""
    if value is None:
        return (2, inf, "")
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, float(value), "")
