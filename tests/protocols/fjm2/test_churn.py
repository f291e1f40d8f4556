"""Publishers and subscribers that come and go (F27): containers are neither lost nor given back twice, and all come back."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.messaging import MessageExpired, Subscription
from protocols.norm.messages import Data
from tests.protocols.fjm2.scene import GROUP, Scene, message

EXPIRE = 1.0
PARTS = 3
"""Packets of a message."""


def packets(messages: int = 2) -> list[list[Data]]:
    """Return the packets of messages that a publisher sends, by message."""
    scene = Scene()
    scene.publish(*(message(number, 1400) for number in range(messages)))
    scene.run(1.0)
    sent = [packet.message for packet in scene.bench["p"].packets if isinstance(packet.message, Data)]
    return [sent[PARTS * number : PARTS * (number + 1)] for number in range(messages)]


SENT = packets()


class Churn(Scene):
    """One subscriber, which receives what a test sends for any number of publishers."""

    def __init__(self, **more: Any) -> None:
        super().__init__(expire=EXPIRE, **more)
        self.subscriber = self.subscribers["s1"]

    def hear(self, publisher: int, packet: Data) -> None:
        """Hear a packet in the name of a publisher, from a host of its own."""
        origin = replace(packet.origin, source_id=1000 + publisher)
        self.bench["s1"].deliver(replace(packet, origin=origin), f"h{publisher}", GROUP, self.bench.now)
        self.check()

    def check(self) -> None:
        """Assert that each container that was taken was given back, or holds a message that is incomplete."""
        pool, incoming = self.subscriber._pool, self.subscriber._incoming
        assert pool.taken == pool.returned + len(incoming)
        assert pool.held == sum(sink.octets for sink in incoming.values()) <= pool.limit
        early = self.subscriber._early
        if early is not None:
            waiting = [entry for entries in early._waiting.values() for entry in entries]
            assert (early.count, early.octets) == (len(waiting), sum(octets for *_, octets in waiting))
            assert early.count <= early.most
            assert early.octets <= early.limit

    def check_end(self) -> None:
        """Assert that after the expiry nothing is left."""
        self.run(60.0)
        self.check()
        assert not self.subscriber._incoming
        assert self.subscriber._early is None or self.subscriber._early.is_empty
        assert self.subscriber.held()["bytes of containers"][0] == self.subscriber.held()["pending objects"][0] == 0


@pytest.mark.parametrize(("order", "publishers"), [("none", 10_000), ("fifo", 2_000)])
def test_publishers_that_come_and_leave_half_of_them_in_mid_message_leave_nothing(order: str, publishers: int) -> None:
    churn = Churn(order=order)
    for publisher in range(publishers):
        for packet in SENT[0][: PARTS if publisher % 2 else 1]:
            churn.hear(publisher, packet)
        churn.run(0.05)
    churn.check_end()
    counts = churn.subscriber.counts()
    assert counts["pool_taken"] == counts["pool_returned"] == publishers
    assert counts["messages_received"] == counts["messages_lost"] == publishers // 2


def test_subscriptions_that_come_and_go_half_of_them_in_mid_message_leave_nothing() -> None:
    churn = Churn()
    host, subscriber, count = churn.bench["s1"], churn.subscriber, 10_000
    host.call(subscriber.unsubscribe, 0)
    for number in range(count):
        host.call(subscriber.subscribe, Subscription(number, "topic:t", "n = 1" if number % 3 == 0 else ""))
        for packet in SENT[0][: 1 if number % 2 else PARTS] if number < 2000 else ():
            churn.hear(number, packet)
        host.call(subscriber.unsubscribe, number)
        if number < 2000:
            churn.run(0.05)
    churn.check_end()
    assert not len(subscriber.subscriptions)
    assert not subscriber.subscriptions._selectors


STEPS = st.one_of(
    st.tuples(st.just("hear"), st.integers(0, 5), st.integers(0, len(SENT) - 1), st.integers(0, PARTS - 1)),
    st.tuples(st.just("run"), st.sampled_from([0.01, 0.1, 0.7, 3.0])),
    st.tuples(st.just("subscribe"), st.integers(0, 2)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["none", "fifo"]), st.sampled_from([2048, 6000, 100_000]))
def test_no_container_is_lost_whatever_comes(steps: list[tuple[Any, ...]], order: str, pool: int) -> None:
    churn = Churn(order=order, pool=pool)
    host, subscriber = churn.bench["s1"], churn.subscriber
    for what, *values in steps:
        if what == "hear":
            churn.hear(values[0], SENT[values[1]][values[2]])
        elif what == "run":
            churn.run(values[0])
        elif values[0] in subscriber.subscriptions:
            host.call(subscriber.unsubscribe, values[0])
        else:
            host.call(subscriber.subscribe, Subscription(values[0], "topic:t"))
        churn.check()
    churn.check_end()


class Publishing(Scene):
    """A publisher that may run out of everything."""

    def check(self) -> None:
        """Assert that each container that was taken was given back, or is with a message that waits or is kept."""
        publisher = self.publisher
        waiting = sum(entry.container is not None for entry in publisher._waiting)
        pool = publisher._pool
        assert pool.taken - pool.returned == len(publisher._kept) + publisher._queues.waiting + waiting
        assert publisher._pool.held <= publisher._pool.limit


PUBLISHED = st.tuples(
    st.integers(0, 3000), st.integers(0, 9), st.sampled_from([None, 0.001, 0.1]), st.sampled_from([0.0, 0.02])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PUBLISHED, max_size=30), st.sampled_from([4096, 100_000]), st.sampled_from(["strict", "weighted"]))
def test_a_publisher_loses_no_container_whatever_is_published(
    sent: list[tuple[int, int, float | None, float]], pool: int, scheduling: str
) -> None:
    scene = Publishing(pool=pool, queue=3, cache_min=1, cache_max=4, scheduling=scheduling, rate=2e5)
    for number, (size, priority, ttl, pause) in enumerate(sent):
        expiry = {} if ttl is None else {"expires_at": scene.bench.now + ttl}
        scene.publish(message(number, size, priority, **expiry))
        scene.check()
        scene.run(pause)
        scene.check()
    scene.run(20.0)
    scene.check()
    assert not scene.publisher.is_blocked
    assert scene.publisher._queues.waiting == 0
    counts = scene.publisher.counts()
    assert counts["pool_taken"] - counts["pool_returned"] <= 4
    late = sum(isinstance(event, MessageExpired) for event in scene.told["s1"])
    assert len(scene.numbers()) + late == counts["messages_published"] - counts["messages_expired"]
