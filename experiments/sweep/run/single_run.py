"""What one run of a sweep is: from the JSON of a scenario to metrics, in the process that calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.running.recording import Recording
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from experiments.sweep.spec.metrics import metrics_of, receiver_metrics_of
from sim.series import Series
from sim.watch import Watcher
from topologies.spec import Topology

__all__ = ["perform"]


def perform(job: Mapping[str, Any]) -> dict[str, Any]:
    """Make the run a job describes: its metrics, fingerprint and what is kept beside. What goes wrong is raised.

    A job has `scenario` (JSON), `backend`, `receivers` (keep rows?), `series` (interval or None), `captures` (names) and
    `folder` for the files of these.
    """
    scenario = parse(json.loads(job["scenario"]), "scenario")
    collecting = _Collecting.of_job(scenario, job)
    result = run(scenario, job["backend"], collecting)
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
    """Keeps the time series in memory instead of a file."""

    collected: Series | None = None

    @classmethod
    def of_job(cls, scenario: Scenario, job: Mapping[str, Any]) -> "_Collecting | None":
        """What the job asks for; None when that is nothing."""
        if job["series"] is None and not job["captures"]:
            return None
        series = None
        if job["series"] is not None:
            series = Series(job["series"], sum(work.count for work in scenario.workload))
        return cls(points=tuple(job["captures"]), captures=Path(job["folder"]), collected=series)

    @contextmanager
    def watchers(self, scenario: Scenario, topology: Topology) -> Iterator[Sequence[Watcher]]:
        """As of a single run, and the series."""
        with super().watchers(scenario, topology) as found:
            yield [*found, *([] if self.collected is None else [self.collected])]

    def rows(self) -> list[dict[str, Any]] | None:
        """The series as rows, by name and time; None when none was asked for."""
        if self.collected is None:
            return None
        rows = [
            {"name": f"{measure} {of}".strip(), "t": time, "value": float(value)}
            for time, measure, of, value in self.collected.rows
        ]
        return sorted(rows, key=lambda row: (row["name"], row["t"]))
