"""The publisher: queues by priority, containers, back-pressure, expiry, refusals."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.contract.losses import randomly
from protocols.errors import ConfigError, UsageError
from protocols.fjm2 import Fjm2Config
from protocols.fjm2.pool import Container, Pool
from protocols.fjm2.queues import PriorityQueues
from protocols.messaging import MessageAccepted, MessageExpired, Publication, PublisherIdle, PublisherUnblocked
from tests.protocols.fjm2.scene import Scene, message


@pytest.mark.parametrize("robust", [0, 5])
def test_a_publisher_whose_last_message_expires_while_it_waits_for_a_container_is_idle(robust: int) -> None:
    scene = Scene(robust=robust, flow=10, pool=1300)
    assert scene.publish(message(0, 1000), message(1, 1000, expires_at=scene.bench["p"].epoch + 0.01))
    scene.run(20.0)
    assert scene.events == [MessageAccepted(0), PublisherUnblocked(), MessageExpired(1, 1), PublisherIdle()]


def test_messages_arrive_as_they_were_published() -> None:
    scene = Scene(2)
    sent = [message(number, size, properties={"n": number}) for number, size in enumerate((0, 1, 400, 3000))]
    scene.publish(*sent)
    scene.run()
    for name in ("s1", "s2"):
        assert scene.received(name) == [replace(each, instance=1) for each in sent]
    assert [event for event in scene.events if isinstance(event, MessageAccepted)] == [MessageAccepted(n) for n in range(4)]
    assert scene.events[-1] == PublisherIdle()


def test_a_late_message_of_the_highest_priority_overtakes_a_thousand() -> None:
    scene = Scene(rate=1e5, queue=2000)
    scene.publish(*(message(number, priority=0) for number in range(1000)))
    scene.run(0.5)
    sent = scene.publisher.counts()["data_sent"]
    assert 50 < sent < 900
    scene.publish(message(1000, priority=9))
    scene.run(0.5, over=lambda: 1000 in scene.numbers())
    # One message is with NORM already; `sent` others were sent before.
    assert scene.numbers().index(1000) - sent + 1 <= 2


def test_weighted_queues_keep_their_shares_within_five_percent() -> None:
    queues: PriorityQueues[int] = PriorityQueues(10_000, is_strict=False)
    for priority, size in ((0, 100), (4, 1000), (9, 300)):
        for _ in range(6000):
            queues.push(priority, size, priority)
    octets: Counter[int] = Counter()
    sizes = {0: 100, 4: 1000, 9: 300}
    for _ in range(5000):
        found = queues.pop()
        assert found is not None
        octets[found] += sizes[found]
    total = sum(octets.values())
    for priority in sizes:
        share = (priority + 1) / (1 + 5 + 10)
        assert octets[priority] / total == pytest.approx(share, rel=0.05)


def test_a_queue_that_was_empty_gets_no_credit_for_it() -> None:
    queues: PriorityQueues[int] = PriorityQueues(10_000, is_strict=False)
    for _ in range(100):
        queues.push(9, 100, 9)
    for _ in range(90):
        queues.pop()
    for _ in range(20):
        queues.push(4, 100, 4)
    first = [queues.pop() for _ in range(9)]
    assert 2 <= first.count(4) <= 4


def test_a_full_queue_blocks_and_loses_nothing() -> None:
    scene = Scene(queue=5, rate=1e5)
    assert not scene.publish(*(message(number) for number in range(6)))
    # One is with NORM, five wait, and the seventh has no room.
    assert scene.publish(message(6))
    assert scene.publisher.limit == "queue: 5 messages of priority 4 wait to be sent"
    assert PublisherUnblocked() not in scene.events
    scene.run(over=lambda: PublisherUnblocked() in scene.events)
    scene.publish(message(7))
    scene.run()
    assert scene.numbers() == list(range(8))


def test_an_empty_pool_blocks_until_containers_leave_the_cache() -> None:
    scene = Scene(pool=4096, cache_min=1)
    numbers = iter(range(1000))
    while not scene.publish(message(next(numbers), 1000)):
        pass
    assert "pool: all 4096 bytes" in scene.publisher.limit
    blocked_at = next(numbers)
    scene.run(over=lambda: PublisherUnblocked() in scene.events)
    assert PublisherUnblocked() in scene.events
    scene.publish(message(blocked_at, 1000))
    scene.run()
    assert scene.numbers() == list(range(blocked_at + 1))
    assert scene.publisher.held()["bytes of containers"][0] <= 4096


@pytest.mark.parametrize(("queue", "least", "most"), [(1000, 1, 60), (10, 85, 100)])
def test_what_the_queue_leaves_of_the_pool_is_kept_for_repairs(queue: int, least: int, most: int) -> None:
    scene = Scene(pool=100 * 1024, queue=queue, grtt=0.005)
    numbers = iter(range(3000))
    for _ in range(1000):
        while not scene.publisher.is_blocked and scene.publisher.counts()["messages_published"] < 2000:
            scene.publish(message(next(numbers), 1000))
        scene.run(0.001)
    assert 500 < scene.publisher.counts()["messages_published"] < 2000
    assert least <= scene.publisher.held()["objects in the window"][0] <= most


def test_an_application_that_does_not_stop_loses_nothing_either() -> None:
    scene = Scene(queue=2)
    scene.publish(*(message(number) for number in range(50)))
    scene.run()
    assert scene.numbers() == list(range(50))


def test_expired_messages_are_not_sent() -> None:
    scene = Scene(rate=1e4)
    scene.publish(message(0, 1000), message(1, expires_at=0.05), message(2))
    scene.run()
    assert scene.numbers() == [0, 2]
    assert MessageExpired(1, 1) in scene.events
    scene.publish(message(3, expires_at=1.0))
    assert scene.events[-2:] == [MessageExpired(1, 3), PublisherIdle()]
    assert scene.publisher.counts()["messages_expired"] == 2


@pytest.mark.parametrize(
    ("given_message", "problem"),
    [
        (message(0, is_persistent=True), "delivery_mode: PERSISTENT is not allowed"),
        (Publication(1, 0, "queue:q", 5), "no queues"),
        (Publication(1, 0, "t", 5), "topic: 't' is not allowed; topic:NAME"),
        (Publication(1, 0, "topic:t", 5, priority=10), "priority: 10 is not allowed; a whole number from 0 to 9"),
        (Publication(1, 0, "topic:t", 5000), "pool: value 4096 is not allowed; at least 5120 for a message of 5016 bytes"),
    ],
)
def test_what_can_not_be_published_is_refused(given_message: Publication, problem: str) -> None:
    scene = Scene(pool=4096)
    with pytest.raises(UsageError, match=problem):
        scene.publish(given_message)
    scene.publish(message(1))
    scene.run()
    assert scene.numbers() == [1]


@pytest.mark.parametrize(
    ("settings_given", "problem"),
    [
        ({"fti": "info"}, "fti: 'info' is not allowed; always"),
        ({"nacking": "none"}, "nacking: 'none' is not allowed; normal"),
        ({"scheduling": "fair"}, "one of strict, weighted"),
        ({"parity": 4}, "parity: 4 is not allowed; 0 with fec 0"),
        ({"queue": 0}, "queue: 0 is not allowed"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(settings_given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Fjm2Config(**settings_given)


def test_containers_come_back_when_messages_leave_the_cache() -> None:
    scene = Scene(cache_min=2, cache_max=4)
    scene.publish(*(message(number, 300) for number in range(40)))
    scene.run(20.0)
    counts = scene.publisher.counts()
    assert counts["pool_taken"] == 40
    # What NORM keeps for repairs keeps its containers.
    assert counts["pool_taken"] - counts["pool_returned"] == scene.publisher.held()["objects in the window"][0] <= 4


def test_ids_of_objects_wrap_around() -> None:
    scene = Scene(2, drop=randomly(0.1), order="fifo")
    scene.publisher._sender._next_id = 65_450
    scene.publish(message(0))
    scene.run(0.05)
    scene.publish(*(message(number) for number in range(1, 300)))
    scene.run(20.0)
    for name in ("s1", "s2"):
        assert scene.numbers(name) == list(range(scene.numbers(name)[0], 300))
        assert scene.numbers(name)[0] < 50


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5000)), max_size=60), st.integers(256, 20_000))
@settings(max_examples=100, deadline=None)
def test_no_container_is_lost(steps: list[tuple[bool, int]], limit: int) -> None:
    pool, taken = Pool(limit, Container), list[Container]()
    for takes, size in steps:
        if takes:
            container = pool.take(size)
            if container is not None:
                taken.append(container)
                assert len(container.memory) >= size
        elif taken:
            pool.give_back(taken.pop())
        assert pool.taken == pool.returned + len(taken)
        assert pool.held == sum(each.octets for each in taken) <= limit
        assert pool.allocated() <= limit
    assert len({id(each) for each in taken}) == len(taken)


def test_containers_are_used_again() -> None:
    pool = Pool(10_000, Container)
    first = pool.take(1000)
    assert first is not None
    memory = first.memory
    pool.give_back(first)
    again = pool.take(970)
    assert again is not None
    assert again.memory is memory


@given(st.integers(1, 1 << 40))
@settings(max_examples=200, deadline=None)
def test_a_container_is_at_most_an_eighth_larger_than_its_message(size: int) -> None:
    octets = Pool.octets_for(size)
    assert size <= octets <= max(256, size * 9 / 8)
    assert Pool.octets_for(octets) == octets
    assert Pool.octets_for(octets + 1) > octets


@pytest.mark.parametrize("size", [1 << 10, 1 << 14, 1 << 16, 1 << 20])
def test_a_message_a_head_longer_than_a_power_of_two_does_not_halve_the_pool(size: int) -> None:
    pool, head = Pool(16_000_000, Container), 21
    fit = 0
    while pool.take(size + head) is not None:
        fit += 1
    assert fit >= 0.85 * (16_000_000 // (size + head)) - 1
