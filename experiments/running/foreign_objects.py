"""The results of foreign programs as objects of a scenario."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from experiments.running.result import Expected

__all__ = ["match_objects", "without_object_ids"]


def match_objects(result: Mapping[str, Any], sent: Expected) -> Mapping[str, Any]:
    """Return a receiver's result with its `files` as `received` rows, matched to sent objects by size and SHA-256.

    A file equal to no sent object gets a row with the sender -1. A result without `files` is returned as it is.
    """
    if "files" not in result:
        return result
    wanted = defaultdict(list)
    for key, value in sorted(sent.items(), reverse=True):
        wanted[value].append(key)
    rows = []
    for number, (size, digest) in enumerate(result["files"]):
        keys = wanted[size, digest]
        rows.append([*(keys.pop() if keys else (-1, number)), size, digest])
    return {**result, "received": rows}


def without_object_ids(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a receiver's result with `files` instead of object ids, since a foreign sender chooses its own ids."""
    return result if "files" in result else {**result, "files": [row[2:] for row in result.get("received", ())]}
