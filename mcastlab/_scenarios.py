"""Load scenarios from files, by name and from Python values."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ModelWrapValidatorHandler, PrivateAttr, TypeAdapter, ValidationError, model_validator

from experiments.scenario import scenario as model
from experiments.scenario.cases import load_cases
from experiments.scenario.files import put
from experiments.scenario.plain_values import mapping_of, plain_value
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.scenario.ready import find_scenario, ready_scenarios
from experiments.scenario.scenario import complete, read, schema
from experiments.scenario.validation_errors import complaint, validated
from mcastlab._arguments import a_path, names_arguments
from protocols.errors import ConfigError, UsageError, shown
from topologies.generators import AnyTopology
from topologies.spec import Topology

__all__ = ["Scenario", "ScenarioSource", "cases", "load", "scenarios", "topology"]


class Scenario(model.Scenario):
    """A validated scenario: topology, protocol, workload, seed, duration and more (docs/networks.md, `mcastlab schema`).

    `load` makes it from a file or from Python values. Attributes are in seconds, bytes and bytes per second. ConfigError names
    the key that is wrong.
    """

    _given: dict[str, Any] | None = PrivateAttr(default=None)
    """The values before validation, of which `load` replaces some."""

    @model_validator(mode="wrap")
    @classmethod
    def _of_values(cls, data: Any, handler: ModelWrapValidatorHandler["Scenario"]) -> "Scenario":
        """Take Python values; say in one line what is wrong with them."""
        plain = plain_value(data, "scenario")
        try:
            found = handler(plain)
        except ValidationError as error:
            raise ConfigError(complaint(error, plain, schema())) from error
        if isinstance(plain, dict):
            # The model changes nothing in these values.
            found._given = plain
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise UsageError, since runs of a changed scenario would not be those of its digest."""
        if not name.startswith("_"):
            raise UsageError(f"{name}: can't be set, a scenario is never changed; load(scenario, {name}=...) makes another")
        super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> "Scenario":
        """Return a copy with some attributes replaced, which are not validated; `load` takes no changed copy."""
        copy = super().model_copy(update=update, deep=deep)
        if update:
            copy._given = None
        return copy

    def under(self, choice: ProtocolChoice) -> model.Scenario:
        """Return the scenario with the `protocol` of another one, without the roles of nodes that this protocol does not have.

        UsageError for what is no protocol of a scenario, ConfigError if a role it needs is not taken.
        """
        if not isinstance(choice, ProtocolChoice):
            allowed = "the `protocol` of a scenario; a name is taken by load(scenario, protocol={'name': ...})"
            raise UsageError(f"choice: value {shown(choice)} is not allowed; {allowed}")
        return super().under(choice)


ScenarioSource: TypeAlias = str | PathLike[str] | Mapping[str, Any] | model.Scenario
"""A scenario file, the name of a ready scenario, its plain values, or a scenario."""

_TOPOLOGY: TypeAdapter[AnyTopology] = TypeAdapter(AnyTopology)


def scenarios() -> dict[str, str]:
    """Return the ready scenarios: a description of each, by name."""
    return {name: item.about for name, item in ready_scenarios().items()}


@names_arguments
def load(source: ScenarioSource, overrides: Mapping[str, object] | None = None, /, **more: object) -> Scenario:
    """Load and validate a scenario, with some of its values replaced.

    `source` is a file, the name of a ready scenario, or the plain values of a file. `overrides` replaces values by their
    path; keyword arguments do the same with `__` for the dots. Values are Python values or strings with units:

    >>> load("lan-file", {"topology.receivers": 100, "topology.link.down.loss": "5%"}, seed=7)
    >>> load("lan-file", topology__receivers=100, protocol={"module": "gossip.py"})
    >>> values = {"topology": {"kind": "lan", "receivers": 3}, "protocol": {"name": "norm"}, "workload": {"size": "1MB"}}
    >>> load(values, name="mine")

    A topology file and a protocol module are looked up in the folder of the scenario file, then in the working directory.
    ConfigError names the key that is wrong, in one line; UsageError a file that can't be read, or another argument that is not
    allowed. Numbers and arrays of numpy, and rows of pandas as `overrides`, are as good as plain values.
    """
    if isinstance(source, model.Scenario):
        given = source._given if isinstance(source, Scenario) else None
        if given is None:
            raise UsageError("load: values can be replaced in a scenario that `load` or `Scenario` made, and in no other")
        source = given
    if not isinstance(source, (str, PathLike, Mapping)):
        raise UsageError(f"load: {shown(source)} is not allowed; a file, the name of a ready scenario, values or a Scenario")
    origin = Path("scenario") if isinstance(source, Mapping) else find_scenario(a_path("load", source))
    data = mapping_of(source, "scenario") if isinstance(source, Mapping) else read(origin)
    wanted = {} if overrides is None else mapping_of(overrides, "overrides")
    for key in wanted:
        if not isinstance(key, str) or not all(key.split(".")):
            raise UsageError(f"load: the path {key!r} is not allowed; keys with dots between them, like 'topology.receivers'")
    wanted |= mapping_of({key.replace("__", "."): value for key, value in more.items()}, "load")
    for key, value in wanted.items():
        put(data, key.split("."), value, f"{key}={value}")
    complete(data, origin)
    return validated(Scenario, data, origin, schema)


@names_arguments
def cases(source: str | PathLike[str]) -> dict[str, model.Scenario]:
    """Return the cases of a scenario file or ready scenario by their names in `compare`; one, named "", if it lists none.

    ConfigError names the case and the key that is wrong, UsageError a file that can't be read.
    """
    return load_cases(a_path("cases", source))


def topology(kind: str, **values: object) -> Topology:
    """Build a network: `topology("star", receivers=20, link={"rate": "20Mbit", "delay": "10ms"})`.

    `kind` and its values are those of a scenario's `topology` (docs/networks.md). ConfigError names the value that is wrong.
    """
    data = {"kind": kind, **mapping_of(values, "topology")}
    if not isinstance(kind, str):
        raise ConfigError(f"topology: kind: value {shown(kind)} is not allowed; text, like 'star'")
    try:
        return _TOPOLOGY.validate_python(data).build()
    except ValidationError as error:
        raise ConfigError(f"topology: {complaint(error, data, _TOPOLOGY.json_schema())}") from error
