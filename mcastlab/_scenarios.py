"""Scenarios: from files, by name and from Python values."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import PrivateAttr, TypeAdapter, ValidationError

from experiments.scenario import scenario as model
from experiments.scenario.cases import load_cases
from experiments.scenario.files import put
from experiments.scenario.ready import find_scenario, ready_scenarios
from experiments.scenario.scenario import complete, read, schema
from experiments.scenario.validation_errors import complaint, validated
from protocols.errors import ConfigError, UsageError
from topologies.generators import AnyTopology
from topologies.spec import Topology

__all__ = ["Scenario", "ScenarioSource", "cases", "load", "scenarios", "topology"]


class Scenario(model.Scenario):
    """A checked scenario: topology, protocol, workload, seed, duration and more (docs/networks.md, `mcastlab schema`).

    Made by `load`, from a file or from Python values. Attributes are in seconds, bytes and bytes per second.
    """

    _given: dict[str, Any] | None = PrivateAttr(default=None)
    """The values as they were written, for `load` to replace some of them."""


ScenarioSource: TypeAlias = str | Path | Mapping[str, Any] | model.Scenario
"""A scenario file, the name of a ready scenario, the values of one, or a scenario."""

_TOPOLOGY: TypeAdapter[AnyTopology] = TypeAdapter(AnyTopology)


def scenarios() -> dict[str, str]:
    """The ready scenarios: what each shows, by name."""
    return {name: item.about for name, item in ready_scenarios().items()}


def load(source: ScenarioSource, overrides: Mapping[str, object] | None = None, /, **more: object) -> Scenario:
    """Read and check a scenario, with some of its values replaced.

    `source` is a file, the name of a ready scenario, or the values themselves as a file would hold them. `overrides` replaces
    values by their path; keyword arguments do the same with `__` for the dots. Values are Python's or strings with units:

    >>> load("lan-file", {"topology.receivers": 100, "topology.link.down.loss": "5%"}, seed=7)
    >>> load("lan-file", topology__receivers=100, protocol={"module": "gossip.py"})
    >>> values = {"topology": {"kind": "lan", "receivers": 3}, "protocol": {"name": "norm"}, "workload": {"size": "1MB"}}
    >>> load(values, name="mine")

    A file that a scenario names (a topology, a protocol) is looked for beside the scenario's own file, then in the working
    directory. ConfigError names the key that is wrong, in one line; UsageError a file that can't be read.
    """
    if isinstance(source, model.Scenario):
        given = source._given if isinstance(source, Scenario) else None
        if given is None:
            raise UsageError("load: values can be replaced in a scenario that `load` made, and in no other")
        source = given
    origin = Path("scenario") if isinstance(source, Mapping) else find_scenario(source)
    data = deepcopy(dict(source)) if isinstance(source, Mapping) else read(origin)
    replaced = {**(overrides or {}), **{key.replace("__", "."): value for key, value in more.items()}}
    for key, value in replaced.items():
        put(data, key.split("."), deepcopy(value), f"{key}={value}")
    complete(data, origin)
    found = validated(Scenario, data, origin, schema)
    found._given = data
    return found


def cases(source: str | Path) -> dict[str, model.Scenario]:
    """The cases that a scenario file or ready scenario lists under `compare`, by name; one, named "", where it lists none."""
    return load_cases(source)


def topology(kind: str, **values: object) -> Topology:
    """Build a network: `topology("star", receivers=20, link={"rate": "20Mbit", "delay": "10ms"})`.

    `kind` and its values are those of a scenario's `topology` (docs/networks.md). ConfigError names the value that is wrong.
    """
    data = {"kind": kind, **values}
    try:
        return _TOPOLOGY.validate_python(data).build()
    except ValidationError as error:
        raise ConfigError(f"topology: {complaint(error, data, _TOPOLOGY.json_schema())}") from error
