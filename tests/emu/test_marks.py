"""Marks of queues (ECN) reach the machine of a real host, in batches too, and congestion control takes them for losses."""

import socket
from collections.abc import Iterator

import pytest

from emu.addresses import family_of
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp import SEGMENTS, SendQueue
from emu.udp_options import UdpOptions
from experiments.running.emulate import emulate_scenario
from experiments.running.simulate import simulate
from experiments.scenario.scenario import Scenario
from protocols.composite import CompositeMachine
from protocols.machine import Address, Machine, Message
from protocols.node import NodeMachine
from protocols.rng import Rng
from tests.emu.number_protocol import GROUP, NumberCodec, NumberMessage
from tests.support.toy import ToyConfig, ToySender

CLASS_OPTIONS = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
}
CE, ECT, NOT_ECT = 3, 2, 0
CLASSES = [0xB8 | CE] * 20 + [ECT] * 20 + [CE] + [NOT_ECT] * 5
MARKED = [*range(20), 40]


class Listener(Machine):
    """Keeps the numbers that it received, and which of them were marked."""

    def __init__(self, host: object) -> None:
        super().__init__(host)  # type: ignore[arg-type]
        self.numbers: list[int] = []
        self.marked: list[int] = []

    def start(self, now: float) -> None:
        """Receive at the own port."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep a number."""
        assert isinstance(message, NumberMessage)
        self.numbers.append(message.number)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep a number that was marked."""
        assert isinstance(message, NumberMessage)
        self.marked.append(message.number)
        self.receive(message, source, to, now)

    def wake(self, now: float) -> None:
        """There is nothing to do."""

    def counts(self) -> dict[str, int]:
        """Return nothing."""
        return {}


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = new_loop()
    yield made
    made.close()


def hear(loop: Loop, interface: str, classes: list[int], burst: int, setting: str) -> Listener:
    """Return what a host received of packets with these traffic classes, sent in this order to its port."""
    options = UdpOptions(ttl=0, ecn=setting != "unaware")
    host = UdpHost(loop, NumberCodec(), interface=interface, port=0, rng=Rng(1), options=options)
    out = socket.socket(family_of(host.address), socket.SOCK_DGRAM)
    level, option = CLASS_OPTIONS[family_of(host.address)]
    try:
        machine = listen(host, setting)
        queue, to = SendQueue(out, burst), host.unicast_address
        for number, tos in enumerate(classes):
            if out.getsockopt(level, option) != tos:
                queue.flush()
                out.setsockopt(level, option, tos)
            queue.push(NumberCodec().encode(NumberMessage(number, 700)), to)
        queue.flush()
        loop.run(0.2)
        return machine
    finally:
        out.close()
        host.close()


def listen(host: UdpHost, setting: str) -> Listener:
    """Run a listener on the host, itself or as a part of another machine."""
    if setting == "composite":
        part = CompositeMachine(host).component("")
        machine = Listener(part)
        part.run(machine, lambda event: None)
        return machine
    if setting == "node":
        node = NodeMachine(host, 1, lambda ports: ToySender(ports, ToyConfig(), 1, GROUP, 1), Listener)
        host.run(node, lambda event: None)
        assert isinstance(node.receiver, Listener)
        return node.receiver
    machine = Listener(host)
    host.run(machine, lambda event: None)
    if setting == "slow reader":
        host.read_at(1e-6, 1000)
    return machine


@pytest.mark.parametrize("burst", [1, SEGMENTS])
@pytest.mark.parametrize("interface", ["127.0.0.1", "::1"])
def test_a_machine_is_told_which_packets_are_marked(loop: Loop, interface: str, burst: int) -> None:
    heard = hear(loop, interface, CLASSES, burst, "plain")
    assert (heard.numbers, heard.marked) == (list(range(len(CLASSES))), MARKED)


@pytest.mark.parametrize("setting", ["composite", "slow reader", "node"])
def test_a_machine_in_another_is_told_as_well(loop: Loop, setting: str) -> None:
    heard = hear(loop, "127.0.0.1", CLASSES, SEGMENTS, setting)
    assert (heard.numbers, heard.marked) == (list(range(len(CLASSES))), MARKED)


def test_marks_are_not_read_by_a_host_that_does_not_use_ecn(loop: Loop) -> None:
    heard = hear(loop, "127.0.0.1", CLASSES, 1, "unaware")
    assert (heard.numbers, heard.marked) == (list(range(len(CLASSES))), [])


def share(congestion: str) -> Scenario:
    """Return a scenario with a bottleneck that marks."""
    queue = {"model": "red", "packets": 100, "least": 3, "most": 40, "p": 0.05, "ecn": True}
    topology = {
        "kind": "dumbbell",
        "receivers": 1,
        "pairs": 0,
        "link": {"delay": "2ms"},
        "bottleneck": {"rate": "4Mbit", "delay": "15ms", "queue": queue},
    }
    protocol = {"name": "norm", "congestion": congestion, "grtt": "60ms", "gsize": 10, "parity": 0, "block": 32}
    workload = {"kind": "file", "from": "sender", "size": "2MB"}
    return Scenario.model_validate(
        {"name": "marks", "seed": 1, "topology": topology, "protocol": protocol, "workload": workload, "duration": "40s"}
    )


def at_the_queue(rows: list[dict[str, int]]) -> tuple[int, int]:
    """Return how many packets queues have dropped, and marked."""
    return sum(row.get("dropped", 0) for row in rows), sum(row.get("marked", 0) for row in rows)


@pytest.mark.emu
@pytest.mark.slow
@pytest.mark.timed
def test_marks_of_an_emulated_queue_limit_the_rate_as_in_the_simulator() -> None:
    emulated, simulated, without = emulate_scenario(share("ecn")), simulate(share("ecn")), simulate(share("norm"))
    (dropped, marked), (expected, _) = (at_the_queue(result.metrics["impairments"]) for result in (emulated, simulated))
    assert marked > 8
    # Slow start fills the queue; without marks that are heeded it is full ever again.
    assert abs(dropped - expected) < 20
    assert dropped < at_the_queue(without.metrics["impairments"])[0] / 2
    there, here = (result.metrics["completion_time"] for result in (emulated, simulated))
    assert abs(there - here) < 0.2 * here
