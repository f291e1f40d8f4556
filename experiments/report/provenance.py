"""Provenance of the results: what ran, which runs failed, and the commands that reproduce them."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from experiments.analysis.point_scenarios import PointScenarios
from experiments.analysis.runs import CASE, Runs, axis_column
from experiments.report.labels import WORLDS
from experiments.sweep.spec.sweep_file import BACKEND, Sweep
from experiments.sweep.store.invocations import read_invocations

__all__ = ["FailedRun", "differing_sources", "failures", "provenance", "rerun", "side_by_side", "sources"]

MOST_FAILURES = 200


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run without a result: its status, reason, point, and the command that runs it alone."""

    status: str
    reason: str
    point: str
    seed: int
    command: str


def provenance(folder: Path, sweep: Sweep, runs: Runs, points: int) -> list[tuple[str, str]]:
    """Return (name, value) pairs that identify the runs: counts, axes, code versions, machines, times, packages."""
    from pyspark.sql import functions as f

    seen = runs.frame.agg(
        f.sum((f.col("status") == "ok").cast("int")),
        f.sum("cpu_s"),
        f.sum("duration_s"),
        f.min("started"),
        f.max("started"),
        f.min("seed"),
        f.max("seed"),
        f.array_sort(f.collect_set("machine")),
    ).first()
    ok, cpu, duration, first, last, low, high, machines = seen
    mine = [job for job in read_invocations(folder) if job["version"] == runs.version]
    commits = list(dict.fromkeys(str(job["commit"])[:12] for job in mine if job.get("commit")))
    others = [version for version in runs.versions if version != runs.version]
    rows = {
        "sweep": sweep.name,
        "world": " and ".join(WORLDS[str(backend)] for backend in sweep.backends),
        "runs": f"{runs.count:,} ({ok:,} ok, {runs.count - ok:,} failed)",
        "incomplete": f"{runs.incomplete:,} of those that are ok: a receiver lacked something" if runs.incomplete else "",
        "points": f"{points:,}, seeds {low} to {high}",
        "axes": ", ".join(runs.axes) or "none",
        "code": " ".join([runs.version, *(f"(commit {commit})" for commit in commits)]),
        "other versions in the store": ", ".join(others),
        "made": f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC" if first else "",
        "CPU time": f"{cpu:,.1f} s ({duration:,.1f} s of wall-clock time)" if cpu is not None else "",
        "machines": ", ".join(machines),
        "packages": ", ".join(f"{name} {version}" for name, version in (mine[-1].get("packages", {}) if mine else {}).items()),
    }
    return [(name, value) for name, value in rows.items() if value]


def sources(folder: Path) -> dict[str, str]:
    """Return the text of the sweep file and of the base scenario."""
    return {name: (folder / name).read_text(encoding="utf-8") for name in ("sweep.yaml", "base.yaml")}


def side_by_side(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join the provenance of two sweeps: an equal value stands once, values that differ with A and B."""
    left, right = dict(first), dict(second)
    found = []
    for name in dict.fromkeys([*left, *right]):
        one, other = left.get(name, "-"), right.get(name, "-")
        found.append((name, one if one == other else f"A: {one}; B: {other}"))
    return found


def differing_sources(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Return the files of sweep A, and below each the lines by which that of sweep B differs."""
    found: dict[str, str] = {}
    for name, text in first.items():
        lines = list(unified_diff(text.splitlines(), second[name].splitlines(), f"A/{name}", f"B/{name}", lineterm=""))
        found |= {name if not lines else f"{name} of A": text}
        if lines:
            found[f"{name}: what differs in B"] = "\n".join(lines)
    return found


def failures(folder: Path, runs: Runs, points: PointScenarios) -> tuple[list[tuple[str, str, int]], list[FailedRun]]:
    """Count failed runs by status and reason, most frequent first, and list the first of them."""
    from pyspark.sql import functions as f

    failed = runs.frame.where("status != 'ok'").withColumn("_reason", f.element_at(f.split(f.trim("error"), "\n"), -1))
    kinds = failed.groupBy("status", "_reason").count().collect()
    counted = sorted(((row[0], row[1] or "", row[2]) for row in kinds), key=lambda kind: (-kind[2], kind[:2]))
    columns = [axis_column(name) for name in runs.axes]
    rows = failed.select("status", "_reason", "seed", *columns).orderBy("point", "seed").limit(MOST_FAILURES).collect()
    return counted, [_failure(folder, runs, points, row) for row in rows]


def _failure(folder: Path, runs: Runs, points: PointScenarios, row: Any) -> FailedRun:
    keys = {name: row[axis_column(name)] for name in runs.axes}
    place = ", ".join(f"{name} {value}" for name, value in keys.items())
    return FailedRun(row["status"], row["_reason"] or "", place, row["seed"], rerun(folder, points, keys, row["seed"]))


def rerun(folder: Path, points: PointScenarios, keys: Mapping[str, Any], seed: int) -> str:
    """Return the command that executes one run of a sweep alone."""
    sets = points.settings({name: value for name, value in keys.items() if name != CASE or value is not None})
    options = "".join(f" --set {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in sets.items())
    backend = keys.get(BACKEND, points.sweep.backend)
    world = "" if backend == "sim" else f" --on {backend}"
    return f"mcastlab run {shlex.quote(str(folder / 'base.yaml'))} --seed {seed}{world}{options}"
