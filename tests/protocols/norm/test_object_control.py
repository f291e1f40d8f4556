"""Objects that an application cancels or sends again, and parameters it changes while a sender runs."""

import pytest

from experiments.contract.bench import Bench
from experiments.contract.content import Bytes, pattern
from experiments.contract.losses import randomly
from protocols.acknowledgement import AckRequest
from protocols.errors import ConfigError, UsageError
from protocols.events import FlushCompleted, ObjectAborted, ObjectPurged, ObjectReceived, ObjectSent
from protocols.machine import Content
from protocols.norm import NormCodec, NormReceiver, NormSender
from protocols.norm.messages import (
    ACK_FLUSH,
    FLAG_REPAIR,
    Ack,
    Application,
    Data,
    Flush,
    Info,
    Nack,
    RepairAdv,
    Squelch,
)
from protocols.norm.quantise import gsize_code
from protocols.norm.requests import (
    LEVEL_OBJECT,
    Item,
)
from protocols.stream import StreamSettings
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.scenes import GROUP, SenderHarness, items, quick


def test_a_cancelled_object_is_sent_no_more_and_its_requests_are_squelched() -> None:
    sender = SenderHarness()
    sender.submit(800, 800, 800)
    sender.run_until(0.0002)
    assert sender.host.call(sender.machine.cancel, 1)
    sender.run_until(0.02)
    assert {number for number, _, _ in sender.symbols()} == {0, 2}
    assert sender.events_of(ObjectAborted) == [ObjectAborted(1, 1, "cancelled")]
    sender.nack(items((1, 0, 0), level=LEVEL_OBJECT))
    sender.run_until(0.04)
    assert sender.messages_of(Squelch)[-1].invalid == (1,)


def test_an_object_is_cancelled_while_it_is_sent_and_the_rate_goes_to_the_next() -> None:
    sender = SenderHarness(rate=1e5)
    sender.submit(1600, 100)
    sender.run_until(0.005)
    assert 0 < len(sender.symbols()) < 16
    sender.host.call(sender.machine.cancel, 0)
    sender.run_until(0.02)
    assert [number for number, _, _ in sender.symbols()][-1] == 1


def test_the_last_object_is_squelched_unrequested_since_nothing_behind_it_makes_receivers_ask() -> None:
    sender = SenderHarness()
    sender.submit(800)
    sender.run_until(0.0002)
    sender.host.call(sender.machine.cancel, 0)
    sender.run_until(1.0, lambda: bool(sender.events_of(FlushCompleted)))
    assert sender.messages_of(Squelch)[0].invalid == (0,)
    assert not sender.messages_of(Flush)


def test_objects_that_wait_for_room_and_streams_can_be_cancelled_and_room_goes_to_the_next() -> None:
    sender = SenderHarness(cache_min=1, cache_max=1)
    sender.submit(800, 800, 800)
    assert sender.host.call(sender.machine.cancel, 1)
    sender.run_until(2.0)
    assert {number for number, _, _ in sender.symbols()} == {0, 2}
    stream = sender.host.call(sender.machine.open_stream, StreamSettings(4000))
    assert sender.host.call(sender.machine.cancel, stream)
    with pytest.raises(UsageError, match="is not an open stream"):
        sender.host.call(sender.machine.write_stream, stream, b"x", ())


def test_what_is_not_known_is_not_cancelled_and_not_sent_again() -> None:
    sender = SenderHarness()
    assert not sender.host.call(sender.machine.cancel, 0)
    assert not sender.host.call(sender.machine.requeue, 0)
    sender.submit(800)
    assert not sender.host.call(sender.machine.requeue, 0), "it is being sent"
    sender.host.call(sender.machine.cancel, 0)
    assert not sender.host.call(sender.machine.cancel, 0)
    assert sender.events_of(ObjectAborted) == [ObjectAborted(1, 0, "cancelled")]


def test_an_object_that_is_sent_again_comes_as_a_whole_with_its_information_and_not_as_a_repair() -> None:
    sender = SenderHarness()
    sender.submit(800, 300, info=b"name")
    sender.run_until(0.05)
    first = len(sender.sent)
    assert sender.host.call(sender.machine.requeue, 0)
    sender.run_until(0.1)
    again = [message for _, _, message in sender.sent[first:] if isinstance(message, (Data, Info))]
    assert [(type(message), message.object_id, message.flags & FLAG_REPAIR) for message in again] == [
        (Info, 0, 0),
        *[(Data, 0, 0)] * 8,
    ]
    assert [event.object_id for event in sender.events_of(ObjectSent)] == [0, 1, 0]
    sender.run_until(1.0, lambda: len(sender.events_of(FlushCompleted)) > 0)
    assert sender.messages_of(Flush)


def test_pending_repairs_of_an_object_that_is_sent_again_come_with_it_once() -> None:
    sender = SenderHarness()
    sender.submit(800)
    sender.run_until(0.05)
    first = len(sender.messages_of(Data))
    sender.nack(items((0, 0, 3)))
    sender.host.call(sender.machine.requeue, 0)
    sender.run_until(0.3)
    assert sender.symbols(first) == [(0, 0, symbol) for symbol in range(8)]


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_receiver_that_comes_late_gets_an_object_that_is_sent_again(loss: float) -> None:
    bench = Bench(["sender", "early", "late"], drop=randomly(loss, 3), codec=NormCodec())
    config = quick(robust=12)
    sender = NormSender(bench["sender"], config, 1, GROUP, 1)
    bench["sender"].run(sender)
    bench["early"].run(NormReceiver(bench["early"], config, 2, GROUP))
    bench["sender"].call(sender.submit, Content(Bytes(pattern(3000))))
    bench.run(over=lambda: any(isinstance(event, FlushCompleted) for event in bench["sender"].events))
    # The object of the only sender is known to be over, as more than a new sender's messages were sent.
    bench["late"].run(NormReceiver(bench["late"], config, 3, GROUP))
    bench["sender"].call(sender.requeue, 0)
    bench.run(until=bench.now + 5)
    for name in ("early", "late"):
        received = [event for event in bench[name].events if isinstance(event, ObjectReceived)]
        assert [event.object_id for event in received] == [0], name


def test_parameters_change_while_a_sender_runs() -> None:
    sender = SenderHarness(rate=1e5, cache_max=8)
    sender.submit(8000)
    sender.run_until(0.01)
    slow = len(sender.sent)
    sender.host.call(sender.machine.adjust, {"rate": 1e6, "backoff": 2, "gsize": 500, "robust": 2})
    sender.run_until(0.02)
    assert len(sender.sent) - slow > 4 * slow
    origin = sender.sent[-1][2].origin
    assert (origin.backoff, origin.gsize) == (2, gsize_code(500))
    sender.run_until(2.0, lambda: bool(sender.events_of(FlushCompleted)))
    assert len(sender.messages_of(Flush)) == 2


def test_commands_and_requests_for_acks_follow_a_robust_factor_that_was_changed() -> None:
    scene = GroupScene()
    scene.host.call(scene.sender.adjust, {"robust": 3})
    (key,) = scene.submit(500)
    scene.ask(key, 99)
    scene.host.call(scene.sender.send_command, b"stop", 0)
    scene.run()
    assert len(scene.acking_flushes()) == 3
    assert len(scene.messages_of(Application)) == 3


@pytest.mark.parametrize(("before", "after"), [(0, 4), (4, 0)])
def test_a_changed_back_off_decides_whether_unicast_requests_are_advertised(before: int, after: int) -> None:
    sender = SenderHarness(backoff=before)
    sender.submit(800)
    sender.run_until(0.1)
    sender.host.call(sender.machine.adjust, {"backoff": after})
    sender.host.deliver(Nack(9, 0, 1, 7, 0, 0, (items((0, 0, 1)),)), "receiver", "sender", 0.1)
    sender.run_until(0.2)
    assert bool(sender.messages_of(RepairAdv)) == bool(after)


def test_smaller_bounds_of_the_window_purge_objects_when_room_is_needed() -> None:
    sender = SenderHarness(cache_min=4, cache_max=8, flow=0.1)
    sender.submit(100, 100, 100, 100)
    sender.run_until(0.5)
    sender.host.call(sender.machine.adjust, {"cache_min": 1, "cache_max": 2})
    sender.submit(100)
    sender.run_until(1.5)
    assert [event.object_id for event in sender.events_of(ObjectPurged)] == [0, 1, 2]


def test_other_parameters_and_wrong_values_are_refused_and_nothing_changes() -> None:
    sender = SenderHarness()
    call, adjust = sender.host.call, sender.machine.adjust
    with pytest.raises(UsageError, match=r"segment: can't be changed while a sender runs; these can: rate, backoff"):
        call(adjust, {"rate": 5.0, "segment": 200})
    with pytest.raises(ConfigError, match=r"cache_min: 9 is not allowed; at most cache_max \(4\)"):
        call(adjust, {"cache_min": 9, "cache_max": 4})
    sender.submit(800)
    sender.run_until(0.01)
    assert len(sender.symbols()) == 8


def test_the_end_of_an_object_that_is_sent_again_is_announced_although_it_was_acknowledged() -> None:
    sender = SenderHarness()
    (key,) = sender.submit(800)
    sender.host.call(sender.machine.require_acks, key, AckRequest(nodes=(9,), replaces_flush=True))
    sender.run_until(0.1)
    asked = sender.messages_of(Flush)
    flushed = Item(5, key, asked[0].block, asked[0].symbol, asked[0].block_length)
    sender.host.deliver(Ack(9, 0, 1, 7, ACK_FLUSH, 0, 0, 0, flushed=flushed), "r", GROUP, sender.now)
    sender.run_until(2.0)
    assert len(sender.messages_of(Flush)) == len(asked)
    assert sender.host.call(sender.machine.requeue, key)
    sender.run_until(4.0)
    assert len(sender.messages_of(Flush)) == len(asked) + sender.config.robust
