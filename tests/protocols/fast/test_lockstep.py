"""A lockstep group has on its machines the effect that messages have on plain machines, with fewer calls."""

from collections.abc import Sequence
from math import inf
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.recorder import Recorder
from experiments.running.content import Extent
from protocols.fast.contract import FastMachine, fan_out
from protocols.fast.lockstep import LockstepGroup
from protocols.machine import Address, Content, Group, Message, Ports
from protocols.norm import NormReceiver
from protocols.norm.fast import FastNormReceiver, FastNormSender
from protocols.registry import protocol
from protocols.rng import Rng, key_of

GROUP = Group("239.0.0.1:1")
CONFIG = protocol("norm").config(rate=100_000.0, segment=1000, block=8, parity=4, grtt=0.05)
COUNT, PACKETS = 6, 150


class Side:
    """Receivers of these classes, in one lockstep group or apart."""

    def __init__(self, kinds: Sequence[type[NormReceiver]], together: bool) -> None:
        self.ports = [Recorder(seed) for seed in range(COUNT)]
        pairs = zip(kinds, self.ports, strict=True)
        self.machines = [kind(cast(Ports, ports), CONFIG, node, GROUP) for node, (kind, ports) in enumerate(pairs, 2)]
        self.lockstep = LockstepGroup(self.machines) if together else None
        for machine in self.machines:
            machine.start(0.0)

    def tell(self, message: Message, source: Address, now: float, out: Sequence[int]) -> None:
        """Deliver the message to all but those at `out`."""
        if self.lockstep is not None:
            self.lockstep.tell(message, source, GROUP, now, out)
        else:
            fan_out([self.machines[n] for n in range(COUNT) if n not in out], message, source, GROUP, now)

    def wake(self, now: float) -> list[tuple[int, Message]]:
        """Wake the machines that are due; (place, message) of what all have sent since the last time."""
        for machine in self.machines:
            if machine.deadline <= now:
                if isinstance(machine, FastMachine):
                    machine.leave_lockstep()
                machine.wake(now)
        said = [(place, packet.message) for place, ports in enumerate(self.ports) for packet in ports.packets]
        for ports in self.ports:
            ports.packets.clear()
        return said

    def state(self) -> list[Any]:
        """What can be seen from outside."""
        return [(m.deadline, m.counts(), p.events, len(p.offers)) for m, p in zip(self.machines, self.ports, strict=True)]


FAST, PLAIN = [FastNormReceiver] * COUNT, [NormReceiver] * COUNT
MIXED = [NormReceiver, *FAST[1:4], NormReceiver, FastNormReceiver]


def play(seed: int, loss: float) -> list[Side]:
    """Run a session with the same losses at every side; NACKs reach the sender and all others. The last side is plain."""
    dice = Rng(key_of(seed, "crowd"))
    sides = [Side(FAST, True), Side(MIXED, True), Side(FAST, False), Side(PLAIN, False)]
    ports = Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    for _ in range(PACKETS):
        now = min(sender.deadline, *(machine.deadline for machine in sides[-1].machines))
        if now == inf:
            break
        spoken = [side.wake(now) for side in sides]
        assert all(said == spoken[-1] for said in spoken)
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
            # To ask for the counters takes a machine out of the group, without an effect on anything else.
            assert len({str(side.machines[1].counts()) for side in sides}) == 1
    return sides


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.4]))
def test_a_group_leaves_its_machines_as_plain_machines_are(seed: int, loss: float) -> None:
    *fast, plain = play(seed, loss)
    for side in fast:
        assert side.state() == plain.state()


def test_machines_in_lockstep_are_not_called() -> None:
    called = []

    class Counting(FastNormReceiver):
        """Notes that it was called."""

        def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
            """Note it."""
            called.append(message.kind)
            super().receive(message, source, to, now)

    machines: list[FastMachine] = [Counting(cast(Ports, Recorder(seed)), CONFIG, seed + 2, GROUP) for seed in range(50)]
    lockstep, ports = LockstepGroup(machines), Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 40:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets):
        lockstep.tell(packet.message, "sender", GROUP, 0.01 * number, ())
    # The probe and the first symbol, and those that still have to answer the probe at every block.
    assert called.count("cc") == 50
    assert called.count("data") < 0.2 * 50 * 40


def test_a_dissolved_group_leaves_every_machine_at_the_position_of_the_sender() -> None:
    side, singly = Side(FAST, True), Side(FAST, False)
    ports = Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 20:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets):
        for each in (side, singly):
            each.tell(packet.message, "sender", 0.01 * number, ())
    assert side.lockstep is not None
    side.lockstep.dissolve()
    pairs = zip(side.machines, singly.machines, strict=True)
    for one, other in pairs:
        assert isinstance(one, FastNormReceiver)
        assert isinstance(other, FastNormReceiver)
        assert one.fast_state.coordinator is None
        assert one.fast_state.position is other.fast_state.position
    assert side.state() == singly.state()
