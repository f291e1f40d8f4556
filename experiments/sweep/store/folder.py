"""The folder a sweep writes to: made, claimed by one process, and told what belongs to it."""

import fcntl
import json
import os
import platform
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from experiments.sweep.run.version import commit
from experiments.sweep.spec.grid import SweepPlan
from experiments.sweep.store.datasets import parts
from protocols.errors import UsageError

__all__ = ["claim", "new_job", "prepare"]

MAY_CHANGE = ("replications", "until", "refine", "keep", "theory", "time_limit", "memory")
"""What a resumed sweep may say differently: more of the same points, or how they are run."""


def prepare(plan: SweepPlan, folder: Path, resume: bool) -> None:
    """Make the folder and put the sweep into it. UsageError when other results lie there."""
    if "://" in str(folder):
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; a folder that this machine and all workers see")
    if parts(folder):
        if not resume:
            raise UsageError(f"--out: value {str(folder)!r} is not allowed; it holds results (--resume goes on with them)")
        _check_same(plan, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sweep.yaml").write_text(plan.path.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "base.yaml").write_text(_base(plan), encoding="utf-8")
        (folder / "plan.json").write_text(json.dumps(_identity(plan)), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out: value {str(folder)!r} is not allowed; it can't be written ({error.strerror})") from error


def _base(plan: SweepPlan) -> str:
    return yaml.safe_dump(plan.base, sort_keys=False, allow_unicode=True)


def _identity(plan: SweepPlan) -> dict[str, Any]:
    """What has to stay the same for the numbers of points to mean the same."""
    told = plan.sweep.model_dump(mode="json", by_alias=True, exclude=set(MAY_CHANGE) | {"scenario"})
    return {"sweep": told, "base": _base(plan)}


def _check_same(plan: SweepPlan, folder: Path) -> None:
    file = folder / "plan.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if known != json.loads(json.dumps(_identity(plan))):
        raise UsageError(
            f"--out: value {str(folder)!r} is not allowed; it holds another sweep than {plan.path} (its base, axes, cases or "
            "seed differ); give another folder"
        )


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Nobody else writes to the folder meanwhile. UsageError when somebody does."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"--out: value {str(folder)!r} is not allowed; another sweep is writing to it") from error
        yield


def new_job(folder: Path, master: str, runs: int, version: str) -> str:
    """Note an invocation that is about to make some runs; returns its name, the <uuid> of its parts."""
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
