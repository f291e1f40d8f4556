"""The segments of data that an ACK releases, and of data that a machine or an application writes, are those of Linux."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.tcp_messages import CASES, Case, scenario
from experiments.running.run import run
from protocols.events import Event
from protocols.machine import Address, Message, Packet, Ports
from protocols.messaging import PublisherUnblocked
from sim.tcp.segment import Segment
from sim.watch import Watcher
from tests.sim.tcp.scenes import ENGINES, Scene, star
from tests.support.talkers import Talker

SIZE = 1000
FRAME = SIZE + 4
"""Bytes of such a message on the stream: two of them are more than a full segment of 1448 bytes, but not two."""


class Sizes(Watcher):
    """Notes the time and the bytes of data of each segment that a host sends."""

    def __init__(self, host: str) -> None:
        self._host = host
        self.sent_at: list[tuple[float, int]] = []

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Note a segment."""
        if host == self._host and isinstance(packet.message, Segment):
            self.sent_at.append((now, packet.message.octets))

    @property
    def sizes(self) -> list[int]:
        """The bytes of the segments with data, in the order of sending."""
        return [octets for _, octets in self.sent_at if octets]


class Reacting(Talker):
    """Calls `on_receive` for each message."""

    def __init__(self, ports: Ports, peer: Address | None = None) -> None:
        super().__init__(ports, peer)
        self.on_receive: Callable[[float], object] = _ignore

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        super().receive(message, source, to, now)
        self.on_receive(now)


def _ignore(what: object) -> None:
    del what


def exchange(engine: str, on_event: Callable[[Event], None] = _ignore, **options: Any) -> tuple[Scene, Sizes, Any, Any]:
    """Connect two machines that react; the sender says two lines after a second, of which the second one waits for an ACK."""
    sizes = Sizes("sender")
    scene = Scene(star(rate="10Mbit", delay="5ms"), engine, watchers=[sizes], **options)
    hosts = [scene.network.host(name) for name in ("r1", "sender")]
    listener, caller = Reacting(hosts[0]), Reacting(hosts[1], "r1")
    hosts[0].run(listener, _ignore)
    hosts[1].run(caller, on_event)
    for _ in range(2):
        scene.at(1.0, lambda: hosts[1].call(caller.say, SIZE))
    return scene, sizes, listener, caller


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_ack_releases_leaves_before_the_machine_that_is_told_adds_to_it(engine: str) -> None:
    scene, sizes, listener, caller = exchange(engine)
    listener.on_receive = lambda now: listener.say(8, now)
    caller.on_receive = lambda now: caller.say(SIZE, now) if len(sizes.sizes) < 5 else None
    scene.network.run(until=1.1)
    # Together the second and the third one would fill a segment, and leave less than one.
    assert sizes.sizes[:3] == [FRAME] * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_application_sends_leaves_at_once_though_the_machine_is_being_told_something(engine: str) -> None:
    def twice(event: Event) -> None:
        for _ in range(2):
            scene.network.host("sender").call(caller.say, SIZE // 2)

    scene, sizes, listener, caller = exchange(engine, twice)
    listener.on_receive = lambda now: listener.say(8, now) if len(listener.times) == 2 else None
    caller.on_receive = lambda now: caller.ports.notify(PublisherUnblocked())
    scene.network.run(until=1.5)
    # The first one leaves, the second one waits for the ACK of it. It carries the ACK, which is not sent again later.
    assert [octets for when, octets in sizes.sent_at if when >= 1.0] == [FRAME, FRAME, SIZE // 2 + 4, SIZE // 2 + 4]


def test_what_an_ack_releases_carries_the_ack_of_a_message_which_is_not_sent_again_later() -> None:
    scene, sizes, listener, _ = exchange("fast")
    listener.on_receive = lambda now: listener.say(8, now) if len(listener.times) == 1 else None
    scene.network.run(until=1.5)
    # The second line carries the ACK of the only message.
    assert [octets for when, octets in sizes.sent_at if when >= 1.0] == [FRAME, FRAME]


@pytest.mark.parametrize("engine", ENGINES)
def test_who_sent_before_anything_arrived_acknowledges_at_once(engine: str) -> None:
    assert delays_of_acks(engine, lambda listener, now: None) == pytest.approx([0.0] * 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ack_waits_where_the_last_line_was_answered_until_one_has_waited_for_nothing(engine: str) -> None:
    def answer_first(listener: Reacting, now: float) -> None:
        if len(listener.times) == 1:
            listener.say(8, now)

    # The answer itself, an ACK that waits for 40 ms, and one that does not.
    assert delays_of_acks(engine, answer_first) == pytest.approx([0.0, 0.04, 0.0])


def delays_of_acks(engine: str, react: Callable[[Reacting, float], None]) -> list[float]:
    """Return how long the listener takes to acknowledge each of three lines, which come a second apart after one of its own."""
    answers = Sizes("r1")
    scene = Scene(star(rate="10Mbit", delay="5ms"), engine, watchers=[answers])
    hosts = [scene.network.host(name) for name in ("r1", "sender")]
    listener, caller = Reacting(hosts[0]), Reacting(hosts[1], "r1")
    listener.on_receive = lambda now: react(listener, now)
    hosts[0].run(listener, _ignore)
    hosts[1].run(caller, _ignore)
    scene.at(0.5, lambda: hosts[0].call(listener.say, 8))
    for second in (1.0, 2.0, 3.0):
        scene.at(second, lambda: hosts[1].call(caller.say, SIZE))
    scene.network.run(until=4.0)
    sent_at = [when for when, _ in answers.sent_at if when >= 1.0]
    return [when - arrived for when, arrived in zip(sent_at, listener.times, strict=True)]


@pytest.mark.parametrize(("case", "goodput"), list(zip(CASES, (46.2, 18.5, 17.6, 13.0), strict=True)))
def test_a_relay_does_not_wait_for_delayed_acks(case: Case, goodput: float) -> None:
    # What Mininet finds (`python -m benchmarks.tcp_messages`). With a delayed ACK for each window it would be a half and less.
    assert run(scenario(case)).metrics["goodput_mbit_s"] == pytest.approx(goodput, rel=0.02)
