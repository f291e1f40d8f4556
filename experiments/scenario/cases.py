"""Read the cases of a scenario file: variants of the scenario with some values replaced."""

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

from experiments.scenario.protocol_modules import resolve_in
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import Scenario, parse, read
from protocols.errors import ConfigError

__all__ = ["load_cases"]


def load_cases(path: Path | str, sets: Iterable[str] = (), seed: int | None = None) -> dict[str, Scenario]:
    """Return the cases of a scenario file by their names in `compare`; one, named "", if it lists none.

    All cases are validated. ConfigError names the case and the key that is wrong.
    """
    data = read(path, sets, seed)
    whole = parse(data, str(path))
    return {name: _case(data, name, path) for name in whole.compare} or {"": whole}


def _case(data: dict[str, Any], name: str, path: Path | str) -> Scenario:
    case = deepcopy({key: value for key, value in data.items() if key != "compare"})
    changes = data["compare"][name]
    if "compare" in changes:
        raise ConfigError(f"{path}: compare.{name}.compare: value is not allowed; a case has no cases")
    _merge(case, deepcopy(changes))
    resolve_in(case, find_scenario(path).parent)
    case["name"] = changes.get("name", f"{case['name']}-{name}")
    return parse(case, f"{path}: compare.{name}")


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    """Replace values in place; mappings are merged key by key."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
