"""Marks of queues (ECN) reach a machine through everything that may stand between it and its host."""

from functools import cache
from typing import Any

import pytest

from experiments.running.simulate import simulate
from experiments.scenario.scenario import parse
from protocols.cross import Load
from protocols.machine import Address, Message, Ports
from sim.flight import ClassedFlight, Flight, dscp_of, mark
from sim.network import Network
from tests.sim.test_processor import Source, Worker
from topologies.generators import Star
from topologies.inline import Inline
from topologies.spec import with_router_machines

QUEUE = {"model": "red", "packets": 100, "least": 3, "most": 40, "p": 0.05, "ecn": True}
BETWEEN: dict[str, dict[str, Any]] = {
    "a slow application": {"faults": [{"at": "1ms", "slow": "r1", "takes": "10us"}]},
    "another clock": {"faults": [{"at": "1ms", "drift": "r1", "factor": 1.01}]},
    "a processor": {"nodes": {"r": {"cpu": "10us"}}},
    "another machine": {"also": [{"kind": "file", "from": "r1", "size": "10kB", "at": "1s"}]},
}


@cache
def dropped(congestion: str, between: str = "", engine: str = "fast") -> int:
    """Return how many packets a queue drops that marks packets, too."""
    more = dict(BETWEEN.get(between, {}))
    topology = {
        "kind": "dumbbell",
        "receivers": 2,
        "pairs": 0,
        "link": {"delay": "2ms"},
        "bottleneck": {"rate": "4Mbit", "delay": "15ms", "queue": QUEUE},
        "nodes": more.pop("nodes", {}),
    }
    protocol = {"name": "norm", "congestion": congestion, "grtt": "60ms", "gsize": 10, "parity": 0, "block": 32}
    workload = [{"kind": "file", "from": "sender", "size": "2MB"}, *more.pop("also", [])]
    data = {"name": "marks", "seed": 1, "topology": topology, "protocol": protocol, "workload": workload, "duration": "40s"}
    result = simulate(parse({**data, "engine": engine, **more}, "marks"))
    return sum(int(row["dropped"]) for row in result.metrics["impairments"])


@pytest.mark.parametrize("engine", ["fast", "strict"])
@pytest.mark.parametrize("between", BETWEEN)
def test_marks_are_heeded_whatever_stands_between_host_and_machine(between: str, engine: str) -> None:
    # Slow start fills the queue once; where marks are not heeded it is full ever again.
    assert dropped("ecn", between, engine) < dropped("norm") / 2


class Heeding(Worker):
    """Works for every packet, and keeps when marked ones were processed."""

    __slots__ = ("marked",)

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports, lambda: 0.5)
        self.marked: list[float] = []

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        self.marked.append(now)
        self.receive(message, source, to, now)


@pytest.mark.parametrize("engine", ["fast", "strict"])
def test_a_marked_packet_waits_for_a_busy_processor_and_stays_marked(engine: str) -> None:
    queue = {"model": "red", "packets": 100, "least": 1, "most": 10, "p": 1, "weight": 1, "ecn": True}
    star = {"kind": "star", "receivers": 1, "link": {"rate": "80kbit", "queue": queue, "overhead": 0}}
    network = Network(Star.model_validate(star).build(), seed=1, engine=engine)
    host, sender = network.host("r1"), network.host("sender")
    worker = Heeding(host)
    host.run(worker, lambda event: None)
    # Each takes 100 ms on the link and 500 ms of work.
    sender.run(Source(sender, [1 + place / 1000 for place in range(8)]), lambda event: None)
    network.run()
    assert [done for _, done in worker.times] == pytest.approx([1.1 + 0.5 * place for place in range(8)])
    assert 0 < len(worker.marked) == sum(counts.marked for counts in network.links()) < 8


@pytest.mark.parametrize("engine", ["fast", "strict"])
def test_a_marked_packet_reaches_the_machine_of_a_router_marked(engine: str) -> None:
    queue = {"model": "red", "packets": 100, "least": 1, "most": 10, "p": 1, "weight": 1, "ecn": True}
    links = [{"ends": ["a", "g"], "rate": "80kbit", "queue": queue}, {"ends": ["g", "b"]}]
    graph = {"kind": "graph", "nodes": {"a": {}, "g": {"kind": "router"}, "b": {}}, "links": links}
    network = Network(with_router_machines(Inline.model_validate(graph).build(), ["g"]), seed=1, engine=engine)
    worker = Heeding(network.host("g"))
    network.host("g").run(worker, lambda event: None)
    network.host("a").run(Source(network.host("a"), [place / 1000 for place in range(8)]), lambda event: None)
    network.run()
    assert 0 < len(worker.marked) == sum(counts.marked for counts in network.links()) < len(worker.times) == 8


def test_a_marked_packet_keeps_its_class_of_service() -> None:
    host = Network(Star(kind="star", receivers=1).build(), seed=1).host("sender")
    fields = Load(0, 0, 10), None, 10, 0, "sender", host.endpoint.route_to("r1"), 0
    assert dscp_of(Flight(*fields)) == 0
    assert dscp_of(ClassedFlight(*fields, 46)) == dscp_of(mark(ClassedFlight(*fields, 46), 1)) == 46
    assert dscp_of(mark(Flight(*fields), 1)) == 0
