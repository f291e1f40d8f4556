"""Scenario: the only input of a run. Frozen, validated, with a digest that depends on its meaning alone."""

import json
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from experiments.complaint import complaint
from experiments.faults import Fault
from experiments.faults import check as check_fault
from experiments.protocol_choice import ProtocolChoice
from experiments.scenario_file import override, read_yaml
from experiments.workload import Workloads
from protocols.errors import ConfigError, UsageError
from topologies.generators import AnyTopology
from topologies.spec import Topology
from topologies.units import Duration

__all__ = ["Scenario", "load", "parse", "schema"]


MEANINGLESS = ("engine", "capture", "trace", "series")
"""Keys that say how to run and what to write down meanwhile, and change nothing in what comes out."""


class Scenario(BaseModel):
    """Topology, protocol, workload, seed and duration of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="what to call it in results")
    seed: int = Field(default=1, ge=0, lt=2**64, strict=True, description="every random number follows from it")
    topology: AnyTopology = Field(description="hosts, switches and links")
    protocol: ProtocolChoice = Field(description="protocol and parameters")
    workload: Workloads = Field(description="what is sent: one workload or a list")
    duration: Duration = Field(default=60.0, gt=0.0, description="the run ends then at the latest")
    faults: tuple[Fault, ...] = Field(default=(), description="what goes wrong, and when")
    wire: Literal["objects", "bytes"] = Field(
        default="objects", description="simulator: hand message objects on, or encode and decode them at each link"
    )
    engine: Literal["auto", "strict", "fast"] = Field(
        default="auto", description="simulator: one event per delivery, or grouped; the same comes out"
    )
    capture: tuple[str, ...] = Field(
        default=(), description="pcapng of these nodes and links (like s1-r1) into the output folder; simulator only"
    )
    trace: bool | tuple[str, ...] = Field(
        default=False, description="trace into the output folder: of everything, or of these hosts; simulator only"
    )
    series: Duration | None = Field(
        default=None, gt=0.0, description="time series (Parquet) of this interval into the output folder; simulator only"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Scenario":
        topology = self.build_topology()
        first = self.workload[0].group
        for n, work in enumerate(self.workload):
            try:
                topology.member(work.sender)
            except UsageError as error:
                raise ConfigError(f"workload.{n}.from: value {work.sender!r} is not allowed; {error}") from error
            if work.group != first:
                raise ConfigError(f"workload.{n}.group: value {work.group!r} is not allowed; one group per run, here {first!r}")
        for n, fault in enumerate(self.faults):
            try:
                check_fault(fault, topology)
            except ConfigError as error:
                raise ConfigError(f"faults.{n}.{error}") from error
        if len(self.senders) == sum(map(topology.size, topology.host_nodes)):
            raise ConfigError(f"workload: value {self.senders!r} of all 'from' is not allowed; at least one host receives")
        return self

    @property
    def senders(self) -> list[str]:
        """The hosts that send, each once, in the order of the workload."""
        return list(dict.fromkeys(work.sender for work in self.workload))

    def build_topology(self) -> Topology:
        """The graph of this scenario."""
        try:
            return self.topology.build()
        except ConfigError as error:
            key, _, why = str(error).partition(": ")
            raise ConfigError(f"topology.{key}: value {why}") from error

    def plain(self) -> dict[str, Any]:
        """Every value, defaults included, in seconds, bytes and bytes per second."""
        return self.model_dump(mode="python", by_alias=True)

    def digest(self) -> str:
        """SHA-256 over the canonical JSON of `plain`: equal for scenarios that mean the same, on every machine.

        What changes nothing is left out: the engine, and what is only looked at.
        """
        meaning = {key: value for key, value in self.plain().items() if key not in MEANINGLESS}
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()


def load(path: Path | str, sets: Iterable[str] = (), seed: int | None = None) -> Scenario:
    """The scenario in a YAML file, with `key.path=value` replacements and another seed. ConfigError is one line."""
    data = read_yaml(Path(path))
    override(data, sets)
    if seed is not None:
        data["seed"] = seed
    return parse(data, str(path))


def parse(data: dict[str, Any], origin: str) -> Scenario:
    """The scenario in plain values; `origin` names them in errors."""
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {complaint(error, data, schema())}") from error
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    return Scenario.model_json_schema(by_alias=True)
