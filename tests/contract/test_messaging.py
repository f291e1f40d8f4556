"""Messaging protocols in every world: messages arrive once, publishers tell what became of them, and nobody blocks others."""

import pytest

from experiments.contract.bench import Bench
from experiments.contract.case import SETTINGS
from experiments.contract.losses import everything_to, randomly
from experiments.contract.messaging import MessagingCase, MessagingSession
from experiments.contract.worlds import WORLDS, BenchWorld, SimWorld
from protocols.distributor.messages import Batch, Configuration, Fragment, Heartbeat, Nak, Request, Source, SubjectUpdates
from protocols.messaging import PublisherUnblocked
from protocols.registry import protocol

DISTRIBUTOR = MessagingCase(
    protocol("distributor"),
    {
        "rate": 1e6,
        "segment": 500,
        "heartbeat": 0.1,
        "timeout": 0.05,
        "server_holdback": 0.005,
        "holdback": 0.002,
        "retries": 40,
    },
)
CASES = [DISTRIBUTOR, *(MessagingCase(protocol(name), SETTINGS[name]) for name in ("norm", "n2"))]
EVERY = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.mark.parametrize("loss", [0.0, 0.1])
@pytest.mark.parametrize("world", WORLDS)
@EVERY
def test_every_message_arrives_once_and_its_publisher_tells(case: MessagingCase, world: str, loss: float) -> None:
    opened = WORLDS[world](case, 3, loss)
    try:
        session = MessagingSession(case, opened)
        opened.run(0.05, lambda: False)
        session.publish()
        session.run()
        session.expect_everything()
        session.expect_told()
    finally:
        opened.close()


@EVERY
def test_late_and_early_wake_ups_do_no_harm(case: MessagingCase) -> None:
    world = BenchWorld(case, 3, 0.1)
    world.bench = Bench(world.names, drop=randomly(0.1), late=0.02)
    world.hosts = list(world.bench.hosts.values())
    session = MessagingSession(case, world)
    session.publish()
    for step in range(200):
        world.run(step * 0.005, session.is_over)
        for host, machine in zip(world.bench.hosts.values(), session.machines, strict=True):
            host.call(getattr(machine, "inner", machine).wake)
    session.run()
    session.expect_everything()


@EVERY
def test_a_session_repeats_itself(case: MessagingCase) -> None:
    found = []
    for _ in range(2):
        world = SimWorld(case, 3, 0.1)
        session = MessagingSession(case, world)
        session.publish()
        session.run()
        found.append([list(map(repr, events)) for events in session.events])
    assert found[0] == found[1]


@EVERY
def test_a_dead_subscriber_stops_nobody(case: MessagingCase) -> None:
    world = BenchWorld(case, 4, 0.0)
    world.bench.drop = everything_to("n1", since=0.02)
    session = MessagingSession(case, world)
    session.publish()
    world.run(20.0, lambda: min(map(len, (session.received(2), session.received(3)))) >= 40 and session.is_idle())
    session.expect_everything(2, 3)
    session.expect_told()


@EVERY
def test_nothing_is_sent_while_the_network_is_full(case: MessagingCase) -> None:
    world = BenchWorld(case, 2, 0.0)
    session = MessagingSession(case, world)
    host = world.bench["n0"]
    host.room = room = 5
    session.publish()
    for _ in range(200):
        world.run(world.now + 0.2, session.is_over)
        assert host.room >= 0, "more was sent into a network that is full"
        if session.is_over():
            break
        if host.room == 0:
            host.resume(world.now, room)
    session.expect_everything()
    session.expect_told()
    assert any(isinstance(event, PublisherUnblocked) for event in session.events[0])


STRANGE = Source(77, 78, 79, 80)
NOISE = [
    Heartbeat(STRANGE, 0, 0, 0, (1 << 31) - 1),
    Configuration(STRANGE, 0, 0, 0, -1, -1, "x" * 1000),
    Batch(STRANGE, 5, [SubjectUpdates("no slash", [b""]), SubjectUpdates("/t", [b"no message"])], 2, 60),
    Fragment(STRANGE, -6, 1, b"abc", "/t", 1 << 24),
    Fragment(STRANGE, 7, 4, b""),
    Request(STRANGE, 0, 1, 0, -(1 << 31), (1 << 31) - 1, "", ""),
    Request(STRANGE, 0, 2, 0, 5, 1, "", ""),
    Nak(STRANGE, 0, 0, (1, 2, 3, -4)),
    Nak(Source(1, 1, 0), 0, 0, ()),
]


def test_a_distributor_is_not_stopped_by_messages_of_strangers() -> None:
    world = BenchWorld(DISTRIBUTOR, 3, 0.1)
    session = MessagingSession(DISTRIBUTOR, world)
    session.publish()
    for step in range(100):
        for host in world.bench.hosts.values():
            host.deliver(NOISE[step % len(NOISE)], "stranger", world.group, world.now)
        world.run(world.now + 0.003, lambda: False)
    session.run()
    session.expect_everything()
    for machine in session.machines:
        assert all(kept <= most for kept, most in machine.held().values())
