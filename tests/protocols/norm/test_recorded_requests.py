"""Recorded requests of NRL NORM's senders beside content, with our receiver: watermarks, commands, repair advertisements."""

import pytest

from protocols.events import CommandReceived
from protocols.norm.messages import ACK_FLUSH, Ack, Application, Data, Flush, RepairAdv
from protocols.norm.sender_requests import content_of
from protocols.norm.stream_receiver import NormStreamReceiver
from tests.protocols.norm.scenes import ReceiverHarness
from tests.protocols.norm.test_recorded_sessions import recorded, sender_messages
from tests.support.captures import CAPTURES


def flush_acks(capture: str) -> list[Ack]:
    """Return the ACKs of FLUSH that NRL's receivers sent."""
    return [message for _, message in recorded(capture) if isinstance(message, Ack) and message.ack_type == ACK_FLUSH]


def has_watermark(capture: str) -> bool:
    return any(isinstance(message, Flush) and message.acking for _, message in sender_messages(capture))


WATERMARKS = [capture for capture in CAPTURES if has_watermark(capture)]


def replayed(capture: str, node: int) -> ReceiverHarness:
    """Return a receiver with this node id that received everything the sender sent."""
    receiver = ReceiverHarness(node=node, kind=NormStreamReceiver)
    for when, message in sender_messages(capture):
        receiver.run_until(when)
        receiver.receive(message, now=when)
    receiver.run_until(receiver.now + 1.0)
    return receiver


def test_the_captures_with_watermarks_are_known() -> None:
    assert {"watermark_ack", "watermark_ex", "watermark_missing_acker"} <= set(WATERMARKS)


@pytest.mark.parametrize("capture", WATERMARKS)
def test_a_listed_receiver_confirms_as_nrls_does(capture: str) -> None:
    for theirs in {ack.source_id: ack for ack in flush_acks(capture)}.values():
        ours = replayed(capture, theirs.source_id)
        named = [ack for ack in ours.acks if ack.ack_type == ACK_FLUSH]
        assert {ack.flushed for ack in named} == {theirs.flushed}
        assert {(ack.sender_id, ack.instance_id, ack.ack_id) for ack in named} == {(theirs.sender_id, theirs.instance_id, 0)}


@pytest.mark.parametrize("capture", WATERMARKS)
def test_a_receiver_that_is_not_listed_does_not_confirm(capture: str) -> None:
    ours = replayed(capture, 77)
    assert not [ack for ack in ours.acks if ack.ack_type == ACK_FLUSH]
    assert ours.received()


def test_the_content_of_a_request_is_given_to_the_application_and_its_answer_is_sent() -> None:
    receiver, asked = ReceiverHarness(node=2, kind=NormStreamReceiver), []

    def answer(sender: int, content: bytes) -> bytes:
        asked.append((sender, content))
        return b"pong"

    assert isinstance(receiver.machine, NormStreamReceiver)
    receiver.machine.answer_acks(answer)
    for when, message in sender_messages("watermark_ex"):
        receiver.run_until(when)
        receiver.receive(message, now=when)
    receiver.run_until(receiver.now + 1.0)
    # NRL does not clear the bytes that fill the last word.
    assert {(sender, content[:4], len(content)) for sender, content in asked} == {(1, b"ping", 6)}
    (ack,) = [ack for ack in receiver.acks if ack.ack_type == ACK_FLUSH]
    assert content_of(ack.extensions)[:4] == content_of(flush_acks("watermark_ex")[0].extensions)[:4] == b"pong"


def test_the_copies_of_a_command_are_reported_once() -> None:
    receiver = replayed("app_cmd", 2)
    copies = [message for _, message in sender_messages("app_cmd") if isinstance(message, Application)]
    assert len(copies) == 5
    assert receiver.events_of(CommandReceived) == [CommandReceived(1, b"application-command")]


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_recorded_repair_advertisement_suppresses_our_nack(is_heard: bool) -> None:
    session = sender_messages("unicast_nack")
    place = next(place for place, (_, message) in enumerate(session) if isinstance(message, RepairAdv) and message.requests)
    when, advertisement = session[place]
    receiver = ReceiverHarness()
    for sent, message in session[:place]:
        # NRL's receivers, whose NACKs this one does not hear, request more of this block than this one misses.
        if not isinstance(message, Data) or (message.block, message.symbol) != (0, 3):
            receiver.receive(message, now=sent)
    if is_heard:
        receiver.receive(advertisement, now=when)
    receiver.run_until(when + 0.3)
    assert bool(receiver.nacks) != is_heard
    assert receiver.machine.counts()["nacks_suppressed"] == is_heard
