"""What a machine or an application writes: which segments it becomes, as in Linux."""

from collections.abc import Callable
from typing import Any

import pytest

from protocols.connection import Connection
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


class Reacting(Talker):
    """Calls `on_receive` for each message and `on_drained` when there is room again."""

    def __init__(self, ports: Ports, peer: Address | None = None) -> None:
        super().__init__(ports, peer)
        self.on_receive: Callable[[float], object] = _ignore
        self.on_drained: Callable[[float], object] = _ignore

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        super().receive(message, source, to, now)
        self.on_receive(now)

    def drained(self, connection: Connection, now: float) -> None:
        self.on_drained(now)


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
