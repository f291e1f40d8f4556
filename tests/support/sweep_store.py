"""Results of a sweep that never ran: the store's files with numbers made up from a formula, for tests and benchmarks."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["grid", "row", "write_runs", "write_series"]


def row(params: Mapping[str, Any], seed: int, metrics: Mapping[str, float | None], **given: Any) -> dict[str, Any]:
    """One run of the store, `ok` unless `given` says otherwise."""
    status = given.get("status", "ok")
    shown = {name: json.dumps(value) for name, value in params.items()}
    head = {
        "run_id": f"{sorted(shown.items())}/{seed}/{given.get('case')}",
        "version": "0.1.0+abc",
        "point": 0,
        "case": None,
        "seed": seed,
        "params": sorted(shown.items()),
        "status": status,
        "error": None,
        "duration_s": 0.1,
        "cpu_s": 0.1,
        "machine": "here",
        "attempt": 0,
        "started": 1.7e9 + seed,
    }
    axes = {"p_" + name.replace(".", "__"): value for name, value in params.items()}
    values = {"m_" + name.replace(".", "__"): value if status == "ok" else None for name, value in metrics.items()}
    return {**head, **given, **axes, **values}


def grid(
    axes: Mapping[str, Iterable[Any]], seeds: Iterable[int], measure: Callable[..., Mapping[str, float | None]]
) -> list[dict[str, Any]]:
    """A run for every point of the grid and every seed; `measure(seed=..., **params)` with dots as underscores says its metrics."""
    names, found = list(axes), []
    for point, values in enumerate(product(*axes.values())):
        params = dict(zip(names, values, strict=True))
        given = {name.replace(".", "_"): value for name, value in params.items()}
        found += [row(params, seed, measure(seed=seed, **given), point=point) for seed in seeds]
    return found


def write_runs(folder: Path, rows: list[dict[str, Any]], job: str = "one") -> Path:
    """The rows as one file of the dataset `runs`."""
    return _write(folder / "runs" / f"job={job}", rows)


def write_series(folder: Path, rows: list[dict[str, Any]], job: str = "one") -> Path:
    """Rows of run_id, name, t and value as one file of the dataset `series`."""
    return _write(folder / "series" / f"job={job}", rows)


def _write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if "params" in table.column_names:
        place = table.column_names.index("params")
        values = pa.array([item["params"] for item in rows], type=pa.map_(pa.string(), pa.string()))
        table = table.set_column(place, "params", values)
    pq.write_table(table, folder / "part-0.parquet")
    return folder.parent.parent
