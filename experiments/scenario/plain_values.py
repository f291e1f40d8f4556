"""Python values as a file could hold them: numbers, text, lists and mappings."""

from collections.abc import Iterable, Mapping, Set
from os import PathLike, fspath
from typing import Any

from pydantic import BaseModel

from experiments.scenario.protocol_choice import ProtocolChoice
from protocols.errors import UsageError, shown
from topologies.strict_yaml import DEPTH_LIMIT

__all__ = ["mapping_of", "plain_value"]

_SCALARS = (bool, int, float, str)
_PARTS = (BaseModel, ProtocolChoice)
"""Parts of a scenario that was validated before."""


def mapping_of(value: object, name: str) -> dict[Any, Any]:
    """Return the plain values of a mapping, or of a row of pandas. UsageError, with `name`, for anything else."""
    row: Any = value
    if not isinstance(value, Mapping) and not (hasattr(value, "keys") and hasattr(value, "tolist")):
        raise UsageError(f"{name}: value {shown(value)} is not allowed; a mapping of keys to values")
    keys = list(row.keys())
    return {_key(key): plain_value(row[key], str(key)) for key in keys}


def plain_value(value: object, path: str, depth: int = 0) -> Any:
    """Return a value as a file could hold it, in new containers; `path` names it in errors, `depth` is how deep it lies.

    Numbers and arrays of numpy and pandas become plain ones. Those that are whole become integers, since a row of a table of
    integers and fractions has fractions only. Tuples, sets and arrays become lists (sets in the order of their text),
    paths become text. Parts of a scenario stay. UsageError for all else.
    """
    if depth > DEPTH_LIMIT:
        raise UsageError(f"{path[:80]}: the value is nested more than {DEPTH_LIMIT} deep")
    if value is None or type(value) in _SCALARS or isinstance(value, _PARTS):
        return value
    if isinstance(value, Mapping):
        return {_key(key): plain_value(item, f"{path}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _listed(value, path, depth)
    if isinstance(value, Set):
        return _listed(sorted(value, key=str), path, depth)
    if isinstance(value, PathLike):
        return fspath(value)
    # Scalars, arrays and columns of numpy and pandas have this method.
    found = _without_fractions(value.tolist()) if hasattr(value, "tolist") else value
    for kind in _SCALARS:
        if isinstance(found, kind):
            return kind(found)
    if isinstance(found, list):
        return _listed(found, path, depth)
    raise UsageError(f"{path}: value {shown(value)} is not allowed; a number, text, a list or a mapping")


def _listed(values: Iterable[object], path: str, depth: int) -> list[Any]:
    return [plain_value(item, f"{path}.{number}", depth + 1) for number, item in enumerate(values)]


def _without_fractions(value: Any) -> Any:
    """Return a number or the numbers of a list, whole ones as integers."""
    if isinstance(value, list):
        return [_without_fractions(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key(key: object) -> Any:
    """Return the key of a mapping; text of numpy as plain text."""
    return str(key) if isinstance(key, str) else key
