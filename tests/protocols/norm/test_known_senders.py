"""A receiver remembers a bounded number of senders, and wakes each when it is due."""

from math import inf
from random import Random
from typing import Any

import pytest

from experiments.contract.fake_host import FakeHost
from protocols.events import ObjectAborted, ObjectReceived, SenderHeard
from protocols.norm.fast.receiver import FastNormReceiver
from protocols.norm.maps import SEVERAL, DeadlineMap
from protocols.norm.receiver import NormReceiver
from tests.protocols.norm.scenes import GROUP, MessageBuilder, quick


def listening(kind: type[NormReceiver], **settings: Any) -> tuple[FakeHost, NormReceiver]:
    host = FakeHost("listener")
    machine = kind(host, quick(**settings), 9, GROUP)
    host.run(machine)
    return host, machine


def known(*deadlines: float) -> DeadlineMap[str]:
    senders: DeadlineMap[str] = DeadlineMap()
    for node, deadline in enumerate(deadlines):
        senders[node] = f"sender {node}"
        senders.note(node, deadline)
    return senders


def test_the_first_deadline_counts_whatever_was_noted_before() -> None:
    senders = known(3.0, inf, 2.0)
    assert senders.deadline() == 2.0
    senders.note(2, 5.0)
    assert senders.deadline() == 3.0
    senders.note(0, inf)
    senders.note(2, inf)
    assert senders.deadline() == inf


def test_those_due_together_come_in_the_order_in_which_they_were_heard_first() -> None:
    senders = known(3.0, 9.0, 2.0, 3.0)
    assert senders.due(3.0) == ["sender 0", "sender 2", "sender 3"]
    assert senders.due(3.0) == []
    assert senders.deadline() == 9.0


def test_deadlines_that_change_often_take_no_more_room() -> None:
    senders = known(1.0, *[2.0] * SEVERAL)
    for step in range(1000):
        senders.note(0, 10.0 + step)
    assert senders._heap is not None
    assert len(senders._heap) < 200
    assert senders.deadline() == 2.0


@pytest.mark.parametrize("most", [5, SEVERAL + 20])
def test_deadlines_of_few_and_of_many_senders_are_those_of_a_list(most: int) -> None:
    rng = Random(most)
    senders: DeadlineMap[int] = DeadlineMap()
    deadlines: dict[int, float] = {}
    now = 0.0
    for _ in range(3000):
        node, choice = rng.randrange(most), rng.random()
        if node not in deadlines:
            senders[node] = node
            deadlines[node] = inf
        elif choice < 0.1:
            del senders[node]
            del deadlines[node]
        elif choice < 0.2:
            now += rng.random()
            assert senders.due(now) == [each for each, when in deadlines.items() if when <= now]
            deadlines = {each: inf if when <= now else when for each, when in deadlines.items()}
        else:
            deadlines[node] = rng.choice([inf, now + round(4 * rng.random(), 1)])
            senders.note(node, deadlines[node])
        assert senders.deadline() == min(deadlines.values(), default=inf)


@pytest.mark.parametrize("kind", [NormReceiver, FastNormReceiver])
def test_forged_senders_never_displace_one_under_way(kind: type[NormReceiver]) -> None:
    host, machine = listening(kind, senders=4)
    honest = MessageBuilder(bytes(16_000), node=1)
    messages = honest.whole()
    for number, message in enumerate(messages):
        host.deliver(message, GROUP, GROUP, 0.0)
        if number >= 70:
            host.deliver(MessageBuilder(b"x" * 200, node=1000 + number).data(0, 0), f"host {number}", GROUP, host.now)
    assert next(event for event in host.events if isinstance(event, ObjectReceived)).sender == 1
    assert len(machine.senders()) == 4
    assert 1 in [sender.node for sender in machine.senders()]
    assert sum(isinstance(event, SenderHeard) and event.sender == 1 for event in host.events) == 1
    assert machine.counts()["data_received"] == len(messages) * 2 - 70, "what was received of forgotten ones stays counted"
    assert sum(isinstance(event, ObjectAborted) for event in host.events) == len(messages) - 70 - 3


@pytest.mark.parametrize("kind", [NormReceiver, FastNormReceiver])
def test_without_a_sender_that_can_be_forgotten_others_are_ignored(kind: type[NormReceiver]) -> None:
    host, machine = listening(kind, senders=2)
    for node in (1, 2):
        for message in MessageBuilder(bytes(16_000), node=node).whole()[:80]:
            host.deliver(message, GROUP, GROUP, 0.0)
    host.deliver(MessageBuilder(bytes(800), node=3).data(0, 0), GROUP, GROUP, host.now)
    assert [sender.node for sender in machine.senders()] in ([1, 2], [2, 1])
    assert machine.counts()["ignored"] == 1


def test_a_silent_sender_makes_room() -> None:
    host, machine = listening(NormReceiver, senders=1)
    for message in MessageBuilder(bytes(16_000), node=1).whole():
        host.deliver(message, GROUP, GROUP, 0.0)
    while machine.deadline < inf:
        host.turn(machine.deadline)
    host.deliver(MessageBuilder(bytes(800), node=3).data(0, 0), GROUP, GROUP, host.now)
    assert [sender.node for sender in machine.senders()] == [3]


@pytest.mark.parametrize("kind", [NormReceiver, FastNormReceiver])
@pytest.mark.parametrize("nodes", [(1,), (1, 2)])
def test_the_application_can_abandon_an_object(kind: type[NormReceiver], nodes: tuple[int, ...]) -> None:
    host, machine = listening(kind)
    builders = {node: MessageBuilder(bytes(1600), node=node) for node in nodes}
    for builder in builders.values():
        for message in builder.whole(0)[:-4]:
            host.deliver(message, GROUP, GROUP, host.now)
    host.call(machine.abandon, 1, 0, "no room")
    host.call(machine.abandon, 1, 0, "no room")
    host.call(machine.abandon, 3, 0, "unknown")
    assert [event for event in host.events if isinstance(event, ObjectAborted)] == [ObjectAborted(1, 0, "no room")]
    for builder in builders.values():
        for message in builder.whole(1):
            host.deliver(message, GROUP, GROUP, host.now)
    assert {(event.sender, event.object_id) for event in host.events if isinstance(event, ObjectReceived)} == {
        (node, 1) for node in nodes
    }
