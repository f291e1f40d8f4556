"""Positive acknowledgement (RFC 5740 5.5.3): who confirms what, who is asked how often, and what is reported at the sender."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from experiments.contract.content import pattern
from experiments.contract.losses import Crossing, any_of, everything_to, numbered
from protocols.acknowledgement import AckReceiver, AckRequest, AckSender
from protocols.errors import UsageError
from protocols.events import AcksCompleted, FlushCompleted, NodeAcknowledged, NodeUnacknowledged
from protocols.norm.messages import ACK_FLUSH, ANY_NODE, FLAG_REPAIR, Ack, Data
from protocols.norm.requests import Item
from protocols.norm.sender_requests import SenderRequests
from protocols.stream import StreamSettings
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.scenes import GRTT, MessageBuilder, ReceiverHarness
from tests.protocols.norm.stream_scenes import StreamScene, dropping, messages
from tests.support.streams import Collected


def outcome(scene: GroupScene | StreamScene) -> list[AcksCompleted]:
    return [event for event in scene.host.events if isinstance(event, AcksCompleted)]


def test_the_machines_have_the_methods_of_the_contract() -> None:
    scene = GroupScene()
    assert isinstance(scene.sender, AckSender)
    assert isinstance(scene.receivers[10], AckReceiver)


def test_receivers_that_have_everything_confirm_it_within_a_grtt() -> None:
    scene = GroupScene()
    (key,) = scene.submit(3000)
    scene.ask(key, 10, 11)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10, 11), ())]
    assert {event.node for event in scene.events_of(NodeAcknowledged)} == {10, 11}
    (flush,) = scene.acking_flushes()
    assert flush.acking == (10, 11)
    sent = next(each.now for each in scene.crossings if each.message is flush)
    acks = [each for each in scene.crossings if isinstance(each.message, Ack) and each.receiver == "sender"]
    assert all(sent < each.now < sent + 0.004 + GRTT for each in acks)
    assert {ack.message.ack_type for ack in acks} == {ACK_FLUSH}  # type: ignore[attr-defined]


def test_the_end_of_transmission_is_announced_behind_the_acks_or_not_at_all() -> None:
    for replaces in (False, True):
        scene = GroupScene()
        (key,) = scene.submit(3000)
        scene.ask(key, 10, 11, replaces_flush=replaces)
        scene.run()
        events = [event for event in scene.host.events if isinstance(event, (AcksCompleted, FlushCompleted))]
        assert [type(event) for event in events] == [AcksCompleted, FlushCompleted]
        assert scene.sender.counts()["flushes_sent"] == (0 if replaces else scene.config.robust)


def test_a_node_that_is_not_there_is_asked_as_often_as_configured_and_reported_as_missing() -> None:
    scene = GroupScene(1)
    (key,) = scene.submit(500)
    scene.ask(key, 10, 99)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), (99,))]
    assert scene.events_of(NodeUnacknowledged) == [NodeUnacknowledged(key, 99)]
    asked = [flush.acking for flush in scene.acking_flushes()]
    assert asked == [(10, 99)] + [(99,)] * (scene.config.robust - 1)
    times = [each.now for each in scene.crossings if each.receiver == "r10" and each.message in scene.acking_flushes()]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == pytest.approx([2 * GRTT] * (scene.config.robust - 1), abs=0.001)


def test_a_receiver_that_misses_something_requests_it_and_confirms_then() -> None:
    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        return isinstance(message, Data) and crossing.receiver == "r11" and message.symbol in (2, 5) and not message.repair

    scene = GroupScene(drop=drop, parity=0)
    (key,) = scene.submit(3000)
    scene.ask(key, 10, 11)
    scene.run()
    assert scene.received(11) == [key]
    assert outcome(scene) == [AcksCompleted(key, (10, 11), ())]


def test_the_count_of_requests_begins_anew_with_repairs() -> None:
    # More rounds than the robust factor are needed: in each, the repair is lost again.
    scene = GroupScene(1, numbered("data", range(5, 5 + 6), "r10"), parity=0, robust=2)
    (key,) = scene.submit(500)
    scene.ask(key, 10)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), ())]
    assert len(scene.acking_flushes()) > 2


def test_lost_requests_and_lost_acks_are_repeated() -> None:
    lost: Callable[..., Any] = any_of(numbered("flush", {1, 2}, "r10"), numbered("ack", {1}, "sender"))
    scene = GroupScene(1, lost, robust=6)
    (key,) = scene.submit(500)
    scene.ask(key, 10)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), ())]
    assert len(scene.acking_flushes()) == 4


def test_watermarks_are_served_in_order_while_content_goes_on() -> None:
    scene = GroupScene(rate=1e5)
    keys = scene.submit(4000, 4000, 4000)
    for key in keys:
        scene.ask(key, 10, 11)
    scene.run()
    assert [event.object_id for event in outcome(scene)] == keys
    first = next(each.now for each in scene.crossings if each.message in scene.acking_flushes())
    last = max(each.now for each in scene.crossings if isinstance(each.message, Data))
    assert first < last


def test_a_request_for_an_object_that_was_sent_long_ago_is_served_at_once() -> None:
    scene = GroupScene()
    keys = scene.submit(500, 500)
    scene.run()
    scene.ask(keys[0], 10, 11)
    scene.run()
    assert outcome(scene) == [AcksCompleted(keys[0], (10, 11), ())]


def test_a_listed_receiver_that_has_not_joined_joins_at_the_object() -> None:
    beginning = numbered("data", range(1, 41), "r11")
    scene = GroupScene(drop=beginning, robust=8)
    (key,) = scene.submit(3000)
    scene.ask(key, 10, 11)
    scene.run()
    assert scene.received(11) == [key]
    assert outcome(scene) == [AcksCompleted(key, (10, 11), ())]


def test_everybody_confirms_without_being_named_and_the_expected_number_suffices() -> None:
    scene = GroupScene(5)
    (key,) = scene.submit(3000)
    scene.ask(key, everybody=True, expected=5, replaces_flush=True)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10, 11, 12, 13, 14), ())]
    assert all(ANY_NODE in flush.acking for flush in scene.acking_flushes())
    assert len(scene.acking_flushes()) < 4


def test_with_nobody_there_everybody_ends_after_as_many_requests_as_configured() -> None:
    scene = GroupScene(2, any_of(everything_to("r10"), everything_to("r11")))
    (key,) = scene.submit(3000)
    scene.ask(key, everybody=True)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (), ())]
    assert len(scene.acking_flushes()) == scene.config.robust


def test_of_everybody_those_heard_before_have_to_confirm() -> None:
    scene = GroupScene(2, everything_to("r11", since=3.0), probing="active", probe_min=0.1, probe_max=0.1)
    scene.submit(3000)
    scene.run(2.5)
    (key,) = scene.submit(3000)
    scene.run(1.0)
    scene.ask(key, everybody=True)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), (11,))]


def test_a_receiver_answers_requests_to_everybody_ever_less_often() -> None:
    scene = GroupScene(1, robust=20)
    (key,) = scene.submit(500)
    scene.ask(key, everybody=True)
    scene.run()
    # The first, and of the 19 requests behind it number 1, 2, 4, 8 and 16.
    assert len(scene.messages_of(Ack, "r10")) == 6


def test_application_data_goes_there_and_back() -> None:
    scene = GroupScene()
    asked: list[tuple[int, bytes]] = []

    def answer(sender: int, content: bytes) -> bytes | None:
        asked.append((sender, content))
        return None if len(asked) == 1 else b"pong"

    scene.receivers[10].answer_acks(answer)
    (key,) = scene.submit(500)
    scene.ask(key, 10, 11, content=b"ping")
    scene.run()
    # Two bytes of type and length, and the content, fill whole words.
    assert asked == [(1, b"ping\0\0")] * 2
    answers = {event.node: event.content for event in scene.events_of(NodeAcknowledged)}
    assert answers == {10: b"pong\0\0", 11: b""}


def test_an_object_that_is_lost_for_good_is_not_confirmed_but_a_later_one_is() -> None:
    scene = GroupScene()
    first, second = scene.submit(500), scene.submit(500)
    scene.bench["r11"].accepting = lambda offer: None if offer.object_id == 0 else scene.host.accepting(offer)
    scene.ask(first[0], 10, 11)
    scene.ask(second[0], 10, 11)
    scene.run()
    assert outcome(scene) == [AcksCompleted(0, (10,), (11,)), AcksCompleted(1, (10, 11), ())]


def test_a_cancelled_request_is_concluded_with_what_is_known() -> None:
    scene = GroupScene(1)
    (key,) = scene.submit(500)
    scene.ask(key, 10, 99)
    scene.run(0.1)
    scene.host.call(scene.sender.cancel_acks, key)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), (99,))]
    assert len(scene.acking_flushes()) < scene.config.robust


@pytest.mark.parametrize(
    ("fec", "fec_m", "block", "parity"), [(5, 8, 8, 4), (129, 8, 8, 4), (2, 8, 8, 4), (2, 16, 8, 4), (0, 8, 8, 0)]
)
def test_acks_name_the_point_with_every_code(fec: int, fec_m: int, block: int, parity: int) -> None:
    scene = GroupScene(fec=fec, fec_m=fec_m, block=block, parity=parity)
    keys = scene.submit(3050, 0)
    for key in keys:
        scene.ask(key, 10, 11)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10, 11), ()) for key in keys]


@pytest.mark.parametrize("drop", [dropping(), dropping((0, 3), (1, 2))], ids=["no loss", "loss"])
def test_what_was_written_of_a_stream_is_confirmed_while_it_goes_on(drop: Any) -> None:
    scene = StreamScene(drop=drop)
    content = messages(20)
    scene.write(*content, flush="passive")
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.run(2.0)
    assert outcome(scene) == [AcksCompleted(0, (10,), ())]
    assert bytes(scene.sinks[0].data) == b"".join(content)
    scene.write(*content, flush="passive")
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.writer.close()
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.run()
    assert outcome(scene) == [AcksCompleted(0, (10,), ())] * 3


def test_a_stream_is_confirmed_when_the_application_has_taken_it() -> None:
    sink = Collected(capacity=500)
    scene = StreamScene(sinks=[sink], robust=10)
    scene.write(*messages(20), flush="passive")
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.run(0.2)
    assert not outcome(scene)
    sink.capacity = None
    scene.bench["r1"].call(scene.receivers[0].resume_stream, 1, 0)
    scene.run()
    assert outcome(scene) == [AcksCompleted(0, (10,), ())]


def test_a_stream_with_a_gap_is_not_confirmed() -> None:
    scene = StreamScene(drop=dropping((0, 3), again=True), settings=StreamSettings(buffer=1, push=True), parity=0)
    for _ in range(10):
        scene.write(*messages(8), flush="passive")
        scene.run(0.02)
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.run()
    assert len(scene.sinks[0].parts) > 1
    assert outcome(scene) == [AcksCompleted(0, (), (10,))]
    scene.write(*messages(1), flush="passive")
    scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))
    scene.run()
    assert outcome(scene)[1:] == [AcksCompleted(0, (10,), ())]


def test_what_can_not_be_asked_is_refused() -> None:
    scene = GroupScene()
    scene.submit(500)
    for wrong, why in [
        ((7, AckRequest((10,))), "object 7"),
        ((0, AckRequest((0,))), "node 0"),
        ((0, AckRequest((ANY_NODE,))), "node 4294967295"),
        ((0, AckRequest((10,), content=bytes(961))), "961 bytes"),
    ]:
        with pytest.raises(UsageError, match=why):
            scene.host.call(scene.sender.require_acks, *wrong)
    scene = StreamScene()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="nothing was written"):
        scene.host.call(scene.sender.require_acks, 0, AckRequest((10,)))


def test_acks_that_were_not_asked_for_change_nothing() -> None:
    scene = GroupScene(1)
    (key,) = scene.submit(500)
    scene.ask(key, 10, 99)
    scene.run(0.1)
    (ack,) = scene.messages_of(Ack, "r10")
    assert ack.flushed is not None
    others = [
        Ack(98, 0, 1, 1, ACK_FLUSH, 0, 0, 0, flushed=ack.flushed),
        Ack(99, 0, 1, 1, ACK_FLUSH, 0, 0, 0, flushed=ack.flushed._replace(block=7)),
        Ack(99, 0, 1, 1, ACK_FLUSH, 0, 0, 0, b"garbage"),
        Ack(99, 0, 1, 1, 17, 0, 0, 0, flushed=ack.flushed),
        ack,
    ]
    for other in others:
        scene.host.deliver(other, "r", scene.sender._group, scene.bench.now)
    scene.run()
    assert outcome(scene) == [AcksCompleted(key, (10,), (99,))]


def test_a_cancelled_request_ends_another_for_the_same_object_that_nobody_has_to_answer() -> None:
    scene = GroupScene(1)
    (key,) = scene.submit(500)
    scene.ask(key, 99)
    scene.host.call(scene.sender.require_acks, key, AckRequest())
    scene.run(0.1)
    scene.host.call(scene.sender.cancel_acks, key)
    assert outcome(scene) == [AcksCompleted(key, (), (99,)), AcksCompleted(key, (), ())]


@pytest.mark.parametrize("symbol", [0, 3, 6])
def test_a_watermark_within_a_block_is_confirmed_before_the_rest_of_the_block_is_sent(symbol: int) -> None:
    made, receiver = MessageBuilder(pattern(1600)), ReceiverHarness()
    receiver.receive(*[made.data(0, number) for number in range(symbol + 1)])
    receiver.receive(replace(made.flush(), block=0, symbol=symbol, block_length=8, acking=(9,)))
    receiver.run_until(1.0)
    assert [ack.flushed for ack in receiver.acks] == [Item(5, 0, 0, symbol, 8)]
    assert not receiver.nacks
    receiver.receive(*[made.data(0, number) for number in range(symbol + 1, 8)], *made.block(1))
    assert receiver.received() == [0]


def test_a_watermark_that_is_refused_says_nothing_about_an_equal_one_after_others() -> None:
    requests, made = SenderRequests(), MessageBuilder(pattern(1600))
    requests.lose(0)
    assert [requests.may_confirm(made.flush(key), 9) for key in (0, 0, 1, 0)] == [False, False, True, True]


def test_what_is_missing_before_a_watermark_within_a_block_is_requested_by_name_and_then_confirmed() -> None:
    made, receiver = MessageBuilder(pattern(1600)), ReceiverHarness()
    receiver.receive(*[made.data(0, number) for number in (0, 2, 3)])
    flush = replace(made.flush(), block=0, symbol=3, block_length=8, acking=(9,), sequence=3)
    receiver.receive(flush)
    receiver.run_until(1.0)
    assert {item for nack in receiver.nacks for request in nack.requests for item in request.items} == {Item(5, 0, 0, 1, 8)}
    receiver.receive(made.data(0, 1, flags=FLAG_REPAIR), flush)
    receiver.run_until(2.0)
    assert [ack.flushed for ack in receiver.acks] == [Item(5, 0, 0, 3, 8)]
