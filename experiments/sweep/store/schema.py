"""The columns of the Parquet datasets of a sweep: `runs`, `receivers` and `series`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from experiments.sweep.spec.metrics import METRICS, RECEIVER_METRICS

__all__ = ["DOCUMENTED", "PROVENANCE", "column_of", "receivers_schema", "runs_schema", "series_schema"]

AXIS_TYPES: dict[str, Any] = {"bool": pa.bool_(), "long": pa.int64(), "double": pa.float64(), "string": pa.string()}
PROVENANCE = ("duration_s", "cpu_s", "machine", "attempt", "started")
"""What differs when the same run is made again; everything else is equal."""

DOCUMENTED = {
    "run_id": "name of the run: digest of its scenario, seed, world and the code's version",
    "version": "version of the code: of the package, and a digest of its source",
    "point": "index of the parameter point in the sweep, from 0",
    "case": "the named case, or null",
    "seed": "seed of the run",
    "params": "every parameter of the point as the sweep file writes it",
    "p_<axis>": "value on an axis, quantities in bit/s, seconds, bytes and fractions; dots in the name become __",
    "status": "ok, error (it raised), timeout or crashed (its process died)",
    "error": "why it is not ok, else null",
    "fingerprint": "hash of all control packets, events and counters of a simulated run; null when not ok",
    "m_<metric>": "see METRICS; null when not ok, or when the run did not come to a value",
    "receivers": "nested: what the dataset receivers has a row each for; null when not kept, and after compaction",
    "series": "nested: what the dataset series has a row each for; null when not kept, and after compaction",
    "duration_s": "seconds it took to make the run",
    "cpu_s": "processor seconds it took",
    "machine": "name of the machine",
    "attempt": "0, or more when Spark had to start the task again",
    "started": "when the run began (UTC)",
}
"""What the columns of `runs` mean."""


def column_of(axis: str) -> str:
    """The name of an axis' column."""
    return "p_" + axis.replace(".", "__")


def runs_schema(axes: Mapping[str, str]) -> Any:
    """Of `runs`, given the type of each axis: bool, long, double or string."""
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
    """Of `receivers`: one row per run and receiver."""
    return pa.schema([("run_id", pa.string()), *_receiver()])


def series_schema() -> Any:
    """Of `series`: one row per run, name and time."""
    return pa.schema([("run_id", pa.string()), *_point()])


def _receiver() -> list[tuple[str, Any]]:
    return [("receiver", pa.string()), *((f"m_{name}", pa.float64()) for name in RECEIVER_METRICS)]


def _point() -> list[tuple[str, Any]]:
    return [("name", pa.string()), ("t", pa.float64()), ("value", pa.float64())]
