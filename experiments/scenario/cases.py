"""Read the cases of a scenario file: variants of the scenario with some values replaced."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

from experiments.scenario.foreign_nodes import BROKERS
from experiments.scenario.protocol_modules import find_protocol, protocol_names, resolve_in
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, parse, read
from protocols.errors import ConfigError

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
    changes = data["compare"][name]
    if "compare" in changes:
        raise ConfigError(f"{path}: compare.{name}.compare: value is not allowed; a case has no cases")
    _leave_other_protocol(case, changes)
    _merge(case, deepcopy(changes))
    resolve_in(case, find_scenario(path).parent)
    case["name"] = changes.get("name", f"{case['name']}-{name}")
    return parse(case, f"{path}: compare.{name}")


def _leave_other_protocol(case: dict[str, Any], changes: dict[str, Any]) -> None:
    """Remove what belongs to the protocol of the file from a case with another one: its parameters but rate and segment, as far
    as the other has these, and the roles of nodes.
    """
    base, wanted = case.get("protocol"), changes.get("protocol")
    if not isinstance(base, dict) or not isinstance(wanted, dict) or wanted.get("name", base.get("name")) == base.get("name"):
        return
    if wanted.get("name") not in protocol_names():
        # The error of validation names what is wrong.
        return
    known = {item.name for item in fields(find_protocol(wanted["name"]).spec.config)}
    case["protocol"] = {key: value for key, value in base.items() if key in ("rate", "segment") and key in known}
    nodes = case.get("nodes")
    if isinstance(nodes, dict):
        case["nodes"] = {name: node for name, node in nodes.items() if not isinstance(node, dict) or not _has_role(node)}


def _has_role(node: dict[str, Any]) -> bool:
    """Return whether a node takes a role, itself or by a program of others."""
    return "role" in node or node.get("run") in BROKERS


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    """Replace values in place; mappings are merged key by key."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
