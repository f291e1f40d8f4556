"""Several machines on an emulated host: each has a port, they receive each other's packets, and hosts are found by name."""

import time
from typing import Any

import pytest

from emu.launch import emulate
from protocols.composite import CompositeMachine
from protocols.hosting import PortsHost, Program
from protocols.machine import Event
from tests.emu.number_protocol import PORT, NumberCodec, NumberReceiver, NumberSender, ReceivingProgram
from topologies.generators import Star

pytestmark = pytest.mark.emu
TOTAL = 50


class Together:
    """A sender to the group, a receiver of it, and a machine that only takes unicasts, all on one host."""

    def __init__(self) -> None:
        self.left = 1
        self.epoch = 0.0

    def start(self, host: PortsHost) -> None:
        """Run them."""
        composite = CompositeMachine(host)
        hosts = [composite.component(name, NumberCodec) for name in ("sender", "receiver", "unicasts")]
        self.sender = NumberSender(hosts[0], TOTAL, 1000)
        self.receivers = [NumberReceiver(hosts[1]), NumberReceiver(hosts[2], None)]
        for machine, own in zip((*self.receivers, self.sender), (*hosts[1:], hosts[0]), strict=True):
            own.run(machine, self._on_event)
        self._host = host

    def _on_event(self, event: Event) -> None:
        self.left -= 1
        self.epoch = self._host.epoch + self._host.now - time.time()

    def finished(self) -> bool:
        """Whether all is sent, and received from the other host."""
        return not self.left and len(self.receivers[1].numbers) == TOTAL

    def result(self) -> dict[str, Any]:
        """Return what each received."""
        received = [receiver.numbers for receiver in self.receivers]
        return {"received": received, "own": self.sender.received, "epoch": self.epoch}


class Elsewhere:
    """Sends numbers to the third machine of another host, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self, host: PortsHost) -> None:
        """Run the sender."""
        self.sender = NumberSender(host, TOTAL, 1000, to=host.address_of(self._name, 2))
        host.run(self.sender, lambda event: None)

    def finished(self) -> bool:
        """Whether all is sent."""
        return self.sender.sent == TOTAL

    def result(self) -> dict[str, Any]:
        """Return what it received of the group."""
        return {"numbers": self.sender.received}


def test_machines_of_a_host_hear_each_other_and_others_find_each_by_name() -> None:
    programs: dict[str, Program] = {"sender": Together(), "r1": Elsewhere("sender"), "r2": ReceivingProgram()}
    topology = Star.model_validate({"receivers": 2}).build()
    both = frozenset({"sender", "r1"})
    run = emulate(topology, programs, codec=NumberCodec, port=PORT, duration=20, over=both.issubset, seed=1)
    reports = {name: report.result for name, report in run.nodes.items()}
    assert not any(report.error for report in run.nodes.values())
    together = reports["sender"]
    assert together is not None
    assert together["received"] == [list(range(TOTAL))] * 2
    assert together["own"] == []
    assert abs(together["epoch"]) < 0.1
    assert reports["r1"] == {"numbers": list(range(TOTAL))}
    assert reports["r2"] is not None
    assert reports["r2"]["numbers"] == list(range(TOTAL))
