"""Record each invocation of a sweep in its folder: code version, commit, machine, package versions, command line."""

import json
import os
import platform
import socket
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

from experiments.sweep.spec.code_version import commit
from protocols.errors import UsageError

__all__ = ["latest_version", "read_invocations", "record_invocation"]


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
    (jobs / f"{job}.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    return job


def read_invocations(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all invocations, sorted by start time."""
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "jobs").glob("*.json")]
    return sorted(jobs, key=lambda job: str(job["started"]))


def latest_version(folder: Path) -> str:
    """Return the code version of the latest invocation; UsageError if the folder holds no sweep."""
    jobs = read_invocations(folder)
    if not jobs:
        raise UsageError(f"{folder}: holds no results of a sweep; mcastlab sweep SWEEP.yaml --out {folder} makes them")
    version_of_code: str = jobs[-1]["version"]
    return version_of_code
