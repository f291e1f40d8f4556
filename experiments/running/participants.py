"""The participants of a run: the programs of every host, and the objects each receiver must get."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from experiments.running.composite import CompositeProgram, PartTimeReceiver, RestartableProgram, Role
from experiments.running.content import Accounted, Extent, Generated, digest_of
from experiments.running.foreign_objects import match_objects, without_object_ids
from experiments.running.lives import add_counts, longest_of
from experiments.running.messaging_participants import NO_SERVERS, MessagingParticipants, Party, Servers
from experiments.running.open_sinks import AbortableSink
from experiments.running.program import Job, Node, ReceiverProgram, SenderProgram, Sinks
from experiments.running.result import Result, Row, combine, message_metrics, row_of
from experiments.running.shared_machine import SharedMachineProgram
from experiments.scenario.cross_traffic import FlowEnd, FlowSource, flow_row
from experiments.scenario.foreign_nodes import BY_WORKLOAD, NodeChoice
from experiments.scenario.scenario import Scenario
from experiments.workload.file import Attendance, FileWorkload
from experiments.workload.ledger import Ledger
from experiments.workload.membership import receivers_of
from protocols.cross import CrossCodec, Load, Receipt
from protocols.errors import ConfigError
from protocols.machine import Codec, Content, Group, Offer, Source
from topologies.addressing import node_id
from topologies.spec import Topology

if TYPE_CHECKING:
    # Imported only where a foreign program takes part: a run in the simulator needs nothing of the emulator.
    from emu.foreign_program import ForeignProgram

__all__ = ["Participants", "MulticastSession", "WorldCounters"]

Key: TypeAlias = tuple[int, int]
Sent: TypeAlias = tuple[int, str | None]

SESSION_SHIFT = 24
"""Bit position of the session number in a node id; the lower bits are the host's id in the topology."""
_OF_CLIENTS = ("messages_", "pool_", "reordered", "jitter_us")
"""Prefixes of the counters in the result of each client: of messages, of containers, and of order and jitter of datagrams."""


@dataclass(frozen=True, slots=True)
class WorldCounters:
    """Counters of the simulator or the emulation: packets and bytes of all hosts by kind of message, and further metrics."""

    fingerprint: str | None
    packets: Mapping[str, int]
    octets: Mapping[str, int]
    metrics: dict[str, Any]


_HostResults: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The result of each host, with those of its programs."""


class MulticastSession:
    """A multicast group with its senders and receivers. `number` is its index among the groups of the scenario."""

    def __init__(self, number: int, name: str, works: list[FileWorkload]) -> None:
        self.number = number
        self.name = name
        self.works = works
        self.has_unsent = False
        """Whether a sender failed before it had sent all of its objects."""

    @property
    def senders(self) -> list[str]:
        """The hosts that send to the group, each once."""
        return list(dict.fromkeys(work.sender for work in self.works))

    def role(self, taken: bool) -> str:
        """Return the name of the random stream of a program; "" (the host's own) unless `taken` by another program."""
        return f"session-{self.number}" if taken else ""

    def id_of(self, topology: Topology, host: str) -> int:
        """Return the 32-bit node id of a host within this session."""
        return node_id(topology, host) | self.number << SESSION_SHIFT


def _sessions_of(scenario: Scenario) -> list[MulticastSession]:
    """Return the sessions of a scenario, in the order in which the workload names their groups."""
    groups = dict.fromkeys(work.group for work in scenario.files)
    return [
        MulticastSession(number, group, [work for work in scenario.files if work.group == group])
        for number, group in enumerate(groups)
    ]


@dataclass(frozen=True, slots=True)
class _Enrolled:
    """A sender or receiver of a session; `place` is the index of its result among those of its host."""

    host: str
    session: MulticastSession
    place: int
    program: "SenderProgram | ReceiverProgram | ForeignProgram"

    @property
    def name(self) -> str:
        """The name of its row: the host, and `host@group` for all groups but the first."""
        return self.host if self.session.number == 0 else f"{self.host}@{self.session.name}"


class Participants:
    """Make the programs of every host and, after the run, its result.

    `bytes_travel`: contents have bytes and are verified by SHA-256. `address` returns the address of a group by its name,
    `sinks` the sink of an offered object. `fast`: run the protocol's fast machines. `packets` makes the codec by
    which roles with a codec of their own read packets of the protocol; None: these stay bytes. `servers` are those of
    `MessagingParticipants`. ConfigError for foreign programs that can't take their roles.
    """

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        address: Callable[[str], str],
        bytes_travel: bool,
        sinks: Sinks,
        fast: bool = False,
        packets: Callable[[], Codec] | None = None,
        servers: Servers = NO_SERVERS,
    ) -> None:
        self.scenario = scenario
        self.topology = topology
        self.bytes_travel = bytes_travel
        self._sinks = partial(_of_file, sinks) if scenario.publications else sinks
        self._fast = fast = fast and not scenario.is_divided
        self._address = address
        self._group_of: dict[int, Group] = {}
        self._sources: dict[tuple[int, str], list[Source]] = {}
        self._times: dict[tuple[int, str], list[float]] = {}
        self._roles: dict[str, list[Role]] = {}
        self._receivers: list[_Enrolled] = []
        self._senders: list[_Enrolled] = []
        self._foreign_programs: dict[str, ForeignProgram] = {}
        self._foreign = _foreign_hosts(scenario, topology)
        self._server_places: dict[str, list[tuple[str, int]]] = {}
        self._attendance: dict[str, Attendance] = {
            host: entry for entry in scenario.receivers for name in entry.hosts for host in topology.hosts_of(name)
        }
        sessions = _sessions_of(scenario)
        for session in sessions:
            self._enrol_receivers(session)
        self._add_traffic()
        for session in sessions:
            self._enrol_senders(session)
        self._check_foreign()
        self._messaging = MessagingParticipants(
            scenario,
            topology,
            address,
            bytes_travel,
            fast,
            [enrolled.name for enrolled in (*self._receivers, *self._senders)],
            lambda host: len(self._roles.get(host, ())),
            lambda host, name, program, codec: self._add_role(host, Role(name, program, codec)),
            packets,
            servers,
        )
        self._server_places.update(self._messaging.server_places())
        self._awaited = dict.fromkeys([*(enrolled.host for enrolled in self._senders), *self._messaging.publishers])
        self._programs = {name: self._program(name, roles) for name, roles in self._roles.items()}

    def _add_traffic(self) -> None:
        """Add the programs of cross traffic."""
        for number, spec in enumerate(self.scenario.traffic):
            port = self._add_role(spec.sink, Role(f"sink-{number}", FlowEnd(number, spec), CrossCodec))
            self._add_role(spec.source, Role(f"source-{number}", FlowSource(number, spec, port), CrossCodec))

    def _add_role(self, host: str, role: Role) -> int:
        """Add a role to a host and return its number among the host's roles, which is its port."""
        roles = self._roles.setdefault(host, [])
        roles.append(role)
        return len(roles) - 1

    def _enrol_receivers(self, session: MulticastSession) -> None:
        for name in receivers_of(self.topology, session.works, self.scenario.senders):
            if name in self._foreign:
                from experiments.running.foreign_programs import foreign_receiver

                foreign = foreign_receiver(self._foreign[name], self._node(session, name), self.scenario.seed)
                self._receivers.append(_Enrolled(name, session, 0, self._add_foreign(name, foreign)))
                continue
            receiver = ReceiverProgram(self._node(session, name), self._sinks, one_run=True)
            entry = self._attendance.get(name)
            program: RestartableProgram = receiver if entry is None else PartTimeReceiver(receiver, entry.join, entry.leave)
            place = self._add_role(name, Role(session.role(name in self._roles), program))
            self._receivers.append(_Enrolled(name, session, place, receiver))

    def _enrol_senders(self, session: MulticastSession) -> None:
        for name in session.senders:
            node, jobs = self._node(session, name), self._jobs(session, name)
            if name in self._foreign:
                from experiments.running.foreign_programs import foreign_sender

                foreign = foreign_sender(self._foreign[name], node, self.scenario.seed, jobs)
                self._senders.append(_Enrolled(name, session, 0, self._add_foreign(name, foreign)))
                continue
            program = SenderProgram(node, jobs)
            place = self._add_role(name, Role(session.role(name in self._roles), program))
            self._senders.append(_Enrolled(name, session, place, program))

    def _add_foreign(self, host: str, foreign: "ForeignProgram") -> "ForeignProgram":
        """Add a foreign program to a host. ConfigError if the host has one."""
        if host in self._foreign_programs:
            raise ConfigError(f"nodes.{host}.run: a foreign program takes one role, and {host} has several in the workload")
        self._foreign_programs[host] = foreign
        return foreign

    def _check_foreign(self) -> None:
        """ConfigError for a foreign program without a workload, with other roles on its host, or that joins or leaves."""
        for host in self._foreign:
            if host not in self._foreign_programs:
                raise ConfigError(f"nodes.{host}.run: {host} has nothing to do; it is in no workload")
            if host in self._roles:
                raise ConfigError(f"nodes.{host}.run: a foreign program is alone on its host, and {host} has other roles")
            if host in self._attendance:
                raise ConfigError(
                    f"nodes.{host}.run: a foreign program runs all the time, and receivers lets {host} join late or leave"
                )

    def _node(self, session: MulticastSession, name: str) -> Node:
        choice = self.scenario.protocol
        return Node(
            choice.spec,
            choice.config,
            session.id_of(self.topology, name),
            self._group(session),
            fast=self._fast,
            places=self._server_places,
        )

    def _group(self, session: MulticastSession) -> Group:
        """Return the group of a session: one object for all its members, which is found faster than an equal one."""
        group = self._group_of.get(session.number)
        if group is None:
            group = self._group_of[session.number] = Group(self._address(session.name))
        return group

    def _jobs(self, session: MulticastSession, sender: str) -> list[Job]:
        sources = self._sources[session.number, sender] = []
        times = self._times[session.number, sender] = []
        name = sender if session.number == 0 else f"{sender}-{session.name}"
        jobs = []
        for work in (work for work in session.works if work.sender == sender):
            for _ in range(work.count):
                number = len(sources)
                sources.append(self._source(work, name, number))
                times.append(work.at)
                jobs.append(Job(work.at, Content(sources[-1], f"{self.scenario.name}-{name}-{number}".encode())))
        return jobs

    def _source(self, work: FileWorkload, sender: str, number: int) -> Source:
        return Generated(work.size, self.scenario.seed, sender, number) if self.bytes_travel else Extent(work.size)

    def _program(self, host: str, roles: list[Role]) -> RestartableProgram:
        if host in self._messaging.sharing:
            return SharedMachineProgram(roles)
        alone = roles[0].program if len(roles) == 1 and not roles[0].name and roles[0].codec is None else None
        return CompositeProgram(roles) if alone is None else alone

    def programs(self) -> Iterator[tuple[str, RestartableProgram]]:
        """Yield host and program, without foreign ones; receivers come first, so that they listen before the first packet."""
        for name, program in self._programs.items():
            if name not in self._awaited:
                yield name, program
        for name in self._awaited:
            if name in self._programs:
                yield name, self._programs[name]

    @property
    def foreign_hosts(self) -> set[str]:
        """The hosts that run foreign programs."""
        return set(self._foreign_programs)

    def restarted(self, name: str, life: int) -> "RestartableProgram | ForeignProgram":
        """Return the program of a host after its `life`-th crash; earlier ones ran in other processes."""
        foreign = self._foreign_programs.get(name)
        if foreign is not None:
            foreign.crashes = life
            return foreign
        self._programs[name].restarted_after(life)
        return self._programs[name]

    def all_programs(self) -> "dict[str, RestartableProgram | ForeignProgram]":
        """Return the program of every host, including foreign ones."""
        return {**dict(self.programs()), **self._foreign_programs}

    @property
    def senders(self) -> set[str]:
        """The hosts of all senders and publishers, which must finish before the run ends."""
        return set(self._awaited)

    def over(self, failed: Collection[str] = ()) -> bool:
        """Return whether every sender and publisher has finished, but for those on hosts that `failed`."""
        return all(name in failed or self._programs[name].finished() for name in self._awaited)

    def groups(self) -> dict[str, list[str]]:
        """Return the hosts that send to or receive each group, by the group's address."""
        found: dict[str, dict[str, None]] = {}
        for enrolled in (*self._receivers, *self._senders):
            found.setdefault(self._address(enrolled.session.name), {})[enrolled.host] = None
        for group, hosts in self._messaging.groups().items():
            found.setdefault(self._address(group), {}).update(dict.fromkeys(hosts))
        return {address: list(hosts) for address, hosts in found.items()}

    def machine_programs(self) -> dict[str, SenderProgram | ReceiverProgram]:
        """Return every sender and receiver of mcastlab by the name of its row."""
        everybody = (*self._receivers, *self._senders)
        own = SenderProgram, ReceiverProgram
        return {enrolled.name: enrolled.program for enrolled in everybody if isinstance(enrolled.program, own)}

    @property
    def parties(self) -> list[Party]:
        """The publishers, subscribers and servers."""
        return self._messaging.parties

    @property
    def _has_messages(self) -> bool:
        """Whether anybody publishes or subscribes."""
        return bool(self.scenario.publications or self.scenario.subscriptions)

    @property
    def ledger(self) -> Ledger | None:
        """The ledger of messages after `result`; None in a run without messages."""
        return self._messaging.ledger

    def ledger_at(self, now: float) -> Ledger | None:
        """Return the ledger as it is at `now`, which may be after `result`; None in a run without messages."""
        if not self._has_messages:
            return None
        results = {name: program.result() for name, program in self.programs()}
        return self._messaging.ledger_at(lambda party: self._result_of(party, results), now)

    # Results

    def parts(self, host_results: _HostResults) -> dict[str, Mapping[str, Any]]:
        """Return the result of every sender and receiver by the name of its row, from the results of the hosts."""
        everybody: list[_Enrolled | Party] = [*self._receivers, *self._senders, *self.parties]
        return {enrolled.name: self._result_of(enrolled, host_results) for enrolled in everybody}

    def _result_of(self, enrolled: _Enrolled | Party, host_results: _HostResults) -> Mapping[str, Any]:
        """Return the result of one program of a host, or the host's `fault` if its process failed."""
        found = host_results[enrolled.host]
        parts: list[Mapping[str, Any]] | None = found.get("parts")
        return found if parts is None else parts[enrolled.place]

    def result(self, backend: str, host_results: _HostResults, world: WorldCounters) -> Result:
        """Make the result of the run on `backend` from the results of the hosts."""
        senders = [self._result_of(enrolled, host_results) for enrolled in self._senders]
        expected, submitted_at = self._expected(senders)
        sent = {key: value for each in expected.values() for key, value in each.items()}
        rows = tuple(self._row(enrolled, host_results, expected, submitted_at) for enrolled in self._receivers)
        submitted = len(sent) == sum(map(len, self._sources.values()))
        begins = [work.at for work in self.scenario.files]
        told: dict[str, Any] = {}
        if self._has_messages:
            rows += tuple(self._messaging.close(lambda party: self._result_of(party, host_results), world.metrics["duration"]))
            assert self.ledger is not None
            told = {"messages": message_metrics(self.ledger)}
            sent |= self.ledger.expected()
            begins += [at for at in [self.ledger.began_at()] if at is not None]
            senders += [self._result_of(party, host_results) for party in self.parties if party.role == "publisher"]
        told |= self._servers(host_results) | self._clients(host_results)
        metrics = combine(
            rows=rows,
            senders=senders,
            packets=_of_session(world.packets),
            octets=_of_session(world.octets),
            expected=sent,
            began_at=min(begins, default=0.0),
            segment=self.scenario.segment,
        )
        if self._has_messages and not self.scenario.files:
            metrics["goodput_mbit_s"] = told["messages"]["goodput_mbit_s"]
        told |= self._uncounted() | {"faults": self._faults(host_results, world)}
        return Result(
            scenario=self.scenario.name,
            digest=self.scenario.digest(),
            backend=backend,
            seed=self.scenario.seed,
            completed=submitted and all(row.equal for row in rows) and not self._has_failed(told["faults"]),
            fingerprint=world.fingerprint,
            metrics=metrics | self._cross(host_results, world) | world.metrics | told,
            receivers=rows,
            messages=None if self.ledger is None else self.ledger.plain(),
        )

    def _servers(self, host_results: _HostResults) -> dict[str, Any]:
        """Return the counters of the nodes whose role serves others, by the names of their rows."""
        serving = [party for party in self.parties if party.role not in BY_WORKLOAD]
        found = {party.name: self._result_of(party, host_results).get("counts") for party in serving}
        return {"servers": {name: counts for name, counts in found.items() if counts}} if any(found.values()) else {}

    def _uncounted(self) -> dict[str, Any]:
        """Return the metrics that can't be counted beside a foreign broker."""
        is_foreign = any(choice.foreign and choice.taken_role for choice in self.scenario.nodes.values())
        return {"packets": {"total": None}, "bytes_sent": None, "overhead": None} if is_foreign else {}

    def _clients(self, host_results: _HostResults) -> dict[str, Any]:
        """Return what publishers and subscribers count for their applications, and queues, by host and role."""
        found: dict[str, dict[str, Any]] = {}
        for party in self.parties:
            result, name = self._result_of(party, host_results), f"{party.role} {party.host}"
            own = {name: count for name, count in result.get("counts", {}).items() if name.startswith(_OF_CLIENTS)}
            if party.role in BY_WORKLOAD and own:
                before = found.get(name, {})
                longest = before.pop("longest_queues", ())
                found[name] = add_counts(before, own)
                if queues := longest_of(longest, result.get("queues", ())):
                    found[name]["longest_queues"] = queues
        return {"clients": found} if found else {}

    def _has_failed(self, faults: Mapping[str, Any]) -> bool:
        """Return whether a host with a sender or a publisher ended with an error."""
        return any("error" in faults.get(host, ()) for host in self._awaited)

    def _faults(self, host_results: _HostResults, world: WorldCounters) -> dict[str, Any]:
        """Return the faults of the hosts, with those of senders, publishers and servers, which have no row for them."""
        without_row: list[_Enrolled | Party] = [*self._senders, *self.parties]
        told = {enrolled.host: self._result_of(enrolled, host_results).get("fault") for enrolled in without_row}
        return {**world.metrics["faults"], **{host: {"error": fault} for host, fault in told.items() if fault}}

    def _expected(self, senders: list[Mapping[str, Any]]) -> tuple[dict[int, dict[Key, Sent]], dict[Key, float]]:
        """Return the objects sent in each session, and the time in seconds at which each was submitted."""
        expected: dict[int, dict[Key, Sent]] = {}
        times: dict[Key, float] = {}
        for enrolled, sender_result in zip(self._senders, senders, strict=True):
            session, name = enrolled.session, enrolled.host
            sent = expected.setdefault(session.number, {})
            for object_id, number in sender_result.get("sent", ()):
                source = self._sources[session.number, name][number]
                key = (session.id_of(self.topology, name), object_id)
                sent[key] = (source.size, digest_of(source) if self.bytes_travel else None)
                times[key] = self._times[session.number, name][number]
            if sender_result.get("fault") and len(sender_result.get("sent", ())) < len(self._sources[session.number, name]):
                session.has_unsent = True
        return expected, times

    def _row(
        self, enrolled: _Enrolled, host_results: _HostResults, expected: dict[int, dict[Key, Sent]], times: dict[Key, float]
    ) -> Row:
        sent = expected.get(enrolled.session.number, {})
        required: frozenset[Key] | None = None
        entry = self._attendance.get(enrolled.host)
        if entry is not None:
            required = frozenset(key for key in sent if times[key] >= entry.join and entry.leave is None)
        found = self._result_of(enrolled, host_results)
        if any(name in self._foreign and self._foreign[name].command for name in enrolled.session.senders):
            found = without_object_ids(found)
        row = row_of(enrolled.name, match_objects(found, sent), sent, self.bytes_travel, required)
        return replace(row, equal=False, completed_at=None) if enrolled.session.has_unsent else row

    def _cross(self, host_results: _HostResults, world: WorldCounters) -> dict[str, Any]:
        ends = [part for found in host_results.values() for part in found.get("parts", ()) if part["role"] == "cross"]
        now = world.metrics["duration"]
        rows = [flow_row(number, spec, ends, now) for number, spec in enumerate(self.scenario.traffic)]
        return {"cross_traffic": rows} if rows else {}


def _foreign_hosts(scenario: Scenario, topology: Topology) -> dict[str, NodeChoice]:
    """Return the foreign program of each host, of those that take no role of the scenario's protocol."""
    chosen = [(name, choice) for name, choice in scenario.foreign.items() if choice.taken_role is None]
    return {host: choice for name, choice in chosen for host in topology.hosts_of(name)}


def _of_file(sinks: Sinks, offer: Offer) -> AbortableSink | Accounted | None:
    """Return the sink of an object that is a file; None for a message, since a group may carry both."""
    return sinks(offer) if offer.is_file else None


def _of_session(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts without cross traffic, which is no cost of the protocol."""
    return {kind: count for kind, count in counts.items() if kind not in (Load.kind, Receipt.kind)}
