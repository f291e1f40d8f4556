"""The machine of a router names one of the router's networks, and its packets take the router's processor, in both worlds."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from emu.launch import emulate
from protocols.errors import UsageError
from protocols.hosting import PortsHost, Program
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from sim.network import Network
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, NumberMessage
from topologies.inline import Inline
from topologies.spec import Topology, with_router_machines

SECONDS = 1.0
A, B = Group(GROUP.name, "a"), Group(GROUP.name, "b")
WORLDS = ("strict", "fast", pytest.param("emu", marks=pytest.mark.emu))


def routed(**model: Any) -> Topology:
    """Return a sender and a receiver behind switches a and b, and a router g with a machine between them."""
    links = [["sender", "a"], ["a", "g"], ["g", "b"], ["b", "r"]]
    nodes = {"sender": {}, "a": {"kind": "switch"}, "g": {"kind": "router", **model}, "b": {"kind": "switch"}, "r": {}}
    graph = Inline.model_validate({"kind": "graph", "nodes": nodes, "links": [{"ends": ends} for ends in links]}).build()
    return with_router_machines(graph, ["g"])


class Networker(Machine):
    """Joins groups, sends `count` numbers from `first` on to each of some addresses, and records what came to which network."""

    def __init__(self, ports: Ports, joins: Sequence[Group], to: Sequence[Address], first: int, count: int) -> None:
        super().__init__(ports)
        self._joins, self._to = joins, to
        self._numbers = range(first, first + count)
        self.heard: list[tuple[int, str]] = []
        self.times: list[float] = []

    def start(self, now: float) -> None:
        for group in self._joins:
            self.ports.join(group)
        self._due(now + 0.2)

    def wake(self, now: float) -> None:
        self.deadline = float("inf")
        for number in self._numbers:
            for to in self._to:
                self.ports.send(Packet(NumberMessage(number, 1000), 1000, to))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        assert isinstance(message, NumberMessage)
        self.heard.append((message.number, to.network if isinstance(to, Group) else "unicast"))
        self.times.append(now)

    def counts(self) -> dict[str, int]:
        return {}


class NetworkerProgram:
    """Runs a `Networker`; `peer` is a host to send to as well."""

    def __init__(
        self, joins: Sequence[Group] = (), to: Sequence[Group] = (), first: int = 0, count: int = 5, peer: str | None = None
    ) -> None:
        self._wanted = joins, to, first, count
        self._peer = peer
        self._machine: Networker | None = None

    def start(self, host: PortsHost) -> None:
        joins, to, first, count = self._wanted
        others = [] if self._peer is None else [host.address_of(self._peer)]
        self._machine = Networker(host, joins, [*to, *others], first, count)
        host.run(self._machine, lambda event: None)

    def finished(self) -> bool:
        return False

    def result(self) -> dict[str, Any]:
        assert self._machine is not None
        times = self._machine.times
        return {"heard": self._machine.heard, "seconds": times[-1] - times[0] if times else 0.0}


def results(world: str, topology: Topology, make: Callable[[], dict[str, Program]]) -> dict[str, dict[str, Any]]:
    """Run programs in a world and return their results by host."""
    programs = make()
    if world != "emu":
        network = Network(topology, seed=1, engine=world)
        for name, program in programs.items():
            program.start(network.host(name))
        network.run(until=SECONDS)
        return {name: program.result() for name, program in programs.items()}
    group = GROUP.name.partition(":")[0]
    run = emulate(
        topology,
        programs,
        codec=NumberCodec,
        port=PORT,
        duration=SECONDS,
        over=lambda finished: False,
        seed=1,
        groups={group: list(programs)},
    )
    assert {name: report.error for name, report in run.nodes.items() if report.error} == {}
    return {name: report.result for name, report in run.nodes.items() if report.result is not None}


def heard(result: dict[str, Any]) -> list[tuple[int, str]]:
    return sorted((number, network) for number, network in result["heard"])


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_sent_to_one_network_leaves_by_no_other(world: str) -> None:
    def programs() -> dict[str, Program]:
        return {
            "g.host": NetworkerProgram(to=[A], first=0),
            "sender": NetworkerProgram([GROUP], count=0),
            "r": NetworkerProgram([GROUP], count=0),
        }

    found = results(world, routed(), programs)
    assert heard(found["sender"]) == [(number, "") for number in range(5)]
    assert heard(found["r"]) == []


@pytest.mark.parametrize("world", WORLDS)
def test_a_machine_is_told_by_which_network_a_multicast_came(world: str) -> None:
    def programs() -> dict[str, Program]:
        return {
            "g.host": NetworkerProgram([A, B], count=0),
            "sender": NetworkerProgram([GROUP], [GROUP], first=0),
            "r": NetworkerProgram([GROUP], [GROUP], first=100),
        }

    found = results(world, routed(), programs)
    assert heard(found["g.host"]) == [(number, "a") for number in range(5)] + [(number, "b") for number in range(100, 105)]
    assert heard(found["r"]) == [(number, "") for number in range(5)]


@pytest.mark.parametrize("world", WORLDS)
def test_a_machine_hears_only_the_networks_on_which_it_joined(world: str) -> None:
    def programs() -> dict[str, Program]:
        return {
            "g.host": NetworkerProgram([B], [GROUP], first=200),
            "sender": NetworkerProgram([GROUP], [GROUP], first=0),
            "r": NetworkerProgram([GROUP], [GROUP], first=100),
        }

    found = results(world, routed(), programs)
    assert heard(found["g.host"]) == [(number, "b") for number in range(100, 105)]
    assert heard(found["sender"]) == [(number, "") for number in [*range(100, 105), *range(200, 205)]]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("to", [[A], [], [GROUP]], ids=["network", "unicast", "group"])
def test_packets_of_the_machine_take_the_processor_of_the_router(world: str, to: list[Group]) -> None:
    # 100 packets of 5 ms each; one that goes to both networks is processed once.
    def programs() -> dict[str, Program]:
        return {
            "g.host": NetworkerProgram(to=to, count=100, peer=None if to else "r"),
            "sender": NetworkerProgram([GROUP], count=0),
            "r": NetworkerProgram([GROUP], count=0),
        }

    found = results(world, routed(cpu="5ms"), programs)
    slowest = max(result["seconds"] for result in found.values())
    assert slowest == pytest.approx(99 * 0.005, rel=0.1)


@pytest.mark.parametrize("world", ["strict", "fast"])
def test_a_network_that_is_none_is_refused_with_those_there_are(world: str) -> None:
    nowhere = Group(GROUP.name, "c")
    with pytest.raises(UsageError, match="'c' is no network of g; networks of g are a, b"):
        results(world, routed(), lambda: {"g.host": NetworkerProgram([nowhere])})
    with pytest.raises(UsageError, match="'a' is no network of sender; sender has one network, without a name"):
        results(world, routed(), lambda: {"sender": NetworkerProgram([], [A])})


@pytest.mark.emu
def test_an_emulated_network_that_is_none_is_refused_with_those_there_are() -> None:
    run = emulate(
        routed(),
        {"g.host": NetworkerProgram([Group(GROUP.name, "c")])},
        codec=NumberCodec,
        port=PORT,
        duration=0.1,
        over=lambda finished: False,
        seed=1,
    )
    assert run.nodes["g.host"].error == "'c' is no network of this host; networks here are a, b"
