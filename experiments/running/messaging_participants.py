"""The publishers, subscribers and servers of a run: their programs, and the ledger of their messages."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

from experiments.running.authentication import read_keys
from experiments.running.foreign_brokers import (
    ForeignBrokerProgram,
    MosquittoPublisher,
    MosquittoSubscriber,
    check_mosquitto,
)
from experiments.running.publishing import PublisherProgram
from experiments.running.result import Row, row_of_messages
from experiments.running.role_node import RoleNode, RoleProgram
from experiments.running.shared_machine import SharedMachineNode
from experiments.running.subscribing import SubscriberProgram
from experiments.scenario.foreign_nodes import options_of
from experiments.scenario.scenario import Scenario
from experiments.workload.file import FileWorkload
from experiments.workload.ledger import Ledger, SubscriptionAccount
from experiments.workload.publish import MessagePlan, PublishWorkload
from experiments.workload.subscribe import SubscribeWorkload
from protocols.machine import Codec, Group
from protocols.object_messaging import guarantees_of, roles_of
from protocols.roles import BOTH, MakeMachine, Role
from topologies.addressing import node_id
from topologies.spec import Topology

__all__ = ["NO_SERVERS", "MessagingParticipants", "Party", "Servers"]

MakeCodec: TypeAlias = Callable[[], Codec]
AddRole: TypeAlias = Callable[[str, str, "PartyProgram", MakeCodec | None], int]
OwnProgram: TypeAlias = PublisherProgram | SubscriberProgram | RoleProgram
PartyProgram: TypeAlias = OwnProgram | ForeignBrokerProgram | MosquittoPublisher | MosquittoSubscriber
Servers: TypeAlias = Mapping[MakeMachine, Callable[[RoleNode], RoleProgram]]
Work: TypeAlias = PublishWorkload | SubscribeWorkload

MOSQUITTO = "mosquitto"
NO_SERVERS: Servers = {}
FURTHER_NODES = 1 << 31
"""Node ids from which on all machines of a host but its first are numbered."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A machine with a role before it is made: its host, its port there, its node id, and the workload (None: a server)."""

    role: str
    host: str
    port: int
    name: str
    id: int
    work: Work | None
    run: str = ""
    """The foreign broker that takes the role; empty for a machine of the protocol."""

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class Party:
    """A machine with a role: its host, the name of its row, and the index of its result among those of its host."""

    role: str
    host: str
    name: str
    place: int
    program: PartyProgram


class MessagingParticipants:
    """Make the programs of the roles beside `sender` and `receiver`.

    `names` are those of other rows. `taken(host)` is how many programs a host has before, `add(host, stream, program)` adds one
    and returns its index. Without `bytes_travel` messages have bodies of a size only. `address` returns the address of a group
    by its name, `fast` is whether to run the protocol's fast machines. `packets` makes the codec by which roles with a codec of
    their own read packets of the protocol; None: these stay bytes. `servers` has the programs of roles that are more than their
    machine in this world, by what makes that.
    """

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        address: Callable[[str], str],
        bytes_travel: bool,
        fast: bool,
        names: Iterable[str],
        taken: Callable[[str], int],
        add: AddRole,
        packets: MakeCodec | None = None,
        servers: Servers = NO_SERVERS,
    ) -> None:
        self._scenario = scenario
        self._servers = servers
        self._topology = topology
        self._address = address
        self._bytes_travel = bytes_travel
        self._roles = roles_of(scenario.protocol.spec, fast)
        self._taken = taken
        self._packets = packets
        self._slots: list[_Slot] = []
        self._on_host: dict[str, int] = {}
        self._names = set(names)
        self.sharing = frozenset(
            host for name, choice in scenario.nodes.items() if choice.role == BOTH for host in topology.hosts_of(name)
        )
        """The hosts whose publisher and subscriber are one machine."""
        self._fill_slots()
        self._check_mosquitto()
        plans = {
            slot.id: MessagePlan(slot.work, scenario.seed, slot.id)
            for slot in self._slots
            if isinstance(slot.work, PublishWorkload)
        }
        self._plans = plans
        self.parties = [self._enrol(slot, add) for slot in self._slots]
        self.ledger: Ledger | None = None

    def _fill_slots(self) -> None:
        """Give servers, subscribers and publishers their hosts and ports, in this order."""
        scenario, hosts_of = self._scenario, self._topology.hosts_of
        for name, choice in scenario.nodes.items():
            for host in hosts_of(name) if choice.taken_role not in (None, BOTH) else ():
                self._add_slot(str(choice.taken_role), host, None, str(choice.run) if choice.foreign else "")
        works: list[tuple[str, Sequence[Work]]] = [
            ("subscriber", scenario.subscriptions),
            ("publisher", scenario.publications),
        ]
        for role, found in works:
            for work in found:
                for host in (host for name in work.hosts for host in hosts_of(name)):
                    for _ in range(work.clients):
                        self._add_slot(role, host, work)

    def _add_slot(self, role: str, host: str, work: Work | None, run: str = "") -> None:
        before = self._on_host.get(host, 0)
        self._on_host[host] = before + 1
        port = self._taken(host) + before
        is_first = port == 0 or host in self.sharing
        node = node_id(self._topology, host) if is_first else FURTHER_NODES + len(self._slots)
        self._slots.append(_Slot(role, host, port, self._name(role, host), node, work, run))

    def _name(self, role: str, host: str) -> str:
        """Return the name of a row: the host for its first subscriber, and for others with a number behind it."""
        first = name = host if role == "subscriber" else f"{role} {host}"
        number = 1
        while name in self._names:
            number += 1
            name = f"{first}.{number}"
        self._names.add(name)
        return name

    def _enrol(self, slot: _Slot, add: AddRole) -> Party:
        program = self._program(slot)
        place = add(slot.host, f"{slot.role}-{slot.port}" if slot.port else "", program, self._codec(slot))
        assert place == slot.port, f"{slot.name}: port {slot.port} and not {place}"
        return Party(slot.role, slot.host, slot.name, place, program)

    def _codec(self, slot: _Slot) -> MakeCodec | None:
        """Return what makes the codec of a machine with a role; None: that of the protocol."""
        make, packets = None if slot.run else self._roles[slot.role].codec, self._packets
        if make is None:
            return None
        path = getattr(self._options(slot, self._roles[slot.role]), "key_file", "")
        keys = read_keys(Path(path)) if path else {}
        if packets is None:
            return partial(make, None, keys, time.time)
        return lambda: make(packets(), keys, lambda: 0.0)

    def _options(self, slot: _Slot, role: Role) -> Any:
        """Return the options of a server."""
        name, choice = next(
            (name, choice)
            for name, choice in self._scenario.nodes.items()
            if slot.host in self._topology.hosts_of(name) and choice.role
        )
        return options_of(f"nodes.{name}", choice, role)

    def _check_mosquitto(self) -> None:
        """ConfigError for a workload that the C programs of a mosquitto, if there is one, can't carry."""
        if any(slot.run == MOSQUITTO for slot in self._slots):
            for number, work in enumerate(self._scenario.workload):
                if not isinstance(work, FileWorkload):
                    check_mosquitto(work, f"workload.{number}")

    def _program(self, slot: _Slot) -> PartyProgram:
        if slot.run:
            return ForeignBrokerProgram(slot.run, slot.place)
        mosquitto = next((other.place for other in self._slots if other.run == MOSQUITTO), None)
        if mosquitto is None or slot.work is None:
            return self._own_program(slot)
        seed = self._scenario.seed
        if isinstance(slot.work, PublishWorkload):
            return MosquittoPublisher(self._plans[slot.id], seed, mosquitto, slot.place)
        return MosquittoSubscriber(slot.work, self._plans, seed, mosquitto, slot.place)

    def _own_program(self, slot: _Slot) -> OwnProgram:
        node, bodies = self._node(slot), self._scenario.seed if self._bytes_travel else None
        if isinstance(slot.work, PublishWorkload):
            return PublisherProgram(node, self._plans[slot.id], bodies)
        if isinstance(slot.work, SubscribeWorkload):
            return SubscriberProgram(node, slot.work, self._plans, bodies)
        return self._servers.get(node.role.make, RoleProgram)(node)

    def _node(self, slot: _Slot) -> RoleNode:
        shares = slot.host in self.sharing
        role = self._roles[BOTH if shares else slot.role]
        options = self._options(slot, role) if slot.work is None else None
        group = "all" if slot.work is None else slot.work.group
        places = {need: [(other.host, other.port) for other in self._slots if other.role == need] for need in role.needs}
        router = self._topology.node(self._topology.member(slot.host).node).router
        networks = self._topology.networks_of(router) if router else ()
        config, address = self._scenario.protocol.config, Group(self._address(group))
        kind = SharedMachineNode if shares else RoleNode
        return kind(role, config, slot.id, address, slot.place, options, places, networks)

    def server_places(self) -> dict[str, list[tuple[str, int]]]:
        """Return the places of the machines of each role that serves others, on ports behind those of senders and receivers."""
        found: dict[str, list[tuple[str, int]]] = {}
        for slot in self._slots:
            if slot.work is None:
                found.setdefault(slot.role, []).append(slot.place)
        return found

    @property
    def publishers(self) -> list[str]:
        """The hosts of publishers."""
        return [party.host for party in self.parties if party.role == "publisher"]

    def groups(self) -> dict[str, list[str]]:
        """Return the hosts of each group, by the group's name; those of servers are in all groups."""
        found: dict[str, list[str]] = {}
        for slot in self._slots:
            if slot.work is not None:
                found.setdefault(slot.work.group, []).append(slot.host)
        servers = [slot.host for slot in self._slots if slot.work is None]
        return {group: [*hosts, *servers] for group, hosts in found.items()}

    # Results

    def close(self, result_of: Callable[[Party], Mapping[str, Any]], end: float) -> list[Row]:
        """Make the ledger of a run of `end` seconds from the results of the programs; return the rows of the subscribers."""
        ledger = self.ledger = self._begin_ledger(result_of, end)
        return [
            self._row(party.name, work, result_of(party), ledger.add_subscriber(party.name, result_of(party)))
            for party, work in self._subscribers()
        ]

    def ledger_at(self, result_of: Callable[[Party], Mapping[str, Any]], now: float) -> Ledger:
        """Return the ledger as it is at `now`, after the run."""
        ledger = self._begin_ledger(result_of, now)
        for party, _ in self._subscribers():
            ledger.add_subscriber(party.name, result_of(party))
        return ledger

    def _begin_ledger(self, result_of: Callable[[Party], Mapping[str, Any]], end: float) -> Ledger:
        config = self._scenario.protocol.config
        guarantees = guarantees_of(self._scenario.protocol.spec, config)
        if sum(party.role == "publisher" for party in self.parties) > getattr(config, "senders", inf):
            # A subscriber then forgets publishers, and may get again what it has had of them.
            guarantees = replace(guarantees, once=False)
        ledger = Ledger(guarantees, end)
        for party, slot in zip(self.parties, self._slots, strict=True):
            if party.role == "publisher":
                ledger.add_publisher(party.name, self._plans[slot.id], result_of(party))
        return ledger

    def _subscribers(self) -> Iterator[tuple[Party, SubscribeWorkload]]:
        for party, slot in zip(self.parties, self._slots, strict=True):
            if isinstance(slot.work, SubscribeWorkload):
                yield party, slot.work

    def _row(
        self, name: str, work: SubscribeWorkload, result: Mapping[str, Any], accounts: Sequence[SubscriptionAccount]
    ) -> Row:
        return row_of_messages(name, result, accounts, self._bytes_travel, visitor=work.until is not None)
