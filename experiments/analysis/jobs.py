"""What each invocation of a sweep noted about itself: version of the code, machine, command."""

import json
from pathlib import Path
from typing import Any

__all__ = ["jobs_of"]


def jobs_of(folder: Path) -> list[dict[str, Any]]:
    """The notes, of the first invocation first."""
    jobs = [json.loads(path.read_text(encoding="utf-8")) for path in (folder / "jobs").glob("*.json")]
    return sorted(jobs, key=lambda job: str(job["started"]))
