"""Read the JSON files of a sweep's folder."""

import json
from pathlib import Path
from typing import Any

from protocols.errors import UsageError

__all__ = ["read_json"]


def read_json(path: Path, advice: str) -> Any:
    """Return the contents of a JSON file. UsageError, ending with the advice, for one that is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is damaged, or no JSON ({str(error)[:100]}); {advice}") from error
