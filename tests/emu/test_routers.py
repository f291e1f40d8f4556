"""Networks with routers: unicast and multicast take the simulator's paths, and what does not is found before the run."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from emu.launch import Emulation, emulate
from emu.node import Program
from tests.emu.plain import GROUP, PORT, Hearing, NumberCodec, Speaking
from topologies.generators import AnyTopology
from topologies.spec import Topology

pytestmark = pytest.mark.emu

ADDRESS = GROUP.name.partition(":")[0]


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
    run = play(topology, programs | {"sender": Speaking(300, 3000, burst=20)})
    assert all(heard(run, host) == list(range(300)) for host in programs)
