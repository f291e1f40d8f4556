"""Which parameter matters: rank correlation of each axis with a metric, and how the metric's variance divides.

`share` is an axis's main effect: the variance of the means over its values, of all variance. What all axes together explain
beyond their main effects is interaction; what differs between runs of one point is chance. On a balanced grid the parts add up
to one; axes with many values (sampled ones) are cut into BINS groups of equal size first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.analysis.runs import Runs, axis_column, metric_column

__all__ = ["BINS", "SAMPLE", "Effect", "Effects", "effects", "rank_correlation"]

BINS = 10
MOST_VALUES = 20
"""Values an axis may have to be taken as it is."""
NUMBERS = ("double", "float", "bigint", "int", "smallint", "tinyint", "boolean")
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

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each axis, then for interaction and chance."""
        head = {"metric": self.metric, "count": self.count}
        rest = (("(interaction)", self.interaction), ("(chance)", self.chance))
        found: list[dict[str, Any]] = [{**head, **asdict(effect)} for effect in self.axes]
        blank = {"correlation": None, "values": None}
        return found + [{**head, "axis": name, "share": share, **blank} for name, share in rest if share is not None]


def effects(runs: Runs, metric: str, axes: Sequence[str] | None = None) -> Effects | None:
    """None when the metric never varied, or no axis did."""
    from pyspark.sql import functions as f

    column = metric_column(metric)
    known = runs.ok.where(f"{column} is not null and not isnan({column})")
    names = list(runs.axes if axes is None else axes)
    counts = [f.countDistinct(axis_column(name)) for name in names]
    count, variance, *values = known.agg(f.count("*"), f.var_pop(column), *counts).first()
    varied = {name: number for name, number in zip(names, values, strict=True) if number > 1}
    if not variance or not varied:
        return None
    points = _points(known, column, _labels(known, varied))
    sizes, means = points[:, 0].astype(float), points[:, 1].astype(float)
    shares = {name: _between(points[:, place], sizes, means) / variance for place, name in enumerate(varied, 2)}
    correlations = _correlations(known, column, list(varied), count)
    found = [Effect(name, correlations.get(name), shares[name], number) for name, number in varied.items()]
    found.sort(key=lambda effect: -effect.share)
    chance = interaction = None
    if len(points) < count:
        # Only repetitions of a point can tell chance from interaction.
        explained = _between(np.arange(len(points)), sizes, means) / variance
        chance, interaction = 1.0 - explained, explained - sum(shares.values())
    return Effects(metric, count, variance, tuple(found), interaction, chance)


def _labels(known: Any, varied: Mapping[str, int]) -> list[Any]:
    """What groups the runs by an axis: its values, or groups of equal size where there are many."""
    from pyspark.sql import functions as f

    types = dict(known.dtypes)
    many = [name for name, number in varied.items() if number > MOST_VALUES and types[axis_column(name)] in NUMBERS]
    at = [n / BINS for n in range(1, BINS)]
    edges = known.agg(*(f.percentile_approx(axis_column(name), at, 1000) for name in many)).first() if many else ()
    cut = dict(zip(many, edges, strict=True))
    return [_place(axis_column(name), cut[name]) if name in cut else f.col(axis_column(name)) for name in varied]


def _place(column: str, edges: Sequence[float]) -> Any:
    """Which of the groups between the edges a value is in."""
    from pyspark.sql import functions as f

    label = f.lit(0)
    for edge in edges:
        label = label + (f.col(column) > edge).cast("int")
    return label.alias(column)


def _points(known: Any, column: str, labels: Sequence[Any]) -> npt.NDArray[Any]:
    """A row per point of the sweep: how many runs, their mean, and the labels of the axes."""
    from pyspark.sql import functions as f

    rows = known.groupBy("point", *labels).agg(f.count("*").alias("_n"), f.avg(column).alias("_mean")).collect()
    rows.sort(key=lambda row: row["point"])
    table = np.empty((len(rows), 2 + len(labels)), dtype=object)
    for place, row in enumerate(rows):
        table[place] = [row["_n"], row["_mean"], *row[1 : 1 + len(labels)]]
    return table


def _between(labels: npt.NDArray[Any], sizes: npt.NDArray[np.float64], means: npt.NDArray[np.float64]) -> float:
    """The variance of the groups' means, each weighted by its size."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    group = np.fromiter((places[label] for label in labels), dtype=np.int64, count=len(labels))
    weights = np.bincount(group, sizes)
    centres = np.bincount(group, sizes * means) / weights
    return float(weights @ (centres - weights @ centres / weights.sum()) ** 2 / weights.sum())


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
