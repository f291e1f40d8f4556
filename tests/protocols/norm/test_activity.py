"""When a sender is silent, when it is active again, when it is forgotten, and who else uses a node's id."""

import pytest

from experiments.contract.content import pattern
from protocols.events import NodeClash, ObjectAborted, SenderActive, SenderHeard, SenderSilent
from protocols.norm.messages import Nack
from tests.protocols.norm.scenes import GROUP, MessageBuilder, ReceiverHarness, SenderHarness, items

CONTENT = pattern(800)
HERE, THERE, ELSEWHERE = ("10.0.0.1", 5001), ("10.0.0.2", 5001), ("10.0.0.3", 5001)


@pytest.mark.parametrize("periods", [3, 20])
def test_a_sender_is_silent_after_so_many_activity_periods_and_active_with_its_next_message(periods: int) -> None:
    made, receiver = MessageBuilder(CONTENT), ReceiverHarness(rx_robust=periods)
    receiver.receive(*made.whole(), made.flush())
    receiver.run_until(periods - 0.5)
    assert not receiver.events_of(SenderSilent)
    receiver.run_until(periods + 1.5)
    assert receiver.events_of(SenderSilent) == [SenderSilent(1)]
    assert not receiver.events_of(SenderActive)
    receiver.receive(*made.whole(1), now=100.0)
    assert receiver.events_of(SenderActive) == [SenderActive(1)]
    receiver.receive(*made.whole(2), now=100.5)
    assert len(receiver.events_of(SenderActive)) == 1


def test_a_forgotten_sender_gives_up_its_objects_and_is_new_with_its_next_message() -> None:
    made, receiver = MessageBuilder(pattern(1600)), ReceiverHarness()
    receiver.receive(*made.block(0, without=(2,)), *made.block(1))
    assert receiver.host.call(receiver.machine.forget_sender, 1)
    assert not receiver.host.call(receiver.machine.forget_sender, 1)
    assert [event.object_id for event in receiver.events_of(ObjectAborted)] == [0]
    receiver.run_until(5.0)
    assert not receiver.nacks
    receiver.receive(*made.whole(1))
    assert len(receiver.events_of(SenderHeard)) == 2
    assert receiver.received() == [1]
    assert receiver.machine.counts()["data_received"] == 31


def test_another_host_with_the_id_of_a_known_sender_is_reported_once_and_ignored() -> None:
    made, receiver = MessageBuilder(CONTENT), ReceiverHarness()
    for _ in range(10):
        for message in made.whole(made.sequence // 8):
            receiver.host.deliver(message, HERE, GROUP, receiver.now)
    other = MessageBuilder(CONTENT, instance=2)
    for message in other.whole(10):
        receiver.host.deliver(message, THERE, GROUP, receiver.now)
    assert receiver.events_of(NodeClash) == [NodeClash(1, "10.0.0.2")]
    assert len(receiver.received()) == 10


def test_a_receiver_reports_hosts_with_its_own_id_each_once() -> None:
    receiver = ReceiverHarness(node=9)
    for source in (HERE, HERE, THERE):
        receiver.host.deliver(Nack(9, 0, 1, 1, 0, 0, (items((0, 0, 3)),)), source, GROUP, receiver.now)
    receiver.host.deliver(MessageBuilder(CONTENT, node=9).data(0, 0), ELSEWHERE, GROUP, receiver.now)
    assert [event.source for event in receiver.events_of(NodeClash)] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert {event.node for event in receiver.events_of(NodeClash)} == {9}


def test_a_sender_reports_another_sender_with_its_id_and_no_more_hosts_than_it_remembers() -> None:
    sender = SenderHarness()
    made = MessageBuilder(CONTENT)
    for number in range(40):
        sender.host.deliver(made.data(0, 0), (f"10.0.0.{number}", 5001), GROUP, sender.now)
        sender.host.deliver(made.flush(), (f"10.0.0.{number}", 5001), GROUP, sender.now)
    assert [event.source for event in sender.events_of(NodeClash)] == [f"10.0.0.{number}" for number in range(16)]
    sender.host.deliver(MessageBuilder(CONTENT, node=2).data(0, 0), THERE, GROUP, sender.now)
    assert len(sender.events_of(NodeClash)) == 16
