"""Summary statistics of groups of runs: count, mean, standard deviation, confidence intervals and percentiles of a metric."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import inf, sqrt
from typing import Any

from experiments.analysis.bootstrap import bootstrap
from experiments.analysis.derived import kind_of
from experiments.analysis.runs import Runs, axis_column, flat_row, metric_column
from experiments.statistics.intervals import Interval, mean_interval
from experiments.sweep.spec.metrics import METRICS

__all__ = [
    "ACCURACY",
    "EXACT_UP_TO",
    "PERCENTILES",
    "RESAMPLES",
    "GroupSummary",
    "GroupWithoutValues",
    "sort_key",
    "summarise",
    "summarise_all",
    "without_nan",
]

PERCENTILES = (5, 25, 50, 75, 95)
RESAMPLES = 1000
"""Resamples of a bootstrap interval."""
EXACT_UP_TO = 2_000_000
"""Runs up to which percentiles are exact by default; exact percentiles of ten million runs take long."""
ACCURACY = 1000
"""The rank of an approximate percentile is off by at most 1/ACCURACY of the group's size."""


@dataclass(frozen=True, slots=True)
class GroupWithoutValues:
    """A group of runs none of which has a value of a metric."""

    keys: dict[str, Any]
    metric: str
    left_out: int

    def plain(self) -> dict[str, Any]:
        """Return a flat row like that of a `GroupSummary`, whose numbers are None."""
        names = [field.name for field in fields(GroupSummary) if field.name not in ("keys", "percentiles", "top")]
        numbers = dict.fromkeys([*names, *(f"p{rank}" for rank in PERCENTILES)])
        return flat_row(self.keys, numbers | {"metric": self.metric, "count": 0, "left_out": self.left_out})


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One metric of one group of runs. None for a single run: `low`, `high`, the interval of the mean; `boot_*`, by bootstrap.

    `top` is the largest possible value of a metric that has one.
    """

    keys: dict[str, Any]
    metric: str
    count: int
    left_out: int
    """Runs without a value, as incomplete ones without a completion time."""
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    boot_low: float | None
    boot_high: float | None
    least: float
    most: float
    percentiles: dict[int, float]
    top: float

    @property
    def error(self) -> float | None:
        """Standard error of the mean; None for a single run."""
        return None if self.sd is None else self.sd / sqrt(self.count)

    def interval(self, confidence: float) -> Interval | None:
        """Return the interval of the mean within the range of the metric; None for a single run."""
        return mean_interval(self.mean, self.sd, self.count, kind_of(self.metric), confidence, self.top)

    def plain(self) -> dict[str, Any]:
        """Return one flat row: the keys, then the numbers."""
        row = asdict(self)
        keys, percentiles, _ = row.pop("keys"), row.pop("percentiles"), row.pop("top")
        return flat_row(keys, row | {f"p{rank}": value for rank, value in percentiles.items()})


def summarise(
    runs: Runs,
    by: Sequence[str],
    metrics: Sequence[str],
    *,
    percentiles: Sequence[int] = PERCENTILES,
    exact: bool | None = None,
    resamples: int = RESAMPLES,
) -> list[GroupSummary]:
    """Summarise every metric of every group that has a value of it, with 95 % intervals, sorted by the keys.

    `exact` selects exact or approximate percentiles (None: exact up to EXACT_UP_TO runs); `resamples` 0 skips the bootstrap.
    """
    if exact is None:
        exact = runs.count <= EXACT_UP_TO
    found = summarise_all(runs, by, metrics, percentiles, exact, 0.95, resamples)
    return [each for each in found if isinstance(each, GroupSummary)]


def summarise_all(
    runs: Runs,
    by: Sequence[str],
    metrics: Sequence[str],
    percentiles: Sequence[int],
    exact: bool,
    confidence: float,
    resamples: int,
) -> list[GroupSummary | GroupWithoutValues]:
    """Summarise every metric of every group like `summarise`, at a confidence, groups without a value of it included."""
    keys = [axis_column(name) for name in by]
    wanted = [item for metric in metrics for item in _aggregates(metric, runs.metrics, percentiles, exact)]
    rows = without_nan(runs.ok, metrics).groupBy(*keys).agg(*wanted).collect()
    rows.sort(key=lambda row: tuple(sort_key(row[key]) for key in keys))
    resampled = bootstrap(runs, by, metrics, rows, confidence, resamples) if resamples else {}
    return [_group(row, by, metric, percentiles, confidence, resampled) for metric in metrics for row in rows]


def without_nan(frame: Any, metrics: Sequence[str]) -> Any:
    """Replace not-a-number by null in the columns of the metrics, so that aggregates ignore it."""
    from pyspark.sql import functions as f

    columns = [metric_column(metric) for metric in metrics]
    return frame.withColumns({name: f.when(~f.isnan(f.col(name)), f.col(name)) for name in columns})


def _aggregates(metric: str, known: Sequence[str], percentiles: Sequence[int], exact: bool) -> list[Any]:
    from pyspark.sql import functions as f

    column, bound = metric_column(metric), METRICS[metric].of if metric in METRICS else None
    at = ", ".join(str(rank / 100) for rank in percentiles)
    call = f"percentile({column}, array({at}))" if exact else f"percentile_approx({column}, array({at}), {ACCURACY})"
    col = f.col(column)
    found = {
        "n": f.count(col),
        "all": f.count("*"),
        "mean": f.avg(col),
        "sd": f.stddev_samp(col),
        "least": f.min(col),
        "most": f.max(col),
    }
    found["top"] = f.max(metric_column(bound)) if bound is not None and bound in known else f.expr("1.0D")
    return [value.alias(f"{column}.{name}") for name, value in found.items()] + [f.expr(call).alias(f"{column}.at")]


def _group(
    row: Any,
    by: Sequence[str],
    metric: str,
    percentiles: Sequence[int],
    confidence: float,
    resampled: dict[tuple[Any, ...], tuple[float, float]],
) -> GroupSummary | GroupWithoutValues:
    column = metric_column(metric)
    count, mean, sd = row[f"{column}.n"], row[f"{column}.mean"], row[f"{column}.sd"]
    keys = tuple(row[axis_column(name)] for name in by)
    left_out = row[f"{column}.all"] - count
    if not count:
        return GroupWithoutValues(dict(zip(by, keys, strict=True)), metric, left_out)
    boot_low, boot_high = resampled.get((metric, *keys), (None, None))
    low, high = mean_interval(mean, sd, count, kind_of(metric), confidence, row[f"{column}.top"]) or (None, None)
    at = dict(zip(percentiles, row[f"{column}.at"], strict=True))
    return GroupSummary(
        keys=dict(zip(by, keys, strict=True)),
        metric=metric,
        count=count,
        left_out=left_out,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        boot_low=boot_low,
        boot_high=boot_high,
        least=row[f"{column}.least"],
        most=row[f"{column}.most"],
        percentiles=at,
        top=row[f"{column}.top"],
    )


def sort_key(value: Any) -> tuple[int, float, str]:
    """Return a key that sorts numbers by size, then strings, then null."""
    if value is None:
        return (2, inf, "")
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, float(value), "")
