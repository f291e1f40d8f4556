"""Percentile bootstrap intervals of means, with resampling weights that are equal on every machine.

Groups of equal size share their resampling weights, so that a thousand groups cost one matrix product. A group too large to
collect on the driver is resampled in chunks: its runs are assigned to chunks by a hash of their id, and chunks are drawn
instead of runs. Runs are independent, so the spread of the mean is the same.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.analysis.runs import Runs, axis_column, metric_column
from protocols.rng import key_of

__all__ = ["CHUNKS", "bootstrap", "interval"]

CHUNKS = 1024
"""Largest group whose runs are collected individually; larger groups are collected as this many chunks."""
BATCH_VALUES = 1 << 22
"""Values in one matrix product; more groups are processed in batches."""

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=4)
def _weights(size: int, resamples: int) -> Floats:
    """Draw multinomial weights: how often each of `size` items occurs in each resample, shape (resamples, size)."""
    rng = np.random.Generator(np.random.Philox(key=key_of(0, "bootstrap", size, resamples)))
    return rng.multinomial(size, np.full(size, 1.0 / size), size=resamples).astype(np.float64)


def interval(values: Sequence[float], confidence: float = 0.95, resamples: int = 1000) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean of independent values."""
    sums = np.asarray([values], dtype=np.float64)
    low, high = _intervals(sums, np.ones_like(sums), confidence, resamples)
    return float(low[0]), float(high[0])


def _intervals(sums: Floats, counts: Floats, confidence: float, resamples: int) -> tuple[Floats, Floats]:
    """Return interval ends per group; rows of `sums` and `counts` are groups, columns their chunks."""
    weights = _weights(sums.shape[1], resamples).T
    means = (sums @ weights) / (counts @ weights)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
    return low, high


ChunkSums = dict[tuple[Any, ...], tuple[Floats, Floats]]
"""Sums and counts of chunks by (metric, *keys)."""


def bootstrap(
    runs: Runs, by: Sequence[str], metrics: Sequence[str], rows: Sequence[Any], confidence: float, resamples: int
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Return bootstrap intervals by (metric, *keys) for the groups in `rows`; groups with a single value have none."""
    largest = max((row[f"{metric_column(metric)}.n"] for row in rows for metric in metrics), default=0)
    parts = _chunk_sums(runs, by, metrics) if largest > CHUNKS else _all_values(runs, by, metrics)
    return dict(_solve(parts, confidence, resamples))


def _all_values(runs: Runs, by: Sequence[str], metrics: Sequence[str]) -> ChunkSums:
    """Collect every value of every group, sorted, so that the result does not depend on storage order."""
    keys, columns = [axis_column(name) for name in by], [metric_column(metric) for metric in metrics]
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in runs.ok.select(*keys, *columns).collect():
        for metric, value in zip(metrics, row[len(keys) :], strict=True):
            if value is not None and not isnan(value):
                groups[(metric, *row[: len(keys)])].append(value)
    return {key: (np.sort(np.asarray(values)), np.ones(len(values))) for key, values in groups.items()}


def _chunk_sums(runs: Runs, by: Sequence[str], metrics: Sequence[str]) -> ChunkSums:
    from pyspark.sql import functions as f

    keys, columns = [axis_column(name) for name in by], [metric_column(metric) for metric in metrics]
    chunk = f.expr(f"pmod(xxhash64(run_id), {CHUNKS})").alias("_chunk")
    known = {name: f.when(~f.isnan(name), f.col(name)) for name in columns}
    wanted = [item for name in columns for item in (f.sum(known[name]), f.count(known[name]))]
    groups: dict[tuple[Any, ...], list[tuple[int, float, int]]] = defaultdict(list)
    for row in runs.ok.groupBy(*keys, chunk).agg(*wanted).collect():
        key, place, sums = tuple(row[: len(keys)]), row["_chunk"], row[len(keys) + 1 :]
        for metric, total, count in zip(metrics, sums[::2], sums[1::2], strict=True):
            if count:
                groups[(metric, *key)].append((place, total, count))
    return {key: _columns(sorted(parts)) for key, parts in groups.items()}


def _columns(parts: list[tuple[int, float, int]]) -> tuple[Floats, Floats]:
    return np.asarray([total for _, total, _ in parts]), np.asarray([count for _, _, count in parts], dtype=np.float64)


def _solve(groups: ChunkSums, confidence: float, resamples: int) -> list[tuple[tuple[Any, ...], tuple[float, float]]]:
    alike: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for key, (sums, _) in groups.items():
        if len(sums) > 1:
            alike[len(sums)].append(key)
    found = []
    for keys in alike.values():
        step = max(1, BATCH_VALUES // resamples)
        for begin in range(0, len(keys), step):
            some = keys[begin : begin + step]
            sums, counts = (np.stack([groups[key][side] for key in some]) for side in (0, 1))
            low, high = _intervals(sums, counts, confidence, resamples)
            found += [(key, (float(a), float(b))) for key, a, b in zip(some, low, high, strict=True)]
    return found
