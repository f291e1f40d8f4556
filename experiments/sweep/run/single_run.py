"""Execute one run of a sweep in the calling process: from the JSON of a scenario to metrics."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import Any

from experiments.output.counted import counted
from experiments.running.recording import Recording, Records
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from experiments.sweep.spec.metrics import metrics_of, receiver_metrics_of
from sim.series import Series
from topologies.spec import Topology

__all__ = ["perform"]


def perform(job: Mapping[str, Any]) -> dict[str, Any]:
    """Execute the run of a job and return its metrics, fingerprint, and rows to keep; exceptions propagate.

    A job has `scenario` (JSON), `backend`, `receivers` (whether to return rows), `series` (interval in seconds or None),
    `captures` (names of nodes and links) and `folder` for the capture files. OSError if the disk had no room for all of them;
    --retry makes the run again.
    """
    scenario = parse(json.loads(job["scenario"]), "scenario")
    collecting = _Collecting.of_job(scenario, job)
    result = run(scenario, job["backend"], collecting)
    for point, counts in result.metrics.get("captures", {}).items():
        if counts["unwritten"]:
            missing = counted(counts["unwritten"], "missing packet", spec=",")
            raise OSError(ENOSPC, f"the disk is full: {missing}", f"capture {point}")
    return {
        "fingerprint": result.fingerprint,
        "metrics": metrics_of(result),
        "receivers": [
            {"receiver": row.name, **{f"m_{name}": value for name, value in receiver_metrics_of(row).items()}}
            for row in result.receivers
        ]
        if job["receivers"]
        else None,
        "series": None if collecting is None else collecting.rows(),
    }


@dataclass(frozen=True)
class _Collecting(Recording):
    """A recording that keeps the time series in memory instead of a file."""

    collected: Series | None = None

    @classmethod
    def of_job(cls, scenario: Scenario, job: Mapping[str, Any]) -> "_Collecting | None":
        """Return the recording a job requests; None if it requests none."""
        if job["series"] is None and not job["captures"]:
            return None
        series = None
        if job["series"] is not None:
            series = Series(job["series"], sum(work.count for work in scenario.files))
        return cls(points=tuple(job["captures"]), captures=Path(job["folder"]), collected=series)

    @contextmanager
    def watchers(self, scenario: Scenario, topology: Topology) -> Iterator[Records]:
        """Yield the watchers of a single run, and the series."""
        with super().watchers(scenario, topology) as records:
            if self.collected is not None:
                records.watchers.append(self.collected)
            yield records

    def rows(self) -> list[dict[str, Any]] | None:
        """Return the series as rows sorted by name and time; None if none was asked for."""
        if self.collected is None:
            return None
        rows = [
            {"name": f"{measure} {of}".strip(), "t": time, "value": float(value)}
            for time, measure, of, value in self.collected.rows
        ]
        return sorted(rows, key=lambda row: (row["name"], row["t"]))
