"""The sessions of the benchmark of the simulator: protocols, networks, numbers of receivers and packets.

Each is a scenario, and runs in this simulator and in textbook SimPy (`benchmarks.textbook`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import Any

from benchmarks.textbook import TextbookNetwork
from benchmarks.yardsticks import Measure, timed
from experiments.running.participants import Participants, WorldCounters
from experiments.running.program import accounted
from experiments.scenario.scenario import Scenario, parse
from sim.network import Network

__all__ = ["CASES", "Case", "OURS", "TEXTBOOK", "World", "run"]

SEGMENT = 1400
LINK = {"rate": "100Mbit", "delay": "5ms"}
LOSSY = {**LINK, "down": {"loss": "1%"}}
TRUNK = {**LINK, "rate": "1Gbit"}
"""Acknowledgements of a thousand receivers do not congest it."""

Settings = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A protocol on a network, with 1 % independent loss on the last hops unless the topology says otherwise.

    `protocol` and `topology` are given the number of receivers. `lengths` has by number of receivers the packets of content of
    each sender, in this simulator and in the textbook: equal where the cost per delivery depends on them.
    """

    protocol: Settings
    topology: Settings
    lengths: dict[int, tuple[int, int]]
    senders: tuple[str, ...] = ("sender",)
    traffic: tuple[dict[str, Any], ...] = ()
    one_object: bool = True
    """Whether all packets are segments of one object; if not, each packet is an object of one segment."""

    def scenario(self, receivers: int, packets: int) -> Scenario:
        """Return the scenario with `packets` segments from each sender."""
        size, count = (packets * SEGMENT, 1) if self.one_object else (SEGMENT, packets)
        data = {
            "name": "benchmark",
            "seed": 1,
            "protocol": self.protocol(receivers),
            "topology": self.topology(receivers),
            "workload": [{"from": name, "size": size, "count": count} for name in self.senders],
            "traffic": list(self.traffic),
            "duration": "3600s",
        }
        return parse(data, "benchmark")


def norm(**settings: Any) -> Settings:
    """Return a NORM session of 10 Mbit/s for any number of receivers."""
    common = {"name": "norm", "rate": "10Mbit", "segment": SEGMENT, "grtt": "50ms", "backoff": 4, "block": 64, "parity": 16}
    return lambda receivers: {**common, "gsize": receivers, **settings}


def arq(name: str, **settings: Any) -> Settings:
    """Return a session of 10 Mbit/s of an ARQ protocol."""
    return lambda receivers: {"name": name, "rate": "10Mbit", "segment": SEGMENT, **settings}


def star(receivers: int) -> dict[str, Any]:
    """Return a star with links of 100 Mbit/s and 5 ms."""
    return {"kind": "star", "receivers": receivers, "trunk": TRUNK, "link": LOSSY}


def shared_loss(receivers: int) -> dict[str, Any]:
    """Return a star with 3 % loss on the trunk and no other."""
    return {"kind": "star", "receivers": receivers, "trunk": {**TRUNK, "down": {"loss": "3%"}}, "link": LINK}


def much_loss(receivers: int) -> dict[str, Any]:
    """Return a star with 20 % loss on the last hops."""
    return {"kind": "star", "receivers": receivers, "trunk": TRUNK, "link": {**LINK, "down": {"loss": "20%"}}}


def lan(receivers: int) -> dict[str, Any]:
    """Return a LAN with eight senders besides the receivers."""
    return {"kind": "lan", "receivers": receivers + 7, "link": LOSSY}


def random_tree(receivers: int) -> dict[str, Any]:
    """Return a random recursive tree of 2 sqrt(R) switches, with links of 1 to 20 ms and any number of receivers on each."""
    rng = Random(receivers)
    switches = [f"s{number}" for number in range(1, round(2 * sqrt(receivers)) + 1)]
    hosts = [0] * len(switches)
    for _ in range(receivers):
        hosts[rng.randrange(len(hosts))] += 1
    links: list[dict[str, Any]] = [{"ends": ("sender", "s1"), **TRUNK}]
    for at, name in enumerate(switches[1:], 1):
        links.append({"ends": (rng.choice(switches[:at]), name), "rate": "1Gbit", "delay": f"{rng.randint(1, 20)}ms"})
    nodes: dict[str, Any] = {"sender": {"kind": "host"}} | {name: {"kind": "switch"} for name in switches}
    for number, (name, count) in enumerate(zip(switches, hosts, strict=True), 1):
        if count:
            nodes[f"r{number}_"] = {"kind": "host", "count": count}
            links.append({"ends": (name, f"r{number}_"), **LOSSY})
    return {"kind": "graph", "nodes": nodes, "links": links}


def wan(receivers: int) -> dict[str, Any]:
    """Return a random network of 20 switches with a twentieth of the receivers each; below 20 receivers, one on each second."""
    idle = {f"r{number}_": {"bystander": True} for number in range(1, 21, 2)} if receivers < 20 else {}
    each = max(receivers // 20, 1)
    return {"kind": "waxman", "seed": 1, "switches": 20, "receivers": each, "trunk": TRUNK, "link": LOSSY, "nodes": idle}


def bottleneck(receivers: int) -> dict[str, Any]:
    """Return a bottleneck of twice the rate of the session, which cross traffic fills."""
    line = {"rate": "20Mbit", "delay": "5ms", "queue": 100}
    return {"kind": "dumbbell", "receivers": receivers, "pairs": 2, "link": LOSSY, "bottleneck": line}


CROSS = (
    {"kind": "poisson", "from": "x1", "to": "y1", "rate": "3Mbit", "size": 700},
    {"kind": "aimd", "from": "x2", "to": "y2"},
)
EIGHT = ("sender", *(f"r{number}" for number in range(1, 8)))

CASES = {
    "parity": Case(norm(), star, {10: (10_000, 5000), 100: (5000, 1000), 1000: (2560, 64)}),
    "plain": Case(norm(parity=0), star, {10: (10_000, 3000), 100: (5000, 500), 1000: (1000, 24), 10_000: (200, 3)}),
    "a": Case(arq("a"), star, {10: (2000, 2000), 100: (200, 200), 1000: (20, 20)}),
    "n1": Case(arq("n1"), star, {10: (5000, 3000), 100: (1000, 400), 1000: (300, 20)}),
    "n2": Case(arq("n2"), star, {10: (5000, 3000), 100: (1000, 300), 1000: (300, 12)}),
    "srm": Case(arq("srm"), star, {10: (500, 500), 100: (20, 20), 1000: (2, 2)}),
    "senders8": Case(norm(), lan, {10: (1000, 300), 100: (500, 60), 1000: (100, 2)}, senders=EIGHT),
    "tree": Case(norm(), random_tree, {10: (3000, 2000), 100: (1000, 300), 1000: (200, 32)}),
    "wan20": Case(norm(), wan, {10: (3000, 1000), 100: (1000, 300), 1000: (200, 32)}),
    "bottleneck": Case(norm(), bottleneck, {10: (3000, 1000), 100: (1000, 300), 1000: (200, 32)}, traffic=CROSS),
    "nacks": Case(norm(parity=0, gsize=10), shared_loss, {10: (10_000, 3000), 100: (5000, 800), 1000: (1000, 60)}),
    "losses": Case(norm(parity=0), much_loss, {10: (2000, 1000), 100: (500, 100), 1000: (100, 10)}),
    "objects": Case(norm(), star, {10: (250, 250), 100: (250, 80), 1000: (100, 8)}, one_object=False),
}
"""By name; docs/simulator.md describes them."""


@dataclass(frozen=True)
class World:
    """A simulator: the network of a topology and a seed, and whether it runs the fast machines."""

    network: Callable[..., Network | TextbookNetwork]
    fast: bool


OURS = World(Network, fast=True)
TEXTBOOK = World(TextbookNetwork, fast=False)


def run(world: World, scenario: Scenario) -> Measure:
    """Run a scenario until its senders have finished; asserts that every receiver got everything."""
    topology = scenario.build_topology()
    network = world.network(topology, seed=scenario.seed)
    participants = Participants(scenario, topology, str, False, accounted, fast=world.fast)
    for name, program in participants.programs():
        host: Any = network.host(name)
        program.start(host)
    cpu = timed(lambda: network.run(scenario.duration, participants.over))
    traffic = network.traffic
    counters = WorldCounters(None, dict(traffic.packets), dict(traffic.octets), {"duration": network.env.now, "faults": {}})
    result = participants.result("sim", {name: program.result() for name, program in participants.programs()}, counters)
    assert result.completed, f"{scenario.protocol.name}, {len(result.receivers)} receivers: not all got everything"
    return Measure(cpu, network.deliveries, network.events, sum(traffic.packets.values()))
