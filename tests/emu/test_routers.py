"""Networks with routers: unicast and multicast take the simulator's paths, and deviations are detected before the run."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from emu.launch import Emulation, emulate
from emu.namespaces import run_isolated
from emu.network import EmulatedNetwork
from emu.plan import EmulationPlan, plan_emulation
from emu.routing import GroupEntry, MulticastRoute
from protocols.errors import UnsupportedError
from protocols.hosting import Host, Program
from tests.emu.number_protocol import GROUP, PORT, NumberCodec, ReceivingProgram, SendingProgram
from topologies.generators import AnyTopology
from topologies.spec import Topology

pytestmark = pytest.mark.emu

ADDRESS = GROUP.name.partition(":")[0]


class LingeringSender(SendingProgram):
    """Finishes a while after its last packet, so that receivers on a busy machine have read it."""

    _asked = 0

    def finished(self) -> bool:
        """Whether everything was sent, some polls ago."""
        self._asked += super().finished()
        return self._asked > 15


def built(**attributes: Any) -> Topology:
    """Return a topology; attributes are as in a scenario."""
    blueprint: Any = TypeAdapter(AnyTopology).validate_python(attributes)
    topology: Topology = blueprint.build()
    return topology


def play(topology: Topology, programs: dict[str, Program], *, members: list[str] | None = None, **more: Any) -> Emulation:
    """Emulate until the sender is finished."""
    hosts = list(programs) if members is None else members
    return emulate(
        topology,
        programs,
        codec=NumberCodec,
        port=PORT,
        duration=20,
        over=lambda finished: "sender" in finished,
        seed=1,
        groups={ADDRESS: hosts},
        **more,
    )


def received(run: Emulation, host: str) -> list[int]:
    """Return the numbers a receiver recorded."""
    report = run.nodes[host]
    assert report.error is None, report.error
    assert report.result is not None
    numbers: list[int] = report.result["numbers"]
    return numbers


TWO_LANS: dict[str, Any] = {
    "kind": "graph",
    "nodes": {
        "sender": {},
        "a": {"kind": "switch"},
        "g": {"kind": "router"},
        "b": {"kind": "switch"},
        "r": {"count": 3},
        "x": {},
    },
    "links": [
        {"ends": ["sender", "a"]},
        {"ends": ["a", "g"]},
        {"ends": ["g", "b"]},
        {"ends": ["b", "r"]},
        {"ends": ["a", "x"]},
    ],
}
TREE = {
    "kind": "tree",
    "depth": 3,
    "fanout": 2,
    "receivers": 1,
    "nodes": {f"s{number}": {"kind": "router"} for number in range(1, 8)},
}
NETWORKS: dict[str, dict[str, Any]] = {
    "two LANs": TWO_LANS,
    "WAN": {"kind": "wan", "sites": 3, "receivers": 2},
    "routers only": TREE,
    "dumbbell": {"kind": "dumbbell", "receivers": 3, "nodes": {"s1": {"kind": "router"}, "s2": {"kind": "router"}}},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_group_reaches_every_receiver_behind_routers(name: str) -> None:
    topology = built(**NETWORKS[name])
    programs: dict[str, Program] = {host: ReceivingProgram() for host in topology.hosts if host != "sender"}
    run = play(topology, programs | {"sender": LingeringSender(300, 3000, burst=20)})
    assert {host: len(received(run, host)) for host in programs} == dict.fromkeys(programs, 300)


def test_a_packet_is_dropped_where_its_ttl_expires() -> None:
    # There are three routers between sender and receivers.
    topology = built(**TREE)
    programs: dict[str, Program] = {host: ReceivingProgram() for host in topology.hosts if host != "sender"}
    nodes = {**programs, "sender": LingeringSender(50, 2000)}
    assert not any(received(play(topology, nodes, ttls={"sender": 3}), host) for host in programs)
    assert all(len(received(play(topology, nodes, ttls={"sender": 4}), host)) == 50 for host in ("r1_1", "r4_1"))


def test_a_group_is_forwarded_to_networks_with_members_only() -> None:
    topology = built(kind="wan", sites=2)
    # r2_1 joins as r1_1 does, but the plan has no members at its site.
    programs: dict[str, Program] = {"sender": LingeringSender(50, 2000), "r1_1": ReceivingProgram(), "r2_1": ReceivingProgram()}
    run = play(topology, programs, members=["sender", "r1_1"])
    assert len(received(run, "r1_1")) == 50
    assert received(run, "r2_1") == []


@pytest.mark.timed
def test_a_join_takes_effect_after_the_join_delay() -> None:
    topology = built(kind="lan", receivers=1, multicast={"join": "300ms"})
    numbers = received(play(topology, {"sender": LingeringSender(600, 1000), "r1": ReceivingProgram()}), "r1")
    # The first packet is sent after 10 ms; a busy machine joins late, never early.
    assert 285 <= numbers[0] < 500
    assert numbers == list(range(numbers[0], 600))


class UnicastSender(LingeringSender):
    """A program that sends numbers to one host."""

    def __init__(self, address: str) -> None:
        super().__init__(50, 2000)
        self._address = address

    def start(self, host: Host) -> None:
        """Run a sender."""
        self._wanted = (*self._wanted, (self._address, PORT))  # type: ignore[assignment]
        super().start(host)


def test_unicast_is_forwarded_without_any_group() -> None:
    topology = built(**TREE)
    programs: dict[str, Program] = {
        "r1_1": UnicastSender(plan_emulation(topology).addresses["r4_1"]),
        "r4_1": ReceivingProgram(),
        "r3_1": ReceivingProgram(),
    }
    run = emulate(
        topology, programs, codec=NumberCodec, port=PORT, duration=20, over=lambda finished: "r1_1" in finished, seed=1
    )
    assert received(run, "r4_1") == list(range(50))
    assert received(run, "r3_1") == []


def failure_after(change: Callable[[EmulationPlan], None]) -> str:
    """Return the error of the check before the run, after `change` of the plan."""
    topology = built(kind="wan", sites=2, receivers=3)

    def work() -> None:
        plan = plan_emulation(topology, {ADDRESS: ["sender", "r1_1", "r1_2"]})
        change(plan)
        EmulatedNetwork(plan)

    with pytest.raises(UnsupportedError) as caught:
        run_isolated(work)
    return str(caught.value)


def test_a_missing_multicast_route_is_detected_with_its_link() -> None:
    def remove_route(plan: EmulationPlan) -> None:
        table = plan.routing.routers["g1"]
        table.groups = [route for route in table.groups if route.source != plan.addresses["sender"]]

    assert failure_after(remove_route) == (
        f"link g1-s1: a packet of sender to {ADDRESS} does not arrive at r1_1; the kernel does not route as planned"
    )


def test_a_missing_return_route_is_detected() -> None:
    def remove_route(plan: EmulationPlan) -> None:
        table = plan.routing.routers["g1"]
        table.routes = [route for route in table.routes if route.address != plan.addresses["sender"]]

    assert "a packet of sender to" in failure_after(remove_route)
    assert "arrives at r1_1, but its answer does not come back" in failure_after(remove_route)


def cable_numbers(plan: EmulationPlan) -> dict[frozenset[str], int]:
    """Return the number of each cable by the two nodes it joins."""
    return {frozenset((cable.near, cable.far)): number for number, cable in enumerate(plan.cables)}


def test_an_extra_multicast_route_is_detected() -> None:
    def add_route(plan: EmulationPlan) -> None:
        cables, switches = cable_numbers(plan), plan.routing.switches
        inward, outward = cables[frozenset(("core", "g2"))], cables[frozenset(("g2", "s2"))]
        switches["core"][GroupEntry(ADDRESS)][inward] = None
        plan.routing.routers["g2"].groups.append(MulticastRoute(plan.addresses["sender"], ADDRESS, inward, (outward,)))
        switches["s2"][GroupEntry(ADDRESS)] = {cables[frozenset(("s2", "r2_1"))]: None}

    assert failure_after(add_route).startswith(
        f"link s2-r2_1: a packet of sender to {ADDRESS} arrives at r2_1, which is not in"
    )


def test_an_extra_port_of_a_switch_is_detected() -> None:
    def add_route(plan: EmulationPlan) -> None:
        plan.routing.switches["s1"][GroupEntry(ADDRESS)][cable_numbers(plan)[frozenset(("s1", "r1_3"))]] = None

    assert failure_after(add_route).startswith(
        f"link s1-r1_3: a packet of sender to {ADDRESS} arrives at r1_3, which is not in"
    )


def test_a_missing_port_of_a_switch_is_detected() -> None:
    def remove_route(plan: EmulationPlan) -> None:
        del plan.routing.switches["core"][GroupEntry(ADDRESS)][cable_numbers(plan)[frozenset(("core", "g1"))]]

    # The router before the switch received the packet, nothing behind it did.
    assert failure_after(remove_route).startswith(f"link g0-core: a packet of sender to {ADDRESS} does not arrive at r1_1")


def test_without_pruning_networks_without_members_receive_the_group_and_the_check_passes() -> None:
    topology = built(kind="wan", sites=2, multicast={"pruning": False})
    run = play(
        topology,
        {"sender": LingeringSender(50, 2000), "r1_1": ReceivingProgram(), "r2_1": ReceivingProgram()},
        members=["sender", "r1_1"],
    )
    assert len(received(run, "r1_1")) == len(received(run, "r2_1")) == 50


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (
            {"nodes": {"s1": {"kind": "router", "mac": "single", "rate": "1Mbit", "cpu": "50us"}}},
            r"node s1: cpu can't be emulated for a router of mac single when a packet takes 50us; 10us at most",
        ),
        ({"nodes": {"s1": {"storm": "1Mbit"}}}, r"node s1: storm can't be emulated"),
        ({"trunk": {"rate": "7bit"}}, r"link sender-s1: rate can't be emulated, since it makes a token bucket of 7bit"),
        ({"trunk": {"rate": "11Tbit"}}, r"link sender-s1: rate can't be .* the kernel has 64bit to 10Tbit"),
        ({"trunk": {"rate": "1Mbit", "queue": 2**31}}, r"link sender-s1: queue 2147483648 can't be emulated"),
        ({"nodes": {"s1": {"hub": True, "rate": "8bit"}}}, r"node s1: rate can't be emulated"),
        ({"nodes": {"s1": {"kind": "router", "mac": "single", "rate": "8bit"}}}, r"node s1: rate can't be emulated"),
        ({"nodes": {"s1": {"kind": "router", "cpu": "1000s"}}}, r"node s1: cpu can't be emulated"),
        ({"nodes": {"s1": {"kind": "router", "cpu_byte": "10s"}}}, r"node s1: cpu_byte can't be emulated"),
        ({"nodes": {"s1": {"kind": "router", "cpu": "1ms", "queue": 2**31}}}, r"node s1: queue 2147483648 can't be"),
    ],
)
def test_unsupported_attributes_of_links_routers_and_switches_are_refused(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        plan_emulation(built(kind="star", receivers=2, **attributes))
