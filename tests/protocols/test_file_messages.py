"""Files as messages: a publisher that restarts, and senders of FJM, each of which brings a topic manager."""

from functools import partial
from typing import Any

import pytest

from experiments.contract.bench import Bench
from experiments.contract.case import SETTINGS
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.losses import randomly
from protocols.events import Event, FlushCompleted, ObjectReceived, SenderReset
from protocols.fjm.manager import FjmManager
from protocols.layer import handed_through
from protocols.machine import Content, Group, Machine
from protocols.registry import protocol

GROUP = Group("239.0.0.1:6003")


class Scene:
    """Hosts of one protocol on a bench, and the events of their applications."""

    def __init__(self, name: str, hosts: str, loss: float = 0.0) -> None:
        self.spec = protocol(name)
        self.config = self.spec.config(**SETTINGS[name])
        self.bench = Bench(hosts.split(), drop=randomly(loss, 3))
        self.events: dict[str, list[Event]] = {host: [] for host in hosts.split()}
        self.machines: dict[str, Any] = {}

    def receive_at(self, host: str, node: int) -> None:
        self._run(host, self.spec.make_receiver(self.bench[host], self.config, node, GROUP))

    def send_at(self, host: str, node: int, instance: int = 1) -> None:
        self._run(host, self.spec.make_sender(self.bench[host], self.config, node, GROUP, instance))

    def _run(self, host: str, machine: Machine) -> None:
        self.machines[host] = machine
        own = self.bench[host]
        if own.machine is not None:
            self.bench.crash(host)
        own.run(*handed_through(machine, self.events[host].append, None, own)[:2])

    def submit(self, host: str, size: int) -> None:
        self.bench[host].call(self.machines[host].submit, Content(Bytes(pattern(size, 1)), b"x"))

    def told(self, host: str, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.events[host] if isinstance(event, kinds)]


@pytest.mark.parametrize("name", ["bus", "fjm"])
def test_a_sender_that_restarts_is_another_one_for_its_receivers(name: str) -> None:
    scene = Scene(name, "s r")
    scene.receive_at("r", 2)
    for start in (1, 2):
        scene.send_at("s", 1, start)
        scene.submit("s", 3000)
        scene.bench.run(scene.bench.now + 10.0)
    assert [type(event) for event in scene.told("r", ObjectReceived, SenderReset)] == [
        ObjectReceived,
        SenderReset,
        ObjectReceived,
    ]
    assert len(scene.told("s", FlushCompleted)) == 2


def test_of_several_senders_one_manages_the_session() -> None:
    scene = Scene("fjm", "r s1 s2 s3", loss=0.1)
    scene.receive_at("r", 9)
    for node in (1, 2, 3):
        scene.send_at(f"s{node}", node)
        scene.bench["r"].later(0.05 * node, partial(scene.submit, f"s{node}", 700 * node))
    scene.bench.run(20.0)
    managers = [
        next(each for each in scene.machines[f"s{node}"].machines() if isinstance(each, FjmManager)) for node in (1, 2, 3)
    ]
    assert {manager.guard for manager in managers} == {3}
    assert sorted(
        (event.sender, event.size) for event in scene.told("r", ObjectReceived) if isinstance(event, ObjectReceived)
    ) == [
        (1, 700),
        (2, 1400),
        (3, 2100),
    ]
    for sink in scene.bench["r"].sinks.values():
        assert isinstance(sink, CheckedSink)
        assert bytes(sink.content) == pattern(len(sink.content), 1)
