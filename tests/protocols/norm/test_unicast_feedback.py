"""Feedback to the sender alone (RFC 5740 5.3), and CMD(REPAIR_ADV), by which the sender suppresses that of others (5.4.4)."""

from typing import Any

import pytest

from experiments.contract.losses import Crossing
from protocols.norm.congestion.states import FLAG_CLR
from protocols.norm.messages import Ack, Data, Flush, Nack, Probe, RepairAdv
from protocols.norm.repair_requests import requested_repairs
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.scenes import SenderHarness, items, ranges


def losing(*symbols: int) -> Any:
    """Return a pattern that drops these symbols of the first block on the way to every receiver, the first time."""

    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        return isinstance(message, Data) and not message.repair and message.block == 0 and message.symbol in symbols

    return drop


def test_nacks_and_acks_go_to_the_sender_alone_and_everything_is_repaired() -> None:
    scene = GroupScene(4, losing(2, 3), feedback="unicast", probing="active")
    (key,) = scene.submit(3000)
    scene.ask(key, *scene.nodes)
    scene.run()
    feedback = [each for each in scene.crossings if isinstance(each.message, (Nack, Ack))]
    assert {each.receiver for each in feedback} == {"sender"}
    assert {type(each.message) for each in feedback} == {Nack, Ack}
    assert all(scene.received(node) == [key] for node in scene.nodes)


def test_a_repair_advertisement_suppresses_the_nacks_of_others() -> None:
    scene = GroupScene(40, losing(2, 3), feedback="unicast", gsize=50, backoff=4)
    scene.submit(3000)
    scene.run()
    (advertised, *_) = scene.messages_of(RepairAdv)
    assert requested_repairs(advertised.requests, 5).units() == [((0, 0), 0b11 << 8)]
    counts = [receiver.counts() for receiver in scene.receivers.values()]
    sent, suppressed = (sum(count[name] for count in counts) for name in ("nacks_sent", "nacks_suppressed"))
    assert sent < 10
    assert suppressed >= 30
    assert all(scene.received(node) == [0] for node in scene.nodes)


def test_a_repair_advertisement_suppresses_the_answers_of_others_to_a_probe() -> None:
    scene = GroupScene(40, feedback="unicast", gsize=50, probing="active", probe_min=100.0, probe_max=100.0)
    scene.run(2.0)
    # To nothing else than the probe at the start.
    assert 0 < len([each for each in scene.crossings if isinstance(each.message, Ack)]) < 10


def test_a_repair_advertisement_has_the_rate_that_suppresses_the_answers_of_others() -> None:
    scene = GroupScene(20, feedback="unicast", gsize=50, congestion="norm", probing="active")
    scene.submit(30_000)
    scene.run()
    advertised = scene.messages_of(RepairAdv)
    assert advertised
    assert all(message.cc is not None and not message.cc.flags & FLAG_CLR for message in advertised)
    assert all(scene.received(node) == [0] for node in scene.nodes)
    assert {each.receiver for each in scene.crossings if isinstance(each.message, Ack)} == {"sender"}


@pytest.mark.parametrize("congestion", ["none", "norm"])
def test_probing_ends_with_the_transmission_although_answers_to_probes_are_advertised(congestion: str) -> None:
    scene = GroupScene(4, feedback="unicast", congestion=congestion, probing="active", probe_min=0.1, probe_max=0.1)
    scene.submit(3000)
    scene.run(5.0)
    probes = len(scene.messages_of(Probe))
    assert scene.messages_of(RepairAdv)
    scene.run(20.0)
    assert len(scene.messages_of(Probe)) == probes
    # It goes on with the next object.
    scene.submit(3000)
    scene.run(40.0)
    assert len(scene.messages_of(Probe)) > probes


def test_multicast_feedback_is_not_advertised() -> None:
    scene = GroupScene(4, losing(2, 3), probing="active")
    scene.submit(3000)
    scene.run()
    assert not scene.messages_of(RepairAdv)


def test_without_back_off_nothing_is_advertised() -> None:
    scene = GroupScene(4, losing(2, 3), feedback="unicast", backoff=0)
    scene.submit(3000)
    scene.run()
    assert not scene.messages_of(RepairAdv)
    assert all(scene.received(node) == [0] for node in scene.nodes)


@pytest.mark.parametrize("fec", [5, 129])
def test_it_names_what_will_be_sent(fec: int) -> None:
    sender = SenderHarness(fec=fec, parity=4)
    sender.submit(2400, 2400, info=b"name")
    sender.run_until(5.0, lambda: bool(sender.messages_of(Flush)))
    asked = [items((0, 1, 8), (0, 1, 9), fec=fec), ranges((1, 0, 0), (1, 0, 3), fec=fec)]
    nack = Nack(9, 0, 1, 7, 0, 0, tuple(asked))
    sender.host.deliver(nack, "r", "sender", sender.now)
    sender.run_until(sender.now + 0.01)
    (message,) = sender.messages_of(RepairAdv)
    assert requested_repairs(message.requests, fec).units() == [((0, 1), 0b11 << 8), ((1, 0), 0b1111)]
    sender.run_until(sender.now + 5.0)
    repaired = [(data.object_id, data.block, data.symbol) for data in sender.messages_of(Data) if data.repair]
    assert repaired == [(0, 1, 8), (0, 1, 9), (1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 0, 3)]


def test_what_has_no_room_is_marked() -> None:
    sender = SenderHarness(parity=0)
    sender.submit(80_000)
    sender.run_until(5.0, lambda: bool(sender.messages_of(Flush)))
    for first in range(0, 90, 10):
        asked = items(*[(0, block, 3) for block in range(first, first + 10)])
        sender.host.deliver(Nack(9, 0, 1, 7, 0, 0, (asked,)), "r", "sender", sender.now)
    sender.run_until(sender.now + 0.01)
    message = sender.messages_of(RepairAdv)[-1]
    assert message.flags == 1
    assert 0 < len(requested_repairs(message.requests, 5).units()) < 90
