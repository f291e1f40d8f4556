"""Record each invocation of a sweep in its folder: code version, commit, machine, package versions, command line."""

import json
import os
import platform
import socket
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import Any
from uuid import uuid4

from experiments.output.whole_file import write_whole
from experiments.scenario.suggestion import one_of
from experiments.sweep.spec.code_version import commit
from experiments.sweep.store.json_file import read_json
from experiments.sweep.store.parts import holds_version, parts
from protocols.errors import UsageError

__all__ = ["chosen_version", "read_invocations", "record_invocation"]


def record_invocation(folder: Path, master: str, runs: int, version: str) -> str:
    """Write `jobs/<uuid>.json` for an invocation that will execute `runs` runs by code of this `version`; return the uuid."""
    job = str(uuid4())
    about = {
        "job": job,
        "started": datetime.now(UTC).isoformat(),
        "version": version,
        "commit": commit(),
        "runs": runs,
        "master": master,
        "machine": socket.gethostname(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in ("pyspark", "pyarrow", "numpy", "simpy")},
        "command": sys.argv,
    }
    jobs = folder / "jobs"
    jobs.mkdir(exist_ok=True)
    write_whole(jobs / f"{job}.json", json.dumps(about, indent=1))
    return job


def read_invocations(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all invocations, sorted by start time. UsageError for a file in `jobs` that is none."""
    jobs = [_record(path) for path in (folder / "jobs").glob("*.json")]
    return sorted(jobs, key=lambda job: str(job["started"]))


def _record(path: Path) -> dict[str, Any]:
    advice = "move it out of the folder, and go on with the records of other invocations, or make the sweep again"
    record = read_json(path, advice)
    if not isinstance(record, dict) or not {"started", "version"} <= record.keys():
        raise UsageError(f"{path}: is no record of an invocation of a sweep; {advice}")
    return record


def chosen_version(folder: Path, version: str | None = None) -> str:
    """Return `version`, or the code version of the latest invocation whose version has rows.

    UsageError if the folder holds no sweep, or no invocation of this version.
    """
    jobs = read_invocations(folder)
    if not jobs:
        raise UsageError(
            f"{folder}: holds no results of a sweep; mcastlab sweep SWEEP.yaml --out {quote(str(folder))} makes them"
        )
    known = sorted({str(job["version"]) for job in jobs})
    if version is not None and version not in known:
        raise UsageError(f"--version: value {version!r} is not allowed; {one_of(version, known)}")
    return _latest(folder, [str(job["version"]) for job in jobs]) if version is None else version


def _latest(folder: Path, versions: list[str]) -> str:
    """Return the last of these versions that has rows; the last one if none has, as of an invocation interrupted at once."""
    others = list(dict.fromkeys(reversed(versions)))
    if len(others) > 1:
        files = parts(folder)
        others = [version for version in others if any(holds_version(path, version) for path in files)] or others
    return others[0]
