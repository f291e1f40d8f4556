"""Results of synthetic sweeps: the files of the store, with values chosen by tests."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.sweep.store.schema import column_of, runs_schema, series_schema

__all__ = ["VERSION", "grid", "one_axis", "row", "write_runs", "write_series"]


VERSION = "0.1.0+abc"
KINDS = {bool: "bool", int: "long", float: "double", str: "string"}


def row(params: Mapping[str, Any], seed: int, metrics: Mapping[str, float | None], **given: Any) -> dict[str, Any]:
    """Return one row of the store, `ok` unless `given` says otherwise."""
    shown = sorted((name, json.dumps(value)) for name, value in params.items())
    head = {
        "run_id": f"{shown}/{seed}/{given.get('case')}",
        "version": VERSION,
        "point": 0,
        "case": None,
        "seed": seed,
        "params": shown,
        "status": "ok",
        "error": None,
        "duration_s": 0.1,
        "cpu_s": 0.1,
        "machine": "here",
        "attempt": 0,
        "started": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seed),
    }
    head |= given
    axes = {column_of(name): value for name, value in params.items()}
    values = {f"m_{name}": value if head["status"] == "ok" else None for name, value in metrics.items()}
    return {**head, **axes, **values}


def grid(
    axes: Mapping[str, Iterable[Any]], seeds: Iterable[int], measure: Callable[..., Mapping[str, float | None]]
) -> list[dict[str, Any]]:
    """Return a row for every point and seed; `measure(seed=..., receivers=...)` gets the last parts of the axes' names."""
    found = []
    seeds = list(seeds)
    for point, values in enumerate(product(*axes.values())):
        params = dict(zip(axes, values, strict=True))
        given = {name.rpartition(".")[2]: value for name, value in params.items()}
        found += [row(params, seed, measure(seed=seed, **given), point=point) for seed in seeds]
    return found


def one_axis(values: Mapping[int, Iterable[float]]) -> list[dict[str, Any]]:
    """Return rows of one axis `n` with these completion times."""
    return [
        row({"n": n}, seed, {"completion_time": value}, point=n)
        for n, times in values.items()
        for seed, value in enumerate(times, 1)
    ]


def write_runs(folder: Path, rows: list[dict[str, Any]], job: str = "one") -> Path:
    """Write the rows as one part of the dataset `runs` and return its folder."""
    axes = {name: type(value) for name, value in rows[0].items() if name.startswith("p_")}
    schema = runs_schema({name.removeprefix("p_"): KINDS[kind] for name, kind in axes.items()})
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    provenance = {"version": rows[-1]["version"], "started": str(rows[-1]["started"])}
    (folder / "jobs" / f"{job}.json").write_text(json.dumps(provenance))
    return _write(folder, "runs", job, rows, schema)


def write_series(folder: Path, rows: list[dict[str, Any]], job: str = "one") -> Path:
    """Write rows of run_id, name, t and value as one part of the dataset `series` and return its folder."""
    return _write(folder, "series", job, rows, series_schema())


def _write(folder: Path, dataset: str, job: str, rows: list[dict[str, Any]], schema: Any) -> Path:
    place = folder / dataset / f"job={job}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), place / "part-0.parquet")
    return folder
