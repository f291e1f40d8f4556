"""Messages of FJM2 between hosts on the loopback device: contents, containers, and bodies that programs keep."""

import random
import socket
from collections.abc import Iterator

import pytest

from emu.host import UdpHost
from emu.loop import new_loop
from emu.udp_options import UdpOptions
from protocols.events import Event
from protocols.fjm2 import PROTOCOL
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.jms import JmsMessage, jms_message
from protocols.machine import Group
from protocols.messaging import MessageReceived, PublisherIdle, Subscription
from protocols.rng import Rng
from protocols.roles import RoleContext

POOL = 400_000
SIZES = (0, 1, 1379, 1380, 1400, 16_384, 65_536, 65_514, 131_072)
"""Of bodies: around one segment, and around powers of two."""


class Pair:
    """A publisher and a subscriber on the loopback device, with containers for few messages."""

    def __init__(self, **settings: object) -> None:
        self.loop = new_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            group = Group(f"239.7.7.37:{sock.getsockname()[1]}")
        config = PROTOCOL.config(rate=50e6, grtt=0.002, grtt_max=0.01, robust=3, pool=POOL, cache_min=1, **settings)
        self.received: list[JmsMessage] = []
        self.is_idle = False
        self.hosts = [
            UdpHost(self.loop, PROTOCOL.codec(), interface="lo", port=0, rng=Rng(n), options=UdpOptions(ttl=0)) for n in (1, 2)
        ]
        machines = [
            PROTOCOL.roles[role].make(host, RoleContext(config, node, group))
            for node, (role, host) in enumerate(zip(("publisher", "subscriber"), self.hosts, strict=True), 1)
        ]
        for host, machine in zip(self.hosts, machines, strict=True):
            host.run(machine, self._note)
        publisher, subscriber = machines
        assert isinstance(publisher, Fjm2Publisher)
        assert isinstance(subscriber, Fjm2Subscriber)
        self.publisher, self.subscriber = publisher, subscriber
        self.hosts[1].call(subscriber.subscribe, Subscription(0, "topic:t"))

    def _note(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            assert isinstance(event.message, JmsMessage)
            self.received.append(event.message)
        elif isinstance(event, PublisherIdle):
            self.is_idle = True
            self.loop.stop()

    def publish(self, bodies: list[bytes]) -> None:
        """Publish messages with these bodies, and run until they are sent."""
        self.is_idle = False
        for body in bodies:
            self.hosts[0].call(self.publisher.publish, jms_message(1, self.publisher._published, "topic:t", body))
        self.loop.run(20)
        assert self.is_idle


@pytest.fixture(params=[{}, {"fec": 5, "parity": 8, "auto_parity": 2}], ids=["without a code", "with parity"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Return a pair whose hosts are closed after the test."""
    made = Pair(**request.param)
    yield made
    for host in made.hosts:
        host.close()
    made.loop.close()


def test_bodies_arrive_and_stay_as_they_were_while_their_containers_hold_later_messages(pair: Pair) -> None:
    chance = random.Random(7)
    rounds = [[chance.randbytes(size) for size in SIZES] for _ in range(6)]
    for bodies in rounds:
        pair.publish(bodies)
    expected = [body for bodies in rounds for body in bodies]
    assert len(pair.received) == len(expected)
    assert {message.number: message.body for message in pair.received} == dict(enumerate(expected))
    assert all(type(message.body) is bytes for message in pair.received)
    taken = pair.subscriber.counts()
    assert taken["pool_taken"] == taken["pool_returned"] == len(expected)
    # The pool has room for few of the messages: their containers hold others by now.
    assert sum(map(len, expected)) > 4 * POOL
    assert pair.publisher.held()["bytes of containers"][0] <= POOL
    assert pair.publisher._pool.allocated() <= POOL
    assert pair.subscriber._pool.allocated() <= POOL
