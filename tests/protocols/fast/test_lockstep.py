"""A lockstep group changes its machines exactly as messages change plain machines, with fewer calls."""

from collections.abc import Sequence
from math import inf
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.recorder import Recorder
from experiments.running.content import Extent
from protocols.fast.contract import FastMachine, Other, fan_out
from protocols.fast.lockstep import LockstepGroup
from protocols.machine import Address, Content, Group, Message, Ports
from protocols.norm import NormReceiver
from protocols.norm.fast import FastNormReceiver, FastNormSender
from protocols.norm.messages import FLAG_REPAIR, Data
from protocols.registry import protocol
from protocols.rng import Rng, key_of

GROUP = Group("239.0.0.1:1")
CONFIG = protocol("norm").config(rate=100_000.0, segment=1000, block=8, parity=4, grtt=0.05)
COUNT, PACKETS = 6, 150


class Side:
    """Receivers of these classes, in one lockstep group or separate."""

    def __init__(self, kinds: Sequence[type[NormReceiver]], together: bool) -> None:
        self.ports = [Recorder(seed) for seed in range(COUNT)]
        pairs = zip(kinds, self.ports, strict=True)
        self.machines = [kind(cast(Ports, ports), CONFIG, node, GROUP) for node, (kind, ports) in enumerate(pairs, 2)]
        is_fast = [type(machine) is FastNormReceiver for machine in self.machines]
        followers: list[Any] = [each if fast else None for each, fast in zip(self.machines, is_fast, strict=True)]
        others: list[Other] = [(index, self.machines[index], False) for index, fast in enumerate(is_fast) if not fast]
        self.lockstep = FastNormReceiver.make_group(followers, others) if together else None
        for machine in self.machines:
            machine.start(0.0)

    def deliver(self, message: Message, source: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver the message to all machines except those with an index in `lost_by`."""
        if self.lockstep is not None:
            self.lockstep.tell(message, source, GROUP, now, lost_by)
        else:
            fan_out([self.machines[n] for n in range(COUNT) if n not in lost_by], message, source, GROUP, now)

    def wake(self, now: float) -> list[tuple[int, Message]]:
        """Wake the machines that are due; return (index, message) of everything sent since the last call."""
        for machine in self.machines:
            if machine.deadline <= now and isinstance(machine, FastNormReceiver) and machine.fast_state.coordinator is not None:
                machine.wake_in_lockstep(now)
            if machine.deadline <= now:
                machine.wake(now)
        sent = [(index, packet.message) for index, ports in enumerate(self.ports) for packet in ports.packets]
        for ports in self.ports:
            ports.packets.clear()
        return sent

    def state(self) -> list[Any]:
        """Return the observable state of all machines."""
        return [(m.deadline, m.counts(), p.events, len(p.offers)) for m, p in zip(self.machines, self.ports, strict=True)]


FAST, PLAIN = [FastNormReceiver] * COUNT, [NormReceiver] * COUNT
MIXED = [NormReceiver, *FAST[1:4], NormReceiver, FastNormReceiver]


def run_session(seed: int, loss: float) -> list[Side]:
    """Run a session with equal losses on every side, with NACKs delivered to all; the last side has plain machines."""
    rng = Rng(key_of(seed, "crowd"))
    sides = [Side(FAST, True), Side(MIXED, True), Side(FAST, False), Side(PLAIN, False)]
    ports = Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    for _ in range(PACKETS):
        now = min(sender.deadline, *(machine.deadline for machine in sides[-1].machines))
        if now == inf:
            break
        sent_by_side = [side.wake(now) for side in sides]
        assert all(sent == sent_by_side[-1] for sent in sent_by_side)
        sender.wake(now)
        for packet in ports.packets:
            lost_by = [index for index in range(COUNT) if rng.uniform() < loss]
            for side in sides:
                side.deliver(packet.message, "sender", now, lost_by)
        ports.packets.clear()
        for index, message in sent_by_side[0]:
            sender.receive(message, f"r{index}", GROUP, now)
            lost_by = sorted({index, *(other for other in range(COUNT) if rng.uniform() < loss)})
            for side in sides:
                side.deliver(message, f"r{index}", now, lost_by)
        if rng.uniform() < 0.05:
            # Reading the counters takes a machine out of the group, without another effect.
            assert len({str(side.machines[1].counts()) for side in sides}) == 1
    return sides


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.4]))
def test_a_lockstep_group_leaves_its_machines_in_the_state_of_plain_machines(seed: int, loss: float) -> None:
    *fast, plain = run_session(seed, loss)
    for side in fast:
        assert side.state() == plain.state()


def test_machines_in_lockstep_are_not_called() -> None:
    called = []

    class Counting(FastNormReceiver):
        """Receiver that counts its calls."""

        def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
            """Count the call."""
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
    # The probe and the first symbol, and machines whose answer to the probe is pending at every block.
    assert called.count("cc") == 50
    assert called.count("data") < 0.2 * 50 * 40


def test_a_receiver_that_lost_the_last_new_symbols_follows_repairs_in_lockstep() -> None:
    side, plain, ports = Side(FAST, True), Side(PLAIN, False), Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    unaware = side.machines[1]
    assert isinstance(unaware, FastNormReceiver)
    followed = new = 0
    while followed < 2:
        now = min(sender.deadline, *(machine.deadline for machine in plain.machines))
        nacks, _ = side.wake(now), plain.wake(now)
        sender.wake(now)
        for packet in ports.packets:
            content = packet.message if isinstance(packet.message, Data) else None
            is_new = content is not None and not content.flags & FLAG_REPAIR
            new += is_new
            # One receiver lacks the third symbol, another all from the tenth on.
            lost_by = [0] if is_new and new == 3 else [1] if is_new and new >= 10 else []
            for each in (side, plain):
                each.deliver(packet.message, "sender", now, lost_by)
            if new >= 10 and content is not None and not is_new:
                followed += 1
                assert unaware.fast_state.coordinator is not None
        ports.packets.clear()
        for index, message in nacks:
            sender.receive(message, f"r{index}", GROUP, now)
    assert side.state() == plain.state()


def test_a_dissolved_group_leaves_every_machine_at_the_position_of_the_sender() -> None:
    side, separate = Side(FAST, True), Side(FAST, False)
    ports = Recorder()
    sender = FastNormSender(cast(Ports, ports), CONFIG, 1, GROUP)
    sender.start(0.0)
    sender.submit(Content(Extent(60_000), b"", is_file=False), 0.0)
    while len(ports.packets) < 20:
        sender.wake(sender.deadline)
    for number, packet in enumerate(ports.packets):
        for each in (side, separate):
            each.deliver(packet.message, "sender", 0.01 * number, ())
    assert side.lockstep is not None
    side.lockstep.dissolve()
    pairs = zip(side.machines, separate.machines, strict=True)
    for one, other in pairs:
        assert isinstance(one, FastNormReceiver)
        assert isinstance(other, FastNormReceiver)
        assert one.fast_state.coordinator is None
        assert one.fast_state.position is other.fast_state.position
    assert side.state() == separate.state()
