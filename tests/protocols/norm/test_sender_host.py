"""A sender is known by its id and the host its messages come from; the first bytes show what is not worth decoding."""

from collections.abc import Iterable

import pytest

from experiments.contract.fake_host import FakeHost
from protocols.events import NodeClash, ObjectAborted, ObjectReceived, ObjectsAborted, SenderReset
from protocols.machine import Address, Message
from protocols.norm.messages import Ack, DataRun, Flush, Nack, NormMessage
from protocols.norm.requests import Item, Request
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender_state import NEW_SENDER
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import GROUP, MessageBuilder, SenderHarness, quick

GOOD, BAD = ("10.0.0.1", 6003), ("10.0.0.66", 6003)
LONG = bytes(40 * 800)
"""Content of more messages than those of a new sender."""


def listening() -> tuple[FakeHost, NormBatchReceiver]:
    host = FakeHost("listener")
    machine = NormBatchReceiver(host, quick(), 9, GROUP)
    host.run(machine)
    return host, machine


def hear(host: FakeHost, source: Address, messages: Iterable[Message]) -> None:
    for message in messages:
        host.deliver(message, source, GROUP, host.now)


def received(host: FakeHost) -> list[int]:
    return [event.object_id for event in host.events if isinstance(event, ObjectReceived)]


def resets(host: FakeHost) -> int:
    return sum(isinstance(event, SenderReset) for event in host.events)


def forged(builder: MessageBuilder) -> list[NormMessage]:
    """Return messages in the name of the sender that would each end its transfer."""
    other = MessageBuilder(LONG, node=1, instance=2)
    wrong = MessageBuilder(bytes(len(LONG)), node=1, sequence=builder.sequence)
    flush = Flush(builder.origin, builder.sequence + 1, builder.fti.fec_id, 300, 0, 0)
    return [other.data(0, 0), other.probe(), builder.squelch(1, 0), flush, *wrong.whole()[-4:]]


def test_messages_in_the_name_of_a_sender_that_is_heard_change_nothing_if_they_are_of_another_host() -> None:
    host, machine = listening()
    honest = MessageBuilder(LONG, node=1)
    messages = honest.whole()
    for number, message in enumerate(messages):
        host.deliver(message, GOOD, GROUP, host.now)
        if number >= NEW_SENDER:
            hear(host, BAD, forged(honest)[number % 8 :][:1])
    hear(host, GOOD, [honest.flush()])
    assert received(host) == [0]
    assert resets(host) == 0
    assert machine.counts()["data_received"] == len(messages) + 1
    assert machine.counts()["ignored"] == len(messages) - NEW_SENDER


def test_the_port_does_not_matter_so_a_restarted_sender_is_followed() -> None:
    host, _ = listening()
    hear(host, GOOD, MessageBuilder(LONG, node=1).whole()[:-4])
    hear(host, (GOOD[0], 7000), MessageBuilder(LONG, node=1, instance=2).whole())
    assert resets(host) == 1
    assert received(host) == [0]


def clashes(host: FakeHost) -> list[NodeClash]:
    return [event for event in host.events if isinstance(event, NodeClash)]


@pytest.mark.parametrize("programs", [2, 3])
def test_of_senders_with_one_id_on_one_host_the_last_is_followed_and_the_clash_is_reported_once(programs: int) -> None:
    host, machine = listening()
    sending = [MessageBuilder(LONG, node=1, instance=number).whole() for number in range(programs)]
    for messages in zip(*sending, strict=True):
        for number, message in enumerate(messages):
            host.deliver(message, (GOOD[0], 7000 + number), GROUP, host.now)
    assert received(host) == [0]
    assert resets(host) == programs - 1
    assert clashes(host) == [NodeClash(1, GOOD[0])]
    assert machine.counts()["ignored"] == (len(sending[0]) - 1) * (programs - 1)


def test_a_sender_whose_id_another_of_its_host_had_meanwhile_is_followed_again_when_that_is_silent() -> None:
    host, _ = listening()
    first, second = (MessageBuilder(bytes(1000), node=1, instance=number) for number in (1, 2))
    hear(host, GOOD, [first.probe()])
    hear(host, (GOOD[0], 7000), [second.probe()])
    hear(host, GOOD, first.whole())
    assert not received(host)
    host.turn(host.now + 1.0)
    hear(host, GOOD, first.whole())
    assert received(host) == [0]


@pytest.mark.parametrize("few", [1, 5])
def test_a_few_messages_forged_from_another_port_of_its_host_keep_a_sender_off_for_a_few_messages(few: int) -> None:
    host, machine = listening()
    honest = MessageBuilder(LONG, node=1)
    messages = honest.whole()
    hear(host, GOOD, messages[:20])
    other = MessageBuilder(LONG, node=1, instance=2)
    hear(host, (GOOD[0], 7000), other.whole()[:few])
    hear(host, GOOD, messages[20:])
    assert machine.counts()["ignored"] == 16 + 8 * few
    assert resets(host) == 2


def test_a_few_forged_messages_before_the_sender_begins_are_outvoted_at_once() -> None:
    host, _ = listening()
    hear(host, BAD, MessageBuilder(bytes(len(LONG)), node=1, instance=2).whole()[:3])
    honest = MessageBuilder(LONG, node=1)
    hear(host, GOOD, [honest.probe() for _ in range(3)])
    assert resets(host) == 0
    hear(host, GOOD, [*honest.whole(), honest.flush()])
    assert resets(host) == 1, "theirs was another instance"
    assert received(host) == [0]


def test_a_sender_that_was_silent_for_an_activity_period_may_go_on_from_another_host() -> None:
    host, machine = listening()
    honest = MessageBuilder(LONG, node=1)
    messages = honest.whole()
    hear(host, GOOD, messages[:100])
    host.turn(host.now + 0.5)
    hear(host, BAD, messages[100:101])
    assert machine.counts()["ignored"] == 1
    host.turn(host.now + 1.0)
    hear(host, BAD, messages[100:])
    assert received(host) == [0]
    assert resets(host) == 0


def test_a_run_of_another_host_is_ignored() -> None:
    host, machine = listening()
    honest, codec = MessageBuilder(LONG, node=1), NormCodec()
    messages = honest.whole()
    hear(host, GOOD, messages[:100])
    packets = [codec.encode(message) for message in messages[100:104]]
    codec.decode(packets[0])
    run = codec.decode_run(b"".join(packets), 0, len(packets[0]))
    assert isinstance(run, DataRun)
    host.call(machine.receive_run, run, BAD, GROUP)
    assert machine.counts()["data_received"] == 100
    host.call(machine.receive_run, run, GOOD, GROUP)
    assert machine.counts()["data_received"] == 100 + run.packets


def test_a_window_of_objects_of_which_nothing_came_is_given_up_in_one_event() -> None:
    host, machine = listening()
    honest = MessageBuilder(bytes(800), node=1)
    hear(host, GOOD, [honest.data(0, 0)])
    hear(host, GOOD, [honest.flush(20), MessageBuilder(bytes(800), node=1, instance=2).data(0, 0)])
    told = [event for event in host.events if isinstance(event, (ObjectAborted, ObjectsAborted))]
    window = quick().window
    assert [type(event) for event in told] == [ObjectAborted, *[ObjectsAborted] * (len(told) - 1)]
    assert sum(event.count for event in told if isinstance(event, ObjectsAborted)) == 20
    assert machine.counts()["objects_aborted"] == 21 <= window


# -- before a packet is decoded ------------------------------------------------------------------------------------------


def feedback(node: int = 1, instance: int = 1, *, ack: bool = False) -> bytes:
    if ack:
        return NormCodec().encode(Ack(7, 0, node, instance, 1, 0, 1, 0))
    return NormCodec().encode(Nack(7, 0, node, instance, 1, 0, (Request(1, 1, (Item(5, 0, 0, 3),)),)))


@pytest.mark.parametrize("ack", [False, True])
def test_a_receiver_decodes_feedback_to_a_sender_that_it_is_about_to_answer_itself(*, ack: bool) -> None:
    host, machine = listening()
    honest = MessageBuilder(LONG, node=1)
    hear(host, GOOD, honest.whole()[:8])
    assert not machine.is_worth_decoding(feedback(ack=ack), BAD, host.now), "nothing is missing, and no probe is to be answered"
    hear(host, GOOD, [honest.probe()] if ack else [honest.flush()])
    assert machine.is_worth_decoding(feedback(ack=ack), BAD, host.now)
    assert not machine.is_worth_decoding(feedback(2, ack=ack), BAD, host.now)
    assert not machine.is_worth_decoding(feedback(instance=2, ack=ack), BAD, host.now)
    assert not machine.is_worth_decoding(feedback(ack=ack) + bytes(8192), BAD, host.now)


def test_a_receiver_decodes_the_messages_of_senders_it_would_listen_to() -> None:
    host, machine = listening()
    codec, honest = NormCodec(), MessageBuilder(LONG, node=1)
    messages = honest.whole()
    hear(host, GOOD, messages[:100])
    following = codec.encode(messages[100])
    assert machine.is_worth_decoding(following, GOOD, host.now)
    assert not machine.is_worth_decoding(following, BAD, host.now)
    packets = [codec.encode(MessageBuilder(bytes(800), node=node).data(0, 0)) for node in range(100, 200)]
    assert machine.is_worth_decoding(packets[-1], BAD, host.now)
    for packet in packets:
        host.deliver(codec.decode(packet), BAD, GROUP, host.now)
    assert not machine.is_worth_decoding(packets[-1], BAD, host.now), "its address has brought too many senders"
    assert machine.is_worth_decoding(b"", BAD, host.now), "malformed bytes are the codec's business"


def test_a_sender_decodes_the_feedback_it_serves() -> None:
    sender = SenderHarness(rate=1e6, grtt=0.01, parity=0, repair_share=0.25)
    sender.submit(4_000_000)
    sender.host.turn(0.05)
    machine, now = sender.machine, sender.host.now
    node, instance = machine._factory.origin.source_id, machine._factory.origin.instance_id
    own = feedback(node, instance)
    assert machine.is_worth_decoding(own, BAD, now)
    assert machine.is_worth_decoding(feedback(node, instance, ack=True), BAD, now)
    assert not machine.is_worth_decoding(feedback(node + 1, instance), BAD, now)
    assert not machine.is_worth_decoding(feedback(node, instance + 1), BAD, now)
    assert not machine.is_worth_decoding(own + bytes(4000), BAD, now)
    assert not machine.is_worth_decoding(NormCodec().encode(MessageBuilder(LONG, node=5).data(0, 0)), BAD, now)
    message = NormCodec().decode(own)
    for _ in range(100):
        sender.host.deliver(message, BAD, GROUP, now)
    assert not machine.is_worth_decoding(own, BAD, now), "its address has sent more NACKs than are served"
    assert machine.is_worth_decoding(own, GOOD, now)
