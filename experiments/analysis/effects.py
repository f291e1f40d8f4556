"""Variance decomposition of a metric over the axes of a sweep, and rank correlation of each axis with the metric.

`share` is the main effect of an axis: the variance of the means over its values, divided by the total variance. The variance
between points not explained by main effects is interaction; the variance between replications of a point is the residual,
called chance. On a balanced grid the parts add up to one. Axes that always change together, as zipped ones, are one effect: no
run can tell them apart. Numeric axes with many values (sampled ones) are first cut into BINS quantile groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.analysis.runs import Runs, axis_column, metric_column
from experiments.analysis.summary import without_nan

__all__ = ["BINS", "SAMPLE", "MainEffect", "VarianceDecomposition", "effects", "rank_correlation"]

BINS = 10
MOST_VALUES = 20
"""Largest number of values an axis may have without being binned."""
NUMBERS = ("double", "float", "bigint", "int", "smallint", "tinyint", "boolean")
SAMPLE = 200_000
"""Largest number of runs whose ranks are compared; of more runs a sample is selected by a hash of their id."""


@dataclass(frozen=True, slots=True)
class MainEffect:
    """Main effect of an axis on a metric, or of several that always change together.

    `correlation` (Spearman) is that of the first, None if it is not numeric.
    """

    axes: tuple[str, ...]
    correlation: float | None
    share: float
    values: int

    @property
    def axis(self) -> str:
        """The name of the axis, or several with commas between them."""
        return ", ".join(self.axes)

    def plain(self) -> dict[str, Any]:
        """Return the effect as plain values."""
        return {"axis": self.axis, "correlation": self.correlation, "share": self.share, "values": self.values}


@dataclass(frozen=True, slots=True)
class VarianceDecomposition:
    """Fractions of a metric's variance: axes in descending order, their interaction, and the residual (`chance`)."""

    metric: str
    count: int
    left_out: int
    """Runs without a value, as incomplete ones without a completion time."""
    variance: float
    axes: tuple[MainEffect, ...]
    interaction: float | None
    chance: float | None

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per axis, then rows for interaction and chance."""
        head = {"metric": self.metric, "count": self.count, "left_out": self.left_out}
        rest = (("(interaction)", self.interaction), ("(chance)", self.chance))
        found: list[dict[str, Any]] = [{**head, **effect.plain()} for effect in self.axes]
        blank = {"correlation": None, "values": None}
        return found + [{**head, "axis": name, "share": share, **blank} for name, share in rest if share is not None]


def effects(runs: Runs, metrics: Sequence[str], axes: Sequence[str] | None = None) -> list[VarianceDecomposition]:
    """Decompose the variance of each metric that varied; empty if no axis did. Takes three passes over the runs in total."""
    names = list(runs.axes if axes is None else axes)
    known = without_nan(runs.judged, metrics)
    varied, spreads, total = _moments(known, names, metrics)
    spreads = {metric: spread for metric, spread in spreads.items() if spread[1]}
    if not varied or not spreads:
        return []
    points = _points(known, list(spreads), _labels(known, varied))
    correlations = _correlations(known, list(spreads), list(varied), runs.count)
    return [_decompose(metric, spread, total, points, varied, correlations) for metric, spread in spreads.items()]


def _moments(
    known: Any, names: Sequence[str], metrics: Sequence[str]
) -> tuple[dict[str, int], dict[str, tuple[int, float | None]], int]:
    """Return the number of values of each axis that has several, (count, population variance) of each metric, and the runs."""
    from pyspark.sql import functions as f

    values = [f.countDistinct(axis_column(name)) for name in names]
    columns = [metric_column(metric) for metric in metrics]
    row = known.agg(*values, *(f.count(name) for name in columns), *(f.var_pop(name) for name in columns), f.count("*")).first()
    counts, variances = row[len(names) : len(names) + len(columns)], row[len(names) + len(columns) : -1]
    varied = {name: number for name, number in zip(names, row, strict=False) if number > 1}
    return varied, dict(zip(metrics, zip(counts, variances, strict=True), strict=True)), row[-1]


def _decompose(
    metric: str,
    spread: tuple[int, float | None],
    total: int,
    points: list[Any],
    varied: Mapping[str, int],
    correlations: Mapping[tuple[str, str], float],
) -> VarianceDecomposition:
    count, variance = spread
    assert variance, "the metric varied"
    column = metric_column(metric)
    rows = [row for row in points if row[f"{column}.n"]]
    sizes = np.array([row[f"{column}.n"] for row in rows], dtype=np.float64)
    means = np.array([row[f"{column}.mean"] for row in rows])
    labels = {name: [row[axis_column(name)] for row in rows] for name in varied}
    # Where only runs at one value of an axis have the metric, its effect can't be computed from them.
    alone = [name for name, values in labels.items() if len(set(values)) == 1]
    groups = _together({name: values for name, values in labels.items() if name not in alone})
    shares = {group: _between(labels[group[0]], sizes, means) / variance for group in groups}
    found = [MainEffect(group, correlations.get((metric, group[0])), shares[group], varied[group[0]]) for group in groups]
    found += [MainEffect((name,), None, 0.0, 1) for name in alone]
    found.sort(key=lambda effect: -effect.share)
    chance = interaction = None
    if len(rows) < count:
        # Only replications of a point separate residual variance from interaction.
        explained = _between(range(len(rows)), sizes, means) / variance
        chance, interaction = 1.0 - explained, explained - sum(shares.values())
    return VarianceDecomposition(metric, count, total - count, variance, tuple(found), interaction, chance)


def _together(labels: Mapping[str, Sequence[Any]]) -> list[tuple[str, ...]]:
    """Return the axes in groups that divide the points in the same way; `labels` are the values of each axis at the points."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for name, values in labels.items():
        first = {value: place for place, value in reversed(list(enumerate(values)))}
        groups.setdefault(tuple(first[value] for value in values), []).append(name)
    return [tuple(group) for group in groups.values()]


def _labels(known: Any, varied: Mapping[str, int]) -> list[Any]:
    """Return grouping columns for the axes: their values, or quantile groups if an axis has many."""
    from pyspark.sql import functions as f

    types = dict(known.dtypes)
    many = [name for name, number in varied.items() if number > MOST_VALUES and types[axis_column(name)] in NUMBERS]
    at = [n / BINS for n in range(1, BINS)]
    edges = known.agg(*(f.percentile_approx(axis_column(name), at, 1000) for name in many)).first() if many else ()
    cut = dict(zip(many, edges, strict=True))
    return [_bin(axis_column(name), cut[name]) if name in cut else f.col(axis_column(name)) for name in varied]


def _bin(column: str, edges: Sequence[float]) -> Any:
    """Return the column of the index of the quantile group a value is in."""
    from pyspark.sql import functions as f

    label = f.lit(0)
    for edge in edges:
        label = label + (f.col(column) > edge).cast("int")
    return label.alias(column)


def _points(known: Any, metrics: Sequence[str], labels: Sequence[Any]) -> list[Any]:
    """Aggregate per point: labels of the axes, and count and mean of each metric."""
    from pyspark.sql import functions as f

    columns = [metric_column(metric) for metric in metrics]
    wanted = [item for name in columns for item in (f.count(name).alias(f"{name}.n"), f.avg(name).alias(f"{name}.mean"))]
    return sorted(known.groupBy("point", *labels).agg(*wanted).collect(), key=lambda row: int(row["point"]))


def _between(labels: Sequence[Any], sizes: npt.NDArray[np.float64], means: npt.NDArray[np.float64]) -> float:
    """Return the variance between groups: the size-weighted variance of their means."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    group = np.fromiter((places[label] for label in labels), dtype=np.int64, count=len(labels))
    weights = np.bincount(group, sizes)
    centres = np.bincount(group, sizes * means) / weights
    return float(weights @ (centres - weights @ centres / weights.sum()) ** 2 / weights.sum())


def _correlations(known: Any, metrics: Sequence[str], names: Sequence[str], count: int) -> dict[tuple[str, str], float]:
    """Return Spearman rank correlations by (metric, axis)."""
    from pyspark.sql import functions as f

    types = dict(known.dtypes)
    names = [name for name in names if types[axis_column(name)] in NUMBERS]
    if not names or not metrics:
        return {}
    if count > SAMPLE:
        known = known.where(f.pmod(f.xxhash64("run_id"), f.lit(1 << 30)) < int(SAMPLE / count * (1 << 30)))
    columns = [*map(metric_column, metrics), *map(axis_column, names)]
    rows = known.select(*(f.col(name).cast("double") for name in columns)).toPandas().to_numpy(dtype=np.float64)
    found = {}
    for place, metric in enumerate(metrics):
        known_rows = rows[~np.isnan(rows[:, place])]
        for other, name in enumerate(names, len(metrics)):
            value = rank_correlation(known_rows[:, other], known_rows[:, place])
            if value is not None:
                found[metric, name] = value
    return found


def rank_correlation(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float | None:
    """Return Spearman's rank correlation with mean ranks for ties; None if one side is constant."""
    a, b = (_ranks(np.asarray(values, dtype=np.float64)) for values in (ours, theirs))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else None


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: npt.NDArray[np.float64] = (last - (count - 1) / 2.0)[place]
    return ranks
