"""Commands of the application: CMD(APPLICATION), once or several times, reported once."""

import pytest

from experiments.contract.losses import numbered
from protocols.acknowledgement import CommandSender
from protocols.errors import UsageError
from protocols.events import CommandReceived, CommandSent
from protocols.norm.messages import Application, Data
from tests.protocols.norm.group_scenes import GroupScene
from tests.protocols.norm.scenes import GRTT


def test_a_command_is_sent_once_and_reported_at_each_receiver() -> None:
    scene = GroupScene()
    assert isinstance(scene.sender, CommandSender)
    number = scene.host.call(scene.sender.send_command, b"stop", 1)
    scene.run()
    assert scene.events_of(CommandSent) == [CommandSent(number)]
    assert [message.content for message in scene.messages_of(Application)] == [b"stop"]
    for node in scene.nodes:
        assert scene.events_of(CommandReceived, node) == [CommandReceived(1, b"stop")]


def test_a_robust_command_is_repeated_every_two_grtt_and_reported_once() -> None:
    scene = GroupScene(drop=numbered("application", {1, 3}, "r11"))
    number = scene.host.call(scene.sender.send_command, b"stop", 0)
    scene.run()
    copies = [each.now for each in scene.crossings if isinstance(each.message, Application) and each.receiver == "r10"]
    assert [later - copies[0] for later in copies] == pytest.approx([2 * GRTT * n for n in range(scene.config.robust)])
    assert scene.events_of(CommandSent) == [CommandSent(number)]
    for node in scene.nodes:
        assert scene.events_of(CommandReceived, node) == [CommandReceived(1, b"stop")]


def test_commands_are_sent_one_after_the_other_and_an_equal_one_later_is_another() -> None:
    scene = GroupScene()
    numbers = [scene.host.call(scene.sender.send_command, content, 2) for content in (b"a", b"b", b"a")]
    scene.run()
    assert numbers == [1, 2, 3]
    assert [message.content for message in scene.messages_of(Application)] == [b"a", b"a", b"b", b"b", b"a", b"a"]
    assert [event.content for event in scene.events_of(CommandReceived, 10)] == [b"a", b"b", b"a"]
    scene.host.call(scene.sender.send_command, b"a", 1)
    scene.run()
    assert len(scene.events_of(CommandReceived, 10)) == 4


def test_a_cancelled_command_is_not_sent_any_more() -> None:
    scene = GroupScene()
    first, second, third = (scene.host.call(scene.sender.send_command, content, 0) for content in (b"a", b"b", b"c"))
    scene.run(GRTT)
    assert scene.host.call(scene.sender.cancel_command, first)
    assert scene.host.call(scene.sender.cancel_command, third)
    scene.run()
    assert [message.content for message in scene.messages_of(Application)] == [b"a"] + [b"b"] * scene.config.robust
    assert scene.events_of(CommandSent) == [CommandSent(second)]
    assert not scene.host.call(scene.sender.cancel_command, second)


def test_commands_come_between_content_and_delay_it_only_by_themselves() -> None:
    scene = GroupScene(rate=1e5)
    scene.submit(20_000)
    scene.run(0.1)
    scene.host.call(scene.sender.send_command, b"stop", 0)
    scene.run()
    assert scene.received(10) == scene.received(11) == [0]
    times = [each.now for each in scene.crossings if isinstance(each.message, Application)]
    assert times[0] < max(each.now for each in scene.crossings if isinstance(each.message, Data))


def test_a_command_is_at_most_a_segment() -> None:
    scene = GroupScene()
    scene.host.call(scene.sender.send_command, bytes(100), 1)
    with pytest.raises(UsageError, match="a command of 101 bytes"):
        scene.host.call(scene.sender.send_command, bytes(101), 1)
