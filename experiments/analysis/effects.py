"""Which parameter matters: rank correlation of each axis with a metric, and how the metric's variance divides.

`share` is an axis's main effect: the variance of the means over its values, of all variance. What all axes together explain
beyond their main effects is interaction; what differs between runs of one point is chance. On a balanced grid the parts add up
to one; axes with many values (sampled ones) are cut into BINS groups of equal size first.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.analysis.runs import CASE, Runs, axis_column, metric_column

__all__ = ["BINS", "SAMPLE", "Effect", "Effects", "effects", "rank_correlation"]

BINS = 10
MOST_VALUES = 20
"""Values an axis may have to be taken as it is."""
SAMPLE = 200_000
"""Runs whose ranks are compared; of more, a sample chosen by their names."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one axis does to a metric. `correlation` (Spearman) is None for an axis of words."""

    axis: str
    correlation: float | None
    share: float
    values: int


@dataclass(frozen=True, slots=True)
class Effects:
    """What divides the variance of a metric: axes, largest share first, their interaction, and chance."""

    metric: str
    count: int
    variance: float
    axes: tuple[Effect, ...]
    interaction: float | None
    chance: float | None

    def plain(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


def effects(runs: Runs, metric: str, axes: Sequence[str] | None = None) -> Effects | None:
    """None when the metric never varied, or no axis did."""
    from pyspark.sql import functions as f

    column = metric_column(metric)
    known = runs.ok.where(f"{column} is not null and not isnan({column})")
    names = list(runs.axes if axes is None else axes)
    if not names:
        return None
    counts = [f.countDistinct(axis_column(name)).alias(axis_column(name)) for name in names]
    row = known.agg(f.count("*").alias("n"), f.var_pop(column).alias("variance"), *counts).first()
    varied = [name for name in names if row[axis_column(name)] > 1]
    if not row["variance"] or not varied:
        return None
    labels = {name: _levels(known, name, row[axis_column(name)]) for name in varied}
    shares = {name: _between(known, column, [labels[name]]) / row["variance"] for name in varied}
    correlations = _correlations(known, column, [name for name in varied if name != CASE], row["n"])
    found = [Effect(name, correlations.get(name), shares[name], row[axis_column(name)]) for name in varied]
    found.sort(key=lambda effect: -effect.share)
    chance, interaction = _rest(known, column, varied, row, sum(shares.values()))
    return Effects(metric, row["n"], row["variance"], tuple(found), interaction, chance)


def _levels(known: Any, name: str, values: int) -> Any:
    """What groups an axis: its values, or groups of equal size where there are many."""
    from pyspark.sql import functions as f

    column = axis_column(name)
    if values <= MOST_VALUES or dict(known.dtypes)[column] not in NUMBERS:
        return f.col(column)
    edges = known.select(f.percentile_approx(column, [n / BINS for n in range(1, BINS)], 1000)).first()[0]
    label = f.lit(0)
    for edge in edges:
        label = label + (f.col(column) > edge).cast("int")
    return label.alias(column)


NUMBERS = ("double", "float", "bigint", "int", "smallint", "tinyint", "boolean")


def _between(known: Any, column: str, labels: Sequence[Any]) -> float:
    """The variance of the groups' means, each weighted by its size."""
    from pyspark.sql import functions as f

    means = known.groupBy(*labels).agg(f.count("*").alias("_n"), f.avg(column).alias("_mean"))
    total, mean = means.agg(f.sum("_n"), f.sum(f.col("_n") * f.col("_mean")) / f.sum("_n")).first()
    # In a second pass, because the difference of two large squares would lose a small variance.
    return float(means.agg(f.sum(f.col("_n") * (f.col("_mean") - mean) ** 2)).first()[0] / total)


def _rest(known: Any, column: str, varied: Sequence[str], row: Any, explained: float) -> tuple[float | None, float | None]:
    """Shares of chance and of interaction; None where points have no repetitions to tell them apart by."""
    points = known.select(*map(axis_column, varied)).distinct().count()
    if points == row["n"]:
        return None, None
    within = 1.0 - _between(known, column, list(map(axis_column, varied))) / row["variance"]
    return within, 1.0 - within - explained


def _correlations(known: Any, column: str, names: Sequence[str], count: int) -> dict[str, float]:
    from pyspark.sql import functions as f

    types = dict(known.dtypes)
    names = [name for name in names if types[axis_column(name)] in NUMBERS]
    if not names:
        return {}
    if count > SAMPLE:
        known = known.where(f.pmod(f.xxhash64("run_id"), f.lit(1 << 30)) < int(SAMPLE / count * (1 << 30)))
    rows = known.select(column, *(f.col(axis_column(name)).cast("double") for name in names)).toPandas().to_numpy()
    found = {name: rank_correlation(rows[:, place], rows[:, 0]) for place, name in enumerate(names, 1)}
    return {name: value for name, value in found.items() if value is not None}


def rank_correlation(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float | None:
    """Spearman's rank correlation, equal values sharing their rank; None when one side never varies."""
    a, b = (_ranks(np.asarray(values, dtype=np.float64)) for values in (ours, theirs))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else None


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: npt.NDArray[np.float64] = (last - (count - 1) / 2.0)[place]
    return ranks
