"""Read scenario files as strict YAML, and replace single values."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from protocols.errors import ConfigError, UsageError, shown
from topologies.input_file import read_text
from topologies.strict_yaml import DEPTH_LIMIT, parse_yaml

__all__ = ["override", "put", "read_yaml"]

_LONGEST_INDEX = 9
_KINDS: dict[type, str] = {type(None): "empty", list: "a list"}
"""Names of contents that are not a mapping, for errors."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. ConfigError names file, line and column in one line."""
    try:
        data = parse_yaml(read_text(path))
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {_where(error)}") from error
    if not isinstance(data, dict):
        kind = _KINDS.get(type(data), "a single value")
        raise ConfigError(f"{path}: a mapping of keys to values is expected, this is {kind}")
    return data


def _where(error: yaml.YAMLError) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if problem and problem.startswith("but "):
        problem = f"{getattr(error, 'context', '')} {problem}"
    text = str(problem or error).replace("\n", " ")
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}" if mark else text


def override(data: dict[str, Any], sets: Iterable[str]) -> None:
    """Apply replacements `key.path=value` in place; values are YAML, and a number in a path is the index of a list item.

    UsageError for a path that leads nowhere.
    """
    for item in sets:
        path, equals, text = item.partition("=")
        keys = path.split(".")
        if not equals or not all(keys):
            raise UsageError(f"--set: {shown(item)} is not allowed; it reads key.path=value, like topology.link.loss=5%")
        try:
            value = parse_yaml(text)
        except yaml.YAMLError as error:
            raise UsageError(f"--set: {shown(item)} is not allowed; the value is not YAML ({_where(error)})") from error
        put(data, keys, value, item)


def put(data: Any, keys: list[str], value: object, item: str) -> None:
    """Set the value at a path of keys, in place; `item` names the replacement in errors."""
    if len(keys) > DEPTH_LIMIT:
        raise UsageError(f"--set: {shown(item)} is not allowed; a path has at most {DEPTH_LIMIT} keys")
    for key in keys[:-1]:
        data = data.setdefault(key, {}) if isinstance(data, dict) else data[_index(data, key, item)]
    last = keys[-1]
    if isinstance(data, dict):
        data[last] = value
    else:
        data[_index(data, last, item)] = value


def _index(data: object, key: str, item: str) -> int:
    refused = f"--set: {shown(item)} is not allowed; "
    if not isinstance(data, list):
        raise UsageError(f"{refused}above {shown(key)} stands the value {shown(data)}, which has no keys")
    if not key.isdecimal() or len(key) > _LONGEST_INDEX or int(key) >= len(data):
        raise UsageError(f"{refused}{shown(key)} is not one of the list's items 0 to {len(data) - 1}")
    return int(key)
