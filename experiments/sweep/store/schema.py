"""Columns of the Parquet datasets of a sweep: `runs`, `receivers` and `series`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from experiments.sweep.spec.metrics import METRICS, RECEIVER_METRICS

__all__ = ["DOCUMENTED", "PROVENANCE", "column_of", "receivers_schema", "runs_schema", "series_schema"]

AXIS_TYPES: dict[str, Any] = {"bool": pa.bool_(), "long": pa.int64(), "double": pa.float64(), "string": pa.string()}
PROVENANCE = ("duration_s", "cpu_s", "machine", "attempt", "started")
"""Columns that differ when the same run is repeated; all others are equal."""

DOCUMENTED = {
    "run_id": "id of the run: digest of scenario, seed, backend, what is kept, and code version",
    "version": "code version: package version and a digest of the source",
    "point": "index of the parameter point in the sweep, from 0",
    "case": "the named case, or null",
    "seed": "seed of the run",
    "params": "parameters of the point as the sweep file writes them",
    "p_<axis>": "value of an axis; quantities in bit/s, seconds, bytes and fractions; dots in the name become __",
    "status": "ok, error (raised an exception), timeout or crashed (its process died)",
    "error": "reason if not ok, else null",
    "fingerprint": "hash of all control packets, events and counters of a simulated run; null if not ok",
    "m_<metric>": "see METRICS; null if not ok, or if the run has no value",
    "receivers": "nested rows of the dataset receivers; null if not kept, and after compaction",
    "series": "nested rows of the dataset series; null if not kept, and after compaction",
    "duration_s": "wall-clock seconds of the run",
    "cpu_s": "CPU seconds of the run",
    "machine": "host name of the machine",
    "attempt": "0, or more if Spark restarted the task",
    "started": "start of the run (UTC)",
}
"""Description of each column of `runs`."""


def column_of(axis: str) -> str:
    """Return the column name of an axis."""
    return "p_" + axis.replace(".", "__")


def runs_schema(axes: Mapping[str, str]) -> Any:
    """Return the schema of `runs`, given the type of each axis: bool, long, double or string."""
    return pa.schema(
        [
            ("run_id", pa.string()),
            ("version", pa.string()),
            ("point", pa.int32()),
            ("case", pa.string()),
            ("seed", pa.int64()),
            ("params", pa.map_(pa.string(), pa.string())),
            *((column_of(axis), AXIS_TYPES[kind]) for axis, kind in axes.items()),
            ("status", pa.string()),
            ("error", pa.string()),
            ("fingerprint", pa.string()),
            *((f"m_{name}", pa.float64()) for name in METRICS),
            ("receivers", pa.list_(pa.struct(_receiver()))),
            ("series", pa.list_(pa.struct(_point()))),
            ("duration_s", pa.float64()),
            ("cpu_s", pa.float64()),
            ("machine", pa.string()),
            ("attempt", pa.int32()),
            ("started", pa.timestamp("us", tz="UTC")),
        ]
    )


def receivers_schema() -> Any:
    """Return the schema of `receivers`: one row per run and receiver."""
    return pa.schema([("run_id", pa.string()), *_receiver()])


def series_schema() -> Any:
    """Return the schema of `series`: one row per run, name and time."""
    return pa.schema([("run_id", pa.string()), *_point()])


def _receiver() -> list[tuple[str, Any]]:
    return [("receiver", pa.string()), *((f"m_{name}", pa.float64()) for name in RECEIVER_METRICS)]


def _point() -> list[tuple[str, Any]]:
    return [("name", pa.string()), ("t", pa.float64()), ("value", pa.float64())]
