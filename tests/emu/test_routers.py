"""Networks with routers: unicast and multicast take the simulator's paths, and what does not is found before the run."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from emu.launch import Emulation, emulate
from emu.network import Network
from emu.node import Program
from emu.plan import Plan, plan
from emu.routing import GroupRoute
from emu.world import inside
from protocols.errors import UnsupportedError
from protocols.machine import Host
from tests.emu.plain import GROUP, PORT, Hearing, NumberCodec, Speaking
from topologies.generators import AnyTopology
from topologies.spec import Topology

pytestmark = pytest.mark.emu

ADDRESS = GROUP.name.partition(":")[0]


class Staying(Speaking):
    """Says that it is finished a while after its last packet, so that receivers on a busy machine have read it."""

    _asked = 0

    def finished(self) -> bool:
        """Was everything sent, and that some time ago?"""
        self._asked += super().finished()
        return self._asked > 15


def built(**attributes: Any) -> Topology:
    """A topology as a user writes it."""
    blueprint: Any = TypeAdapter(AnyTopology).validate_python(attributes)
    topology: Topology = blueprint.build()
    return topology


def play(topology: Topology, programs: dict[str, Program], *, members: list[str] | None = None, **more: Any) -> Emulation:
    """Emulate until the sender has sent everything."""
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


def heard(run: Emulation, host: str) -> list[int]:
    """The numbers a listener wrote down."""
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
    programs: dict[str, Program] = {host: Hearing() for host in topology.hosts if host != "sender"}
    run = play(topology, programs | {"sender": Staying(300, 3000, burst=20)})
    assert {host: len(heard(run, host)) for host in programs} == dict.fromkeys(programs, 300)


def test_a_ttl_ends_at_the_router_that_would_count_it_down_to_nothing() -> None:
    # From the sender to the receivers there are three routers.
    topology = built(**TREE)
    programs: dict[str, Program] = {host: Hearing() for host in topology.hosts if host != "sender"}
    nodes = {**programs, "sender": Staying(50, 2000)}
    assert not any(heard(play(topology, nodes, ttls={"sender": 3}), host) for host in programs)
    assert all(len(heard(play(topology, nodes, ttls={"sender": 4}), host)) == 50 for host in ("r1_1", "r4_1"))


def test_what_is_for_a_group_goes_to_its_members_networks_only() -> None:
    topology = built(kind="wan", sites=2)
    # r2_1 joins as r1_1 does, but the routers were told that nobody at its site takes part.
    programs: dict[str, Program] = {"sender": Staying(50, 2000), "r1_1": Hearing(), "r2_1": Hearing()}
    run = play(topology, programs, members=["sender", "r1_1"])
    assert len(heard(run, "r1_1")) == 50
    assert heard(run, "r2_1") == []


@pytest.mark.serial
def test_a_network_may_take_its_time_to_hear_of_a_join() -> None:
    topology = built(kind="lan", receivers=1, multicast={"join": "300ms"})
    numbers = heard(play(topology, {"sender": Staying(600, 1000), "r1": Hearing()}), "r1")
    # The first packet leaves after 10 ms; a busy machine joins late, never early.
    assert 285 <= numbers[0] < 500
    assert numbers == list(range(numbers[0], 600))


class Calling(Staying):
    """A program that sends numbers to one host."""

    def __init__(self, address: str) -> None:
        super().__init__(50, 2000)
        self._address = address

    def start(self, host: Host) -> None:
        """Begin."""
        self._wanted = (*self._wanted, (self._address, PORT))  # type: ignore[assignment]
        super().start(host)


def test_unicast_passes_routers_though_nobody_is_in_a_group() -> None:
    topology = built(**TREE)
    programs: dict[str, Program] = {"r1_1": Calling(plan(topology).addresses["r4_1"]), "r4_1": Hearing(), "r3_1": Hearing()}
    run = emulate(
        topology, programs, codec=NumberCodec, port=PORT, duration=20, over=lambda finished: "r1_1" in finished, seed=1
    )
    assert heard(run, "r4_1") == list(range(50))
    assert heard(run, "r3_1") == []


def broken(change: Callable[[Plan], None]) -> str:
    """What the try before the run says when a router was told something wrong."""
    topology = built(kind="wan", sites=2, receivers=3)

    def work() -> None:
        planned = plan(topology, {ADDRESS: ["sender", "r1_1", "r1_2"]})
        change(planned)
        Network(planned)

    with pytest.raises(UnsupportedError) as caught:
        inside(work)
    return str(caught.value)


def test_a_missing_route_of_a_group_is_found_and_the_link_named() -> None:
    def forget(planned: Plan) -> None:
        table = planned.routing.routers["g1"]
        table.groups = [route for route in table.groups if route.source != planned.addresses["sender"]]

    assert broken(forget) == (
        f"link g1-s1: a packet of sender to {ADDRESS} does not come to r1_1; the kernel routes otherwise than planned"
    )


def test_a_missing_way_back_is_found() -> None:
    def forget(planned: Plan) -> None:
        table = planned.routing.routers["g1"]
        table.routes = [route for route in table.routes if route.address != planned.addresses["sender"]]

    assert "a packet of sender to" in broken(forget)
    assert "comes to r1_1, its answer does not come back" in broken(forget)


def wires_of(planned: Plan) -> dict[frozenset[str], int]:
    """The number of each wire by the two nodes it joins."""
    return {frozenset((wire.near, wire.far)): number for number, wire in enumerate(planned.wires)}


def test_a_route_too_many_is_found() -> None:
    def spill(planned: Plan) -> None:
        wires, switches = wires_of(planned), planned.routing.switches
        inward, outward = wires[frozenset(("core", "g2"))], wires[frozenset(("g2", "s2"))]
        switches["core"][ADDRESS][inward] = None
        planned.routing.routers["g2"].groups.append(GroupRoute(planned.addresses["sender"], ADDRESS, inward, (outward,)))
        switches["s2"][ADDRESS] = {wires[frozenset(("s2", "r2_1"))]: None}

    assert broken(spill).startswith(f"link s2-r2_1: a packet of sender to {ADDRESS} comes to r2_1, which is beyond")


def test_a_port_too_many_of_a_switch_is_found() -> None:
    def spill(planned: Plan) -> None:
        planned.routing.switches["s1"][ADDRESS][wires_of(planned)[frozenset(("s1", "r1_3"))]] = None

    assert broken(spill).startswith(f"link s1-r1_3: a packet of sender to {ADDRESS} comes to r1_3, which is beyond")


def test_a_port_too_few_of_a_switch_is_found() -> None:
    def forget(planned: Plan) -> None:
        del planned.routing.switches["core"][ADDRESS][wires_of(planned)[frozenset(("core", "g1"))]]

    # The router before had it, and nothing behind.
    assert broken(forget).startswith(f"link g0-core: a packet of sender to {ADDRESS} does not come to r1_1")


def test_without_pruning_networks_without_members_carry_the_group_and_the_try_is_content() -> None:
    topology = built(kind="wan", sites=2, multicast={"pruning": False})
    run = play(topology, {"sender": Staying(50, 2000), "r1_1": Hearing(), "r2_1": Hearing()}, members=["sender", "r1_1"])
    assert len(heard(run, "r1_1")) == len(heard(run, "r2_1")) == 50


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (
            {"nodes": {"s1": {"kind": "router", "mac": "single", "rate": "1Mbit", "cpu": "50us"}}},
            r"node s1: cpu can't be emulated for a router of mac single when a packet takes 50us; 10us at most",
        ),
        ({"nodes": {"s1": {"storm": "1Mbit"}}}, r"node s1: storm can't be emulated"),
    ],
)
def test_what_routers_and_switches_can_not_do_is_refused_by_name(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        plan(built(kind="star", receivers=2, **attributes))
