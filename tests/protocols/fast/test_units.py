"""A unit group changes its machines exactly as messages change plain machines, with fewer calls."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.recorder import Recorder
from experiments.running.content import Extent
from protocols.fast.contract import fan_out
from protocols.fast.units import UnitGroup, UnitMachine
from protocols.machine import Address, Content, Group, Message, Ports
from protocols.registry import protocol
from protocols.rng import Rng, key_of

GROUP = Group("239.0.0.1:1")
COUNT, PACKETS = 6, 160
NAMES = ("a", "n1", "n2")


def config_of(name: str) -> Any:
    """Return parameters that make a session short."""
    return protocol(name).config(rate=100_000.0, segment=1000, timeout=0.1)


class Side:
    """Receivers of a protocol: plain, or fast and in one group."""

    def __init__(self, name: str, together: bool) -> None:
        self.ports = [Recorder(seed) for seed in range(COUNT)]
        make = protocol(name).makers(fast=together).make_receiver
        config = config_of(name)
        self.machines: list[Any] = [make(cast(Ports, ports), config, node, GROUP) for node, ports in enumerate(self.ports, 2)]
        self.group = UnitGroup(self.machines) if together else None
        for machine in self.machines:
            machine.start(0.0)

    def deliver(self, message: Message, source: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver the message to all machines except those with an index in `lost_by`."""
        if self.group is not None:
            self.group.tell(message, source, GROUP, now, lost_by)
        else:
            fan_out([self.machines[n] for n in range(COUNT) if n not in lost_by], message, source, GROUP, now)

    def wake(self, now: float) -> None:
        """Wake the machines that are due."""
        for machine in self.machines:
            if machine.deadline <= now and isinstance(machine, UnitMachine) and machine.fast_state.coordinator is not None:
                machine.wake_in_lockstep(now)
            if machine.deadline <= now:
                machine.wake(now)

    def take_sent(self) -> list[tuple[int, Message]]:
        """Return (index, message) of everything sent since the last call, by index."""
        sent = [(index, packet.message) for index, ports in enumerate(self.ports) for packet in ports.packets]
        for ports in self.ports:
            ports.packets.clear()
        return sent

    def state(self) -> list[Any]:
        """Return the observable state of all machines."""
        return [(m.counts(), p.events, len(p.offers)) for m, p in zip(self.machines, self.ports, strict=True)]


def run_session(name: str, seed: int, loss: float) -> tuple[Side, Side]:
    """Run a session with equal losses on both sides; multicast NACKs are delivered to all receivers."""
    rng, fast, plain = Rng(key_of(seed, "units")), Side(name, True), Side(name, False)
    ports = Recorder()
    sender: Any = protocol(name).makers(fast=True).make_sender(cast(Ports, ports), config_of(name), 1, GROUP, 7)
    sender.start(0.0)
    for size in (30_000, 0, 12_000):
        sender.submit(Content(Extent(size), b"", is_file=False), 0.0)
    for _ in range(PACKETS):
        now = min(sender.deadline, *(machine.deadline for machine in (*plain.machines, *fast.machines)))
        fast.wake(now)
        plain.wake(now)
        sender.wake(now)
        for packet in ports.packets:
            lost_by = [index for index in range(COUNT) if rng.uniform() < loss]
            fast.deliver(packet.message, "sender", now, lost_by)
            plain.deliver(packet.message, "sender", now, lost_by)
        ports.packets.clear()
        sent = plain.take_sent()
        assert fast.take_sent() == sent
        for index, message in sent:
            if rng.uniform() >= loss:
                sender.receive(message, f"r{index}", GROUP, now)
            lost_by = sorted({index, *(other for other in range(COUNT) if rng.uniform() < loss)})
            if name == "n2":
                fast.deliver(message, f"r{index}", now, lost_by)
                plain.deliver(message, f"r{index}", now, lost_by)
        if rng.uniform() < 0.05:
            # Reading the counters takes a machine out of the group, without another effect.
            assert fast.machines[1].counts() == plain.machines[1].counts()
    return fast, plain


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_group_leaves_its_machines_in_the_state_of_plain_machines(name: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.4]))
    def check(seed: int, loss: float) -> None:
        fast, plain = run_session(name, seed, loss)
        assert fast.state() == plain.state()

    check()


@pytest.mark.parametrize("name", NAMES)
def test_machines_in_lockstep_are_not_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    side, called = Side(name, True), []
    kind = type(side.machines[0])
    receive = kind.receive

    def counting(self: Any, message: Message, *rest: Any) -> None:
        called.append(message.kind)
        receive(self, message, *rest)

    monkeypatch.setattr(kind, "receive", counting)
    ports = Recorder()
    sender: Any = protocol(name).makers(fast=True).make_sender(cast(Ports, ports), config_of(name), 1, GROUP, 7)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 41:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets[:40]):
        side.deliver(packet.message, "sender", 0.01 * number, [2] if number == 20 else [])
    # All receive the first unit singly, and the one that lost a unit the next.
    assert called == ["data"] * (COUNT + 1)
