"""Read the cases of a scenario file: variants of the scenario with some values replaced."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

from experiments.scenario.files import put
from experiments.scenario.foreign_nodes import BROKERS
from experiments.scenario.protocol_modules import find_protocol, protocol_names, resolve_in
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, parse, read
from protocols.errors import ConfigError, UsageError

__all__ = ["case_of", "cases_of", "load_cases"]


def load_cases(path: Path | str, sets: Iterable[str] = (), seed: int | None = None) -> dict[str, Scenario]:
    """Return the cases of a scenario file by their names in `compare`; one, named "", if it lists none.

    All cases are validated. ConfigError names the case and the key that is wrong.
    """
    return cases_of(read(path, sets, seed), path)


def cases_of(data: dict[str, Any], path: Path | str) -> dict[str, Scenario]:
    """Return the cases of what a scenario file at `path` says; see `load_cases`."""
    whole = parse(data, str(path))
    return {name: case_of(data, name, path) for name in whole.compare} or {"": whole}


def case_of(data: dict[str, Any], name: str, path: Path | str) -> Scenario:
    """Return one case of what a scenario file at `path` says; "" is the file itself. ConfigError as of `load_cases`."""
    if not name:
        return parse(data, str(path))
    case = deepcopy({key: value for key, value in data.items() if key != "compare"})
    whole = deepcopy(data["compare"][name])
    by_path = {key: whole.pop(key) for key in list(whole) if "." in key}
    if "compare" in whole or any(key.startswith("compare.") for key in by_path):
        raise ConfigError(f"{path}: compare.{name}.compare: value is not allowed; a case has no cases")
    _leave_other_protocol(case, _other_protocol(whole, by_path))
    _merge(case, whole)
    for key, value in by_path.items():
        _put(case, key, value, f"{path}: compare.{name}.{key}")
    resolve_in(case, find_scenario(path).parent)
    case["name"] = whole.get("name", f"{case['name']}-{name}")
    return parse(case, f"{path}: compare.{name}")


def _put(case: dict[str, Any], key: str, value: object, origin: str) -> None:
    """Replace a value by its path, as `--set` does. ConfigError for a path that leads nowhere."""
    try:
        put(case, key.split("."), value, f"{key}={value}")
    except UsageError as error:
        raise ConfigError(f"{origin}: {str(error).removeprefix('--set: ')}") from error


def _other_protocol(whole: dict[str, Any], by_path: dict[str, Any]) -> object:
    """Return the name of the protocol that a case asks for; None if it names none."""
    protocol = whole.get("protocol")
    return by_path.get("protocol.name", protocol.get("name") if isinstance(protocol, dict) else None)


def _leave_other_protocol(case: dict[str, Any], wanted: object) -> None:
    """Remove what belongs to the protocol of the file from a case with another one: its parameters but rate and segment, as far
    as the other has these, and the roles of nodes.
    """
    base = case.get("protocol")
    # Of a name that is unknown the error of validation says what is wrong.
    if not isinstance(base, dict) or wanted == base.get("name") or wanted not in protocol_names():
        return
    known = {item.name for item in fields(find_protocol(str(wanted)).spec.config)}
    case["protocol"] = {key: value for key, value in base.items() if key in ("rate", "segment") and key in known}
    nodes = case.get("nodes")
    if isinstance(nodes, dict):
        case["nodes"] = {name: node for name, node in nodes.items() if not isinstance(node, dict) or not _has_role(node)}


def _has_role(node: dict[str, Any]) -> bool:
    """Return whether a node takes a role, by a machine or a foreign program."""
    return "role" in node or node.get("run") in BROKERS


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    """Replace values in place; mappings are merged key by key."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
