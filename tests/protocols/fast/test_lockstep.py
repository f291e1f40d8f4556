"""A crowd does to its machines what `fan_out` does, with fewer calls."""

from collections.abc import Sequence
from math import inf
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.fast.lockstep import LockstepGroup
from protocols.machine import Address, Content, Group, Machine, Message, Ports, fan_out
from protocols.norm import NormReceiver, NormSender
from protocols.registry import protocol
from protocols.rng import Rng, key_of
from tests.support.content import Extent
from tests.support.recorder import Recorder

GROUP = Group("239.0.0.1:1")
CONFIG = protocol("norm").config(rate=100_000.0, segment=1000, block=8, parity=4, grtt=0.05)
COUNT, PACKETS = 6, 150


class Side:
    """Receivers that are told in one way or the other."""

    def __init__(self, together: bool) -> None:
        self.ports = [Recorder(seed) for seed in range(COUNT)]
        self.machines: list[Machine] = [
            NormReceiver(cast(Ports, ports), CONFIG, node, GROUP) for node, ports in enumerate(self.ports, 2)
        ]
        self.lockstep = LockstepGroup(self.machines) if together else None
        for machine in self.machines:
            machine.start(0.0)

    def tell(self, message: Message, source: Address, now: float, out: Sequence[int]) -> None:
        """All but those at `out` hear the message."""
        if self.lockstep is not None:
            self.lockstep.tell(message, source, GROUP, now, out)
        else:
            fan_out([self.machines[n] for n in range(COUNT) if n not in out], message, source, GROUP, now)

    def wake(self, now: float) -> list[tuple[int, Message]]:
        """Who is due speaks: (place, message), and what was said before but not taken yet."""
        for machine in self.machines:
            if machine.deadline <= now:
                machine.leave_lockstep()
                machine.wake(now)
        said = [(place, packet.message) for place, ports in enumerate(self.ports) for packet in ports.packets]
        for ports in self.ports:
            ports.packets.clear()
        return said

    def state(self) -> list[Any]:
        """What can be seen from outside."""
        return [(m.deadline, m.counts(), p.events, len(p.offers)) for m, p in zip(self.machines, self.ports, strict=True)]


def play(seed: int, loss: float) -> tuple[Side, Side]:
    """A session heard by both sides with the same losses; NACKs reach the sender and all others."""
    dice = Rng(key_of(seed, "crowd"))
    sides = Side(together=True), Side(together=False)
    ports = Recorder()
    sender = NormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    for _ in range(PACKETS):
        now = min(sender.deadline, *(machine.deadline for machine in sides[1].machines))
        if now == inf:
            break
        spoken = [side.wake(now) for side in sides]
        assert spoken[0] == spoken[1]
        sender.wake(now)
        for packet in ports.packets:
            out = [place for place in range(COUNT) if dice.uniform() < loss]
            for side in sides:
                side.tell(packet.message, "sender", now, out)
        ports.packets.clear()
        for place, message in spoken[0]:
            sender.receive(message, f"r{place}", GROUP, now)
            out = sorted({place, *(other for other in range(COUNT) if dice.uniform() < loss)})
            for side in sides:
                side.tell(message, f"r{place}", now, out)
        if dice.uniform() < 0.05:
            # To look at a machine takes it out of step, and nobody notices.
            assert sides[0].machines[0].counts() == sides[1].machines[0].counts()
    return sides


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.4]))
def test_a_crowd_leaves_its_machines_as_fan_out_leaves_them(seed: int, loss: float) -> None:
    together, singly = play(seed, loss)
    assert together.state() == singly.state()


def test_machines_in_step_are_not_called() -> None:
    called = []

    class Counting(NormReceiver):
        """Notes that it was called."""

        def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
            """Note it."""
            called.append(message.kind)
            super().receive(message, source, to, now)

    machines: list[Machine] = [Counting(cast(Ports, Recorder(seed)), CONFIG, seed + 2, GROUP) for seed in range(50)]
    lockstep, ports = LockstepGroup(machines), Recorder()
    sender = NormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 40:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets):
        lockstep.tell(packet.message, "sender", GROUP, 0.01 * number, ())
    # The probe and the first symbol, and who still has to answer the probe at every block.
    assert called.count("cc") == 50
    assert called.count("data") < 0.2 * 50 * 40


def test_a_dissolved_crowd_leaves_everybody_where_the_sender_stands() -> None:
    side, leave_lockstep = Side(together=True), Side(together=False)
    ports = Recorder()
    sender = NormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 20:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets):
        for each in (side, leave_lockstep):
            each.tell(packet.message, "sender", 0.01 * number, ())
    assert side.lockstep is not None
    side.lockstep.dissolve()
    assert all(machine.fast_state.coordinator is None for machine in side.machines)
    assert [machine.fast_state.at for machine in side.machines] == [
        machine.fast_state.at for machine in leave_lockstep.machines
    ]
    assert side.state() == leave_lockstep.state()
