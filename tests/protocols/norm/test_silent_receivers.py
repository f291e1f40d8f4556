"""Receivers that send no feedback: automatic parity repairs, and what it can't repair is given up."""

from typing import Any

import pytest

from experiments.contract.content import Bytes
from experiments.contract.losses import Crossing
from protocols.events import AcksCompleted, ObjectAborted, ObjectsAborted, SenderSilent
from protocols.machine import Content
from protocols.norm.messages import Ack, Data, Nack
from protocols.stream import StreamSettings
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.stream_scenes import StreamScene, messages


def losing(*symbols: int, key: int = 0, block: int = 0) -> Any:
    """Return a pattern that drops these symbols of a block on the way to every receiver."""

    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        return isinstance(message, Data) and (message.object_id, message.block) == (key, block) and message.symbol in symbols

    return drop


def feedback(scene: GroupScene | StreamScene) -> list[Any]:
    return [packet for name, host in scene.bench.hosts.items() if name != "sender" for packet in host.packets]


def test_automatic_parity_repairs_what_a_silent_receiver_lost() -> None:
    scene = GroupScene(2, losing(0, 1, 5), feedback="none", auto_parity=3, probing="active")
    keys = scene.submit(3000, 3000)
    scene.run()
    assert scene.received(10) == scene.received(11) == keys
    assert not [each for each in scene.crossings if isinstance(each.message, (Nack, Ack))]
    assert scene.receivers[10].counts()["nacks_sent"] == scene.receivers[10].counts()["nacks_suppressed"] == 0


def test_an_object_is_given_up_when_enough_others_have_begun() -> None:
    scene = GroupScene(1, losing(0, 1, 5, 6), feedback="none", auto_parity=3, silent_delay=2)
    keys = scene.submit(1000, 1000, 1000)
    scene.run(2.0)
    assert scene.received(10) == keys[1:]
    assert not scene.events_of(ObjectAborted, 10)
    scene.submit(1000)
    scene.run(2.0)
    assert scene.events_of(ObjectAborted, 10) == [ObjectAborted(1, 0, "outside the window")]
    assert scene.received(10) == [*keys[1:], 3]


def test_repairs_that_others_requested_are_used() -> None:
    scene = GroupScene(2, losing(0, 1, 5, 6), auto_parity=3, parity=4)
    scene.receivers[10].session.config = scene.config.__class__(feedback="none")
    scene.submit(1000)
    scene.run()
    assert scene.received(10) == scene.received(11) == [0]
    assert not [each for each in scene.crossings if each.source == "r10"]


def test_objects_are_given_up_when_the_sender_falls_silent() -> None:
    scene = GroupScene(1, losing(0, 1, 5, 6), feedback="none", auto_parity=3)
    scene.submit(1000)
    scene.run(60.0)
    assert scene.events_of(ObjectAborted, 10) == [ObjectAborted(1, 0, "missing, and not requested")]
    assert scene.events_of(SenderSilent, 10)
    assert not scene.events_of(ObjectsAborted, 10)


def test_a_silent_receiver_does_not_confirm() -> None:
    scene = GroupScene(1, feedback="none")
    (key,) = scene.submit(1000)
    scene.ask(key, 10)
    scene.run()
    assert scene.received(10) == [key]
    assert scene.events_of(AcksCompleted) == [AcksCompleted(key, (), (10,))]


@pytest.mark.parametrize("lost", [(0, 1), (0, 1, 2, 3, 4)])
def test_a_stream_goes_on_behind_what_automatic_parity_did_not_repair(lost: tuple[int, ...]) -> None:
    scene = StreamScene(
        drop=losing(*lost, block=2),
        settings=StreamSettings(buffer=1 << 16),
        feedback="none",
        auto_parity=3,
        silent_delay=1,
    )
    content = messages(60)
    scene.send(*content)
    (sink,) = scene.sinks
    whole = b"".join(content)
    if len(lost) <= 3:
        assert (bytes(sink.data), len(sink.parts)) == (whole, 1)
    else:
        first, second = sink.parts
        assert whole.startswith(first)
        assert whole.endswith(second)
        assert 0 < len(whole) - len(first) - len(second) < 10 * scene.config.segment
    assert sink.ended == "commit"


def test_a_silent_receiver_keeps_a_stream_behind_which_many_objects_begin() -> None:
    scene = StreamScene(feedback="none")
    scene.write(b"before", flush="active")
    for _ in range(12):
        scene.host.call(scene.sender.submit, Content(Bytes(b"content")))
        scene.run(0.2)
    scene.send(b"behind", flush="active")
    assert (scene.sinks[0].data, scene.sinks[0].ended) == (b"beforebehind", "commit")
