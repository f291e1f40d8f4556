"""The scenario of a run: all its parameters, frozen and validated, with a digest of those that influence the result."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from experiments.scenario.connections import Connections
from experiments.scenario.cross_traffic import AnyTraffic, check_flow
from experiments.scenario.emulation_options import EmulationChoice
from experiments.scenario.fault_schedule import Fault
from experiments.scenario.fault_schedule import check as check_fault
from experiments.scenario.files import override, read_yaml
from experiments.scenario.foreign_nodes import NodeChoice, check_networks, check_nodes, check_roles
from experiments.scenario.json_schema import describe_kinds
from experiments.scenario.margins import Margins
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.scenario.protocol_modules import resolve_in
from experiments.scenario.ready import find_scenario
from experiments.scenario.validation_errors import validated
from experiments.workload.file import Attendance, FileWorkload
from experiments.workload.membership import receivers_of
from experiments.workload.publish import PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload
from experiments.workload.workloads import Workloads, before_end, check_times
from protocols.content import SizeOnly
from protocols.errors import ConfigError, UsageError
from protocols.file_messages import largest_file
from protocols.machine import Content
from protocols.messaging import Publication, Subscription
from protocols.object_messaging import check_message, guarantees_of, roles_of
from protocols.roles import BOTH
from topologies.files import read_topology
from topologies.generators import AnyTopology
from topologies.spec import Topology, with_router_machines
from topologies.units import Duration

__all__ = ["SEEDS", "Scenario", "complete", "file_schema", "load", "parse", "read", "schema"]


MEANINGLESS = ("engine", "capture", "trace", "series", "statistics", "twin", "compare")
"""Keys that do not influence the result: how to run, what to record, and what to compare."""
MOST_STATISTICS = 1_000_000
"""Snapshots that are kept in a run, at most."""
MOST_FILES = 65_536
"""Files of one sender at the most: the object ids of NORM have 16 bits, as those in identities of content of all protocols."""
SEEDS = 2**64
"""How many seeds there are: from 0 on."""
USUAL_SEGMENT = 1400
"""Bytes of content in a packet of a protocol that has no such parameter."""

CaseName: TypeAlias = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_-]*$")]


class Scenario(BaseModel):
    """Topology, protocol, workload, seed and duration of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="name of the scenario in results")
    seed: int = Field(default=1, ge=0, lt=SEEDS, strict=True, description="seed of all random numbers of the run")
    topology: AnyTopology = Field(description="hosts, switches, routers and links; or {file: net.yaml}")
    protocol: ProtocolChoice = Field(description="name of the protocol, or {module: mine.py}, and its parameters")
    workload: Workloads = Field(description="files to send, messages to publish, subscriptions: one workload or a list")
    traffic: tuple[AnyTraffic, ...] = Field(
        default=(), fail_fast=True, description="cross traffic beside the session; simulator only"
    )
    receivers: tuple[Attendance, ...] = Field(default=(), fail_fast=True, description="receivers that join late or leave early")
    nodes: dict[str, NodeChoice] = Field(
        default_factory=dict, description="roles of nodes; and programs of hosts other than mcastlab's own, in Mininet only"
    )
    duration: Duration = Field(default=60.0, gt=0.0, description="time limit of the run")
    faults: tuple[Fault, ...] = Field(default=(), fail_fast=True, description="what goes wrong, and when")
    wire: Literal["objects", "bytes"] = Field(
        default="objects", description="simulator: pass messages as objects, or encode and decode them on the way"
    )
    connections: Connections = Field(default_factory=Connections, description="TCP of protocols that use connections")
    emu: EmulationChoice = Field(default_factory=EmulationChoice, description="options of runs in Mininet")
    engine: Literal["auto", "strict", "fast"] = Field(
        default="auto",
        description="simulator: one event per delivery (strict) or grouped (fast); the results are equal",
    )
    capture: tuple[str, ...] = Field(
        default=(),
        description="nodes and links (such as s1-r1; hosts: all hosts) whose packets are written as pcapng into the folder",
    )
    trace: bool | tuple[str, ...] = Field(
        default=False, description="write a trace into the output folder: of all hosts, or of these; simulator only"
    )
    series: Duration | None = Field(
        default=None, gt=0.0, description="interval of time series written as Parquet into the output folder; simulator only"
    )
    statistics: Duration | None = Field(
        default=None, gt=0.0, description="interval at which the statistics of every host are kept for the result"
    )

    compare: dict[CaseName, dict[str, Any]] = Field(
        default_factory=dict, description="cases by name, each with the values that differ from this file; `run` runs all cases"
    )
    twin: Margins | None = Field(default=None, description="equivalence margins for `mcastlab twin`")

    @model_validator(mode="after")
    def _fits(self) -> "Scenario":
        topology = self.build_topology()
        for key, names in self.named_hosts():
            for name in names:
                try:
                    topology.hosts_of(name)
                except UsageError as error:
                    raise ConfigError(f"{key}: value {name!r} is not allowed; {error}") from error
        rows = 0.0 if self.statistics is None else len(topology.hosts) * self.duration / self.statistics
        if rows > MOST_STATISTICS:
            least = len(topology.hosts) * self.duration / MOST_STATISTICS
            raise ConfigError(f"statistics: value {self.statistics!r} is not allowed; at least {least:g} s for so many hosts")
        for n, fault in enumerate(self.faults):
            try:
                check_fault(fault, topology)
            except ConfigError as error:
                raise ConfigError(f"faults.{n}.{error}") from error
            self._check_churn(n, fault)
        self._check_audience(topology)
        self._check_receivers(topology)
        self._check_times()
        check_nodes(self.nodes, self.protocol.name, self.protocol.config)
        self._check_roles()
        check_networks(self.nodes, roles_of(self.protocol.spec), topology, self.protocol.config)
        return self

    def _check_churn(self, number: int, fault: Fault) -> None:
        """ConfigError for a host that is to leave and come, and neither publishes nor subscribes."""
        named = [*(work.hosts for work in self.publications), *(work.hosts for work in self.subscriptions)]
        taking_part = {host for hosts in named for host in self._hosts_in(hosts)}
        for name in fault.churn or ():
            if not taking_part.issuperset(self._hosts_of(name)):
                raise ConfigError(
                    f"faults.{number}.churn: value {name!r} is not allowed; hosts with publishers or subscribers leave and come"
                )

    def _check_roles(self) -> None:
        """ConfigError for a workload that the protocol can't carry, and for roles that are unknown or not taken."""
        spec, needed = self.protocol.spec, dict[str, str]()
        roles, guarantees = roles_of(spec), guarantees_of(spec)
        for n, work in enumerate(self.workload):
            if isinstance(work, FileWorkload):
                if not spec.carries_files:
                    raise ConfigError(
                        f"workload.{n}.kind: value 'file' is not allowed; protocol {spec.name} carries publish and subscribe"
                    )
                self._check_file(n, work)
                if not spec.needs_no_server:
                    needed.setdefault("sender", f"workload.{n}")
                    needed.setdefault("receiver", f"workload.{n}")
                continue
            needed["publisher" if isinstance(work, PublishWorkload) else "subscriber"] = f"workload.{n}"
            if isinstance(work, SubscribeWorkload) and work.selector and not guarantees.has_selectors:
                raise ConfigError(
                    f"workload.{n}.selector: value {work.selector!r} is not allowed; protocol {spec.name} has no selectors"
                )
            selector = work.selector if isinstance(work, SubscribeWorkload) else ""
            for to in [work.to] if isinstance(work.to, str) else work.to:
                try:
                    guarantees.check(Subscription(0, to, selector))
                except UsageError as error:
                    raise ConfigError(f"workload.{n}.{error}") from error
            if isinstance(work, PublishWorkload):
                self._check_message(n, work.largest)
        self._check_counts()
        if self.publications and not self.subscriptions:
            raise ConfigError("workload: nobody subscribes to what is published; add one of kind subscribe")
        if spec.separates_roles(self.protocol.config):
            self._check_separate()
        check_roles(self.nodes, roles, spec.name, needed)
        self._check_both()

    def _check_file(self, number: int, work: FileWorkload) -> None:
        """ConfigError for a file that the protocol carries as a message, if that is too large, or the server is another's."""
        spec = self.protocol.spec
        if spec.guarantees is not None:
            self._check_message(number, largest_file(work.size))
        content = Content(SizeOnly(work.size), f"{self.name}-{work.sender}-{work.count - 1}".encode())
        self._check(number, spec.check_content, self.protocol.config, content)
        for name, choice in self.nodes.items():
            if choice.foreign and choice.taken_role is not None:
                raise ConfigError(
                    f"nodes.{name}.run: value {choice.run!r} is not allowed with a workload of kind file; it "
                    f"confirms what it has, and not what receivers have; {{role: {choice.taken_role}}} does"
                )

    def _check_counts(self) -> None:
        """ConfigError for a host that sends more files to a group than there are object ids."""
        sent: Counter[tuple[str, str]] = Counter()
        for n, work in enumerate(self.workload):
            if isinstance(work, FileWorkload):
                key = work.sender, work.group
                sent[key] += work.count
                if sent[key] > MOST_FILES:
                    raise ConfigError(
                        f"workload.{n}.count: value {work.count} is not allowed; at most {MOST_FILES} files of one host in "
                        f"all, and with this {work.sender} sends {sent[key]}"
                    )

    def _check_message(self, number: int, message: Publication) -> None:
        """ConfigError for a message of a workload that the protocol, or the protocol with these parameters, can't carry."""
        self._check(number, check_message, self.protocol.spec, self.protocol.config, message)

    @staticmethod
    def _check(number: int, check: Callable[..., object], *arguments: object) -> None:
        """Call a check of what a workload carries; ConfigError names the parameter, or the workload, that is wrong."""
        try:
            check(*arguments)
        except ConfigError as error:
            raise ConfigError(f"protocol.{error} (workload.{number})") from error
        except UsageError as error:
            # Protocols of users raise any text.
            names_key = re.match("[a-z]+: ", str(error)) is not None
            raise ConfigError(f"workload.{number}{'.' if names_key else ': '}{error}") from error

    def _check_both(self) -> None:
        """ConfigError for a node of role `both` whose workload is not one publisher and one subscriber of one group."""
        for name, choice in self.nodes.items():
            for host in self._hosts_of(name) if choice.role == BOTH else ():
                published = [work for work in self.publications if host in self._hosts_in(work.hosts)]
                subscribed = [work for work in self.subscriptions if host in self._hosts_in(work.hosts)]
                clients = [sum(work.clients for work in published), sum(work.clients for work in subscribed)]
                groups = {work.group for work in published} | {work.group for work in subscribed}
                if clients != [1, 1] or len(groups) > 1 or self.files:
                    raise ConfigError(
                        f"nodes.{name}.role: value {BOTH!r} is not allowed; {host} publishes {clients[0]} times and subscribes "
                        f"{clients[1]} times, and the role is one of each, in one group, without files in the workload"
                    )

    def _check_separate(self) -> None:
        """ConfigError for a host that publishes and subscribes, which the protocol refuses."""
        publishers = {host for work in self.publications for name in work.hosts for host in self._hosts_of(name)}
        for n, work in enumerate(self.workload):
            for name in work.hosts if isinstance(work, SubscribeWorkload) else ():
                if publishers.intersection(self._hosts_of(name)):
                    raise ConfigError(
                        f"workload.{n}.hosts: value {name!r} is not allowed; it publishes, and protocol {self.protocol.name} "
                        "with same_host_fault has no publisher and subscriber on one host"
                    )

    def named_hosts(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield every key that names hosts, with the names."""
        for n, work in enumerate(self.workload):
            if isinstance(work, FileWorkload):
                yield f"workload.{n}.from", (work.sender,)
                yield f"workload.{n}.members", work.members or ()
            else:
                yield f"workload.{n}.hosts", work.hosts
        for n, flow in enumerate(self.traffic):
            yield f"traffic.{n}.from", (flow.source,)
            yield f"traffic.{n}.to", (flow.sink,)
        for n, entry in enumerate(self.receivers):
            yield f"receivers.{n}.hosts", entry.hosts
        for name in self.nodes:
            yield f"nodes.{name}", (name,)

    def _check_audience(self, topology: Topology) -> None:
        """ConfigError for files that nobody receives."""
        groups = dict.fromkeys(work.group for work in self.files)
        works = [[work for work in self.files if work.group == group] for group in groups]
        if not self.files or any(True for each in works for _ in receivers_of(topology, each, self.senders)):
            return
        for n, work in enumerate(self.workload):
            if isinstance(work, FileWorkload) and work.members is not None:
                raise ConfigError(f"workload.{n}.members: value {list(work.members)} is not allowed; a host that does not send")
            if isinstance(work, FileWorkload) and work.ttl is not None:
                raise ConfigError(f"workload.{n}.ttl: value {work.ttl} is not allowed; nobody who receives is within its reach")
        raise ConfigError(f"workload: value {self.senders!r} of all 'from' is not allowed; at least one host receives")

    def _check_receivers(self, topology: Topology) -> None:
        for n, entry in enumerate(self.receivers):
            for name in (host for entry_name in entry.hosts for host in topology.hosts_of(entry_name)):
                if name in self.senders:
                    raise ConfigError(f"receivers.{n}.hosts: value {name!r} is not allowed; it sends, and stays")
            if entry.leave is not None and entry.leave <= entry.join:
                raise ConfigError(f"receivers.{n}.leave: value {entry.leave!r} is not allowed; later than join, {entry.join!r}")
        for n, flow in enumerate(self.traffic):
            try:
                check_flow(flow, topology)
            except ConfigError as error:
                raise ConfigError(f"traffic.{n}.{error}") from error

    def _check_times(self) -> None:
        """ConfigError for a workload, a fault or a receiver that would begin when the run is over."""
        for n, work in enumerate(self.workload):
            self._check(n, check_times, work, self.duration)
        times = {f"receivers.{n}.join": entry.join for n, entry in enumerate(self.receivers)}
        times |= {f"faults.{n}.at": fault.at or 0.0 for n, fault in enumerate(self.faults)}
        for key, time in times.items():
            if time >= self.duration:
                raise ConfigError(f"{key}: value {time!r} is not allowed; {before_end(self.duration)}")

    @property
    def foreign(self) -> dict[str, NodeChoice]:
        """Hosts and groups of hosts that run foreign programs."""
        return {name: choice for name, choice in self.nodes.items() if choice.foreign}

    @property
    def files(self) -> list[FileWorkload]:
        """The workloads that send files."""
        return [work for work in self.workload if isinstance(work, FileWorkload)]

    @property
    def publications(self) -> list[PublishWorkload]:
        """The workloads that publish messages."""
        return [work for work in self.workload if isinstance(work, PublishWorkload)]

    @property
    def subscriptions(self) -> list[SubscribeWorkload]:
        """The workloads that subscribe to messages."""
        return [work for work in self.workload if isinstance(work, SubscribeWorkload)]

    @property
    def senders(self) -> list[str]:
        """The hosts that send files, each once, in the order of the workload, then the names of those that publish."""
        named = [host for work in self.publications for name in work.hosts for host in self._hosts_of(name)]
        return list(dict.fromkeys([*(work.sender for work in self.files), *named]))

    def under(self, choice: ProtocolChoice) -> "Scenario":
        """Return the scenario with another protocol, without the roles of nodes that it does not have.

        ConfigError if a role it needs is not taken.
        """
        roles = roles_of(choice.spec)
        nodes = {name: node for name, node in self.nodes.items() if node.taken_role is None or node.taken_role in roles}
        other = self.model_copy(update={"protocol": choice, "nodes": nodes})
        other._check_roles()
        return other

    @property
    def segment(self) -> int:
        """Bytes of content in a packet."""
        return int(getattr(self.protocol.config, "segment", USUAL_SEGMENT))

    @property
    def scopes(self) -> dict[str, int]:
        """The TTLs of multicast packets, by host; those of other hosts have no limit."""
        if self.is_divided:
            return dict.fromkeys(self.build_topology().hosts, 1)
        found = {work.sender: work.ttl for work in self.files if work.ttl is not None}
        for work in self.publications:
            if work.ttl is not None:
                found |= dict.fromkeys([host for name in work.hosts for host in self._hosts_of(name)], work.ttl)
        return found

    @property
    def is_divided(self) -> bool:
        """Whether routers forward no multicast (TTL 1), because machines with a role such as `tunnel` carry it."""
        roles = roles_of(self.protocol.spec)
        return any(choice.role is not None and roles[choice.role].divides for choice in self.nodes.values())

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults, and the slow applications of subscribers."""
        slow = [work for work in self.subscriptions if work.slow is not None]
        return (*self.faults, *(_slow_application(work) for work in slow))

    def _hosts_in(self, names: Iterable[str]) -> list[str]:
        return [host for name in names for host in self._hosts_of(name)]

    def _hosts_of(self, name: str) -> list[str]:
        return self.build_topology().hosts_of(name)

    def build_topology(self) -> Topology:
        """Build the topology of the scenario. ConfigError names the key that is wrong."""
        try:
            topology = self.topology.build()
            named = [name for name, choice in self.nodes.items() if choice.role is not None]
            named += [name for work in self.publications for name in work.hosts]
            named += [name for work in self.subscriptions for name in work.hosts]
            routers = [name for name in named if name in topology.switches and topology.node(name).kind == "router"]
            return with_router_machines(topology, dict.fromkeys(routers)) if routers else topology
        except ConfigError as error:
            key, _, why = str(error).partition(": ")
            if " " in key or " is not allowed; " not in why:
                raise ConfigError(f"topology: {str(error).removeprefix('topology: ')}") from error
            raise ConfigError(f"topology.{key}: value {why}") from error

    def plain(self) -> dict[str, Any]:
        """Return all values, defaults included, in seconds, bytes and bytes per second."""
        return self.model_dump(mode="python", by_alias=True)

    def digest(self) -> str:
        """Return the SHA-256 of the canonical JSON of `plain`, without the keys in `MEANINGLESS`.

        It is equal for scenarios with equal results, on every machine.
        """
        meaning = {key: value for key, value in self.plain().items() if key not in MEANINGLESS}
        if self.protocol.module:
            # The digest of the source stands for the path of the module.
            meaning["protocol"] = meaning["protocol"] | {"module": self.protocol.digest}
        for file in ("key_file", "tunnel_key_file"):
            if file in meaning["protocol"]:
                # Which keys they are changes nothing but the bytes of MACs.
                rest = {key: value for key, value in meaning["protocol"].items() if key != file}
                meaning["protocol"] = rest | {file: True} if meaning["protocol"][file] else rest
        # The order of nodes decides their numbers.
        if self.topology.kind == "graph":
            meaning["topology"] = meaning["topology"] | {"nodes": list(meaning["topology"]["nodes"].items())}
        if any(choice.foreign or choice.role for choice in self.nodes.values()):
            meaning["nodes"] = list(meaning["nodes"].items())
        else:
            del meaning["nodes"]
        # Where stores are kept; a digest can't know what is in them.
        del meaning["emu"]["disk"]
        if self.connections == Connections():
            del meaning["connections"]
        for key in ("rates", "trunk"):
            if meaning["emu"][key] == "any":
                del meaning["emu"][key]
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()


def _slow_application(work: SubscribeWorkload) -> Fault:
    """Return the fault that makes the hosts of a slow subscriber slow while it is subscribed."""
    span = {} if work.until is None else {"for": work.until - work.at}
    return Fault.model_validate({"at": work.at, "slow": work.hosts, "takes": work.slow, "room": work.room, **span})


def load(path: Path | str, sets: Iterable[str] = (), seed: int | None = None) -> Scenario:
    """Load a scenario file or a ready scenario, with replacements `key.path=value` and another seed.

    ConfigError names the key that is wrong, in one line; UsageError a file that can't be read.
    """
    return parse(read(path, sets, seed), str(path))


def read(path: Path | str, sets: Iterable[str] = (), seed: int | None = None) -> dict[str, Any]:
    """Return the plain values of a scenario file or a ready scenario, with replacements as for `load`."""
    path = find_scenario(path)
    data = read_yaml(path)
    if "scenario" in data and "topology" not in data:
        raise ConfigError(f"{path}: is a sweep and no scenario; run it with: mcastlab sweep {quote(str(path))}")
    override(data, sets)
    complete(data, path)
    if seed is not None:
        data["seed"] = seed
    return data


def complete(data: dict[str, Any], path: Path) -> None:
    """Resolve the files that plain values name, in the folder of `path` or the working directory: topology, protocol module."""
    _read_topology(data, path)
    resolve_in(data, path.parent)


def _read_topology(data: dict[str, Any], path: Path) -> None:
    """Replace `topology: {file: net.yaml}` by the content of the file in the scenario's folder, else the working directory."""
    topology = data.get("topology")
    if not isinstance(topology, dict) or "file" not in topology:
        return
    rest = {key: value for key, value in topology.items() if key != "file"}
    if wrong := sorted(rest.keys() - {"multicast"}):
        raise ConfigError(f"{path}: topology.{wrong[0]}: value {rest[wrong[0]]!r} is not allowed; beside file only multicast")
    file = Path(str(topology["file"]))
    beside = path.parent / file
    data["topology"] = read_topology(file if file.exists() and not beside.exists() else beside) | rest


def parse(data: dict[str, Any], origin: str) -> Scenario:
    """Validate plain values as a scenario; `origin` names them in errors."""
    return validated(Scenario, data, origin, schema)


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the plain values of a scenario."""
    return Scenario.model_json_schema(by_alias=True)


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files, in which a topology may also be the name of a file."""
    whole = deepcopy(schema())
    topology = whole["properties"]["topology"]
    description = topology.pop("description")
    named = {
        "type": "object",
        "title": "File",
        "description": "YAML, JSON or GraphML file of a topology, in the folder of the scenario or the working directory",
        "properties": {
            "file": {"type": "string", "description": "path of the file"},
            "multicast": {"$ref": "#/$defs/Multicast", "description": "how networks forward multicast packets"},
        },
        "required": ["file"],
        "additionalProperties": False,
    }
    whole["properties"]["topology"] = {"title": "Topology", "description": description, "anyOf": [named, topology]}
    describe_kinds(whole)
    return whole
