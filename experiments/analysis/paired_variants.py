"""Paired comparison of variants: runs with equal seeds that differ in one axis only (common random numbers)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from experiments.analysis.runs import CASE, Runs, axis_column, flat_row, metric_column
from experiments.analysis.summary import sort_key
from experiments.statistics.intervals import mean_interval
from experiments.sweep.spec.quantities import number_of
from protocols.errors import UsageError

__all__ = [
    "VariantDifference",
    "VariantWithoutPairs",
    "changing_with",
    "compare_variants",
    "variants_of",
    "compare_all_variants",
]

BASE_PREFIX = "_base_"
"""Prefix of the columns of the base run of a pair."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class VariantDifference:
    """Paired difference of a metric of `variant` to that of `base`; `lower` and `higher` are fractions of the pairs."""

    keys: dict[str, Any]
    metric: str
    axis: str
    variant: Any
    base: Any
    pairs: int
    left_out: int
    """Pairs of which a run has no value, as an incomplete one has no completion time."""
    mean: float
    low: float | None
    high: float | None
    lower: float
    higher: float

    @property
    def clear(self) -> bool:
        """Whether the confidence interval excludes zero."""
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high

    def plain(self) -> dict[str, Any]:
        """Return one flat row: the keys, then the numbers."""
        row = asdict(self)
        return flat_row(row.pop("keys"), row | {"clear": self.clear})


@dataclass(frozen=True, slots=True)
class VariantWithoutPairs:
    """A variant no pair of which has a value of a metric in both runs."""

    keys: dict[str, Any]
    metric: str
    axis: str
    variant: Any
    base: Any
    left_out: int

    def plain(self) -> dict[str, Any]:
        """Return a flat row like that of a `VariantDifference`, whose numbers are None."""
        names = [field.name for field in fields(VariantDifference) if field.name != "keys"]
        row = asdict(self)
        return flat_row(row.pop("keys"), dict.fromkeys([*names, "clear"]) | row | {"pairs": 0})


def variants_of(runs: Runs, axis: str) -> list[Any]:
    """Return the sorted values of an axis."""
    column = axis_column(axis)
    return sorted((row[0] for row in runs.judged.select(column).distinct().collect()), key=sort_key)


def changing_with(runs: Runs, axis: str) -> list[str]:
    """Return the other axes that have one value for each value of `axis` and another for each other, as zipped ones."""
    from pyspark.sql import functions as f

    others = [name for name in runs.axes if name != axis]
    counts = [(f.countDistinct(axis_column(name)), f.countDistinct(axis_column(axis), axis_column(name))) for name in others]
    found = runs.judged.agg(f.countDistinct(axis_column(axis)), *(count for pair in counts for count in pair)).first()
    return [name for name, alone, both in zip(others, found[1::2], found[2::2], strict=True) if alone == both == found[0]]


def compare_variants(
    runs: Runs, axis: str, metrics: Sequence[str], by: Sequence[str] = (), base: Any = None
) -> list[VariantDifference]:
    """Compare every value of `axis` with `base` (default: the first value), within the groups of `by`.

    The two runs of a pair have equal seed, case and values of all other axes, except for those that always change together with
    this one; runs without a partner are left out. Intervals are 95 % Student's t intervals of the mean difference. Raises
    UsageError for an axis of one value or an unknown base.
    """
    found = compare_all_variants(runs, axis, metrics, by, base, CONFIDENCE)
    return [each for each in found if isinstance(each, VariantDifference)]


def compare_all_variants(
    runs: Runs, axis: str, metrics: Sequence[str], by: Sequence[str], base: Any, confidence: float
) -> list[VariantDifference | VariantWithoutPairs]:
    """Compare like `compare_variants`, at a confidence, and include variants whose pairs have no value of a metric."""
    values = variants_of(runs, axis)
    chosen = _base(axis, values, base)
    from pyspark.sql import functions as f

    pairs = _pairs(runs, axis, metrics, chosen)
    keys = [axis_column(name) for name in by if name != axis]
    wanted = [item for metric in metrics for item in _aggregates(metric_column(metric))]
    rows = pairs.groupBy(*keys, f.col(axis_column(axis))).agg(*wanted).collect()
    rows.sort(key=lambda row: tuple(sort_key(value) for value in row[: len(keys) + 1]))
    names = [name for name in by if name != axis]
    return [
        _gap(dict(zip(names, row, strict=False)), metric, axis, row, chosen, confidence) for metric in metrics for row in rows
    ]


def _base(axis: str, values: list[Any], base: Any) -> Any:
    if len(values) < 2:
        raise UsageError(f"--compare: value {axis!r} is not allowed; an axis with at least two values, it has {len(values)}")
    if base is None:
        return values[0]
    # As tables show it, or as a sweep file writes it, as in 5% and true.
    found = [value for value in values if str(base) in (str(value), json.dumps(value))]
    found = found or [value for value in values if not isinstance(value, bool) and value == number_of(base)]
    if not found:
        raise UsageError(f"--compare: value '{axis}={base}' is not allowed; one of {', '.join(map(str, values))}")
    return found[0]


def _pairs(runs: Runs, axis: str, metrics: Sequence[str], base: Any) -> Any:
    """Join pairs: all columns of the variant, and the base's metrics in columns with the prefix BASE_PREFIX."""
    from pyspark.sql import functions as f

    column = axis_column(axis)
    free = {axis, *changing_with(runs, axis)}
    same = [axis_column(name) for name in runs.axes if name not in free and name != CASE] + ["seed"]
    if CASE in runs.frame.columns and CASE not in free:
        same.append(CASE)
    judged = runs.judged
    left = judged.where(f.col(column) != f.lit(base)).alias("ours")
    base_columns = [f.col(name).alias(BASE_PREFIX + name) for name in (*same, *map(metric_column, metrics))]
    right = judged.where(f.col(column) == f.lit(base)).select(*base_columns)
    on = [left[name].eqNullSafe(right[BASE_PREFIX + name]) for name in same]
    return left.join(right, on)


def _aggregates(column: str) -> list[Any]:
    from pyspark.sql import functions as f

    gap = f.col(column) - f.col(BASE_PREFIX + column)
    gap = f.when(~f.isnan(gap), gap)
    shares = {"lower": f.avg((gap < 0).cast("double")), "higher": f.avg((gap > 0).cast("double"))}
    found = {"n": f.count(gap), "all": f.count("*"), "mean": f.avg(gap), "sd": f.stddev_samp(gap), **shares}
    return [value.alias(f"{column}.{name}") for name, value in found.items()]


def _gap(
    keys: dict[str, Any], metric: str, axis: str, row: Any, base: Any, confidence: float
) -> VariantDifference | VariantWithoutPairs:
    column = metric_column(metric)
    mean, pairs = row[f"{column}.mean"], row[f"{column}.n"]
    left_out = row[f"{column}.all"] - pairs
    if not pairs:
        return VariantWithoutPairs(keys, metric, axis, row[axis_column(axis)], base, left_out)
    low, high = mean_interval(mean, row[f"{column}.sd"], pairs, "real", confidence) or (None, None)
    return VariantDifference(
        keys=keys,
        metric=metric,
        axis=axis,
        variant=row[axis_column(axis)],
        base=base,
        pairs=pairs,
        left_out=left_out,
        mean=mean,
        low=low,
        high=high,
        lower=row[f"{column}.lower"],
        higher=row[f"{column}.higher"],
    )
