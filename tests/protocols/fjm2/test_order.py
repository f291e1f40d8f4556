"""Order by publisher: what waits for earlier messages is bounded, also against publishers that never complete one."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from experiments.contract.losses import Crossing, numbered
from protocols.fjm2 import PROTOCOL
from protocols.messaging import MessagesLost
from protocols.norm.messages import Data
from protocols.roles import RoleContext
from tests.protocols.fjm2.scene import GROUP, Scene, message

FORGED = 9
"""The priority of forged messages."""
WAITING = "messages that wait for earlier ones"


def lost(number: int, until: float) -> Callable[[Crossing], bool]:
    """Return a pattern that loses the data of an object until some time."""
    return lambda crossing: isinstance(crossing.message, Data) and crossing.message.object_id == number and crossing.now < until


def told_lost(scene: Scene) -> int:
    return sum(event.count for event in scene.told["s1"] if isinstance(event, MessagesLost))


@pytest.mark.parametrize("until", [0.6, 1e9], ids=["completes late", "never completes"])
def test_a_message_that_too_many_wait_for_is_reported_as_lost_and_skipped(until: float) -> None:
    scene = Scene(drop=lost(3, until), order="fifo")
    # A publisher with the same pool would not go on.
    early = scene.subscribers["s1"]._early
    assert early is not None
    early.limit = 20_000
    for number in range(100):
        scene.publish(message(number, 1000))
        scene.run(0.01)
    scene.run(30.0)
    assert scene.numbers() == [*range(3), *range(4, 100)]
    assert told_lost(scene) == 1
    counts = scene.subscribers["s1"].counts()
    assert (counts["messages_skipped"], counts["messages_lost"]) == (1, 1)
    assert counts["pool_taken"] == counts["pool_returned"]


def test_of_messages_that_leave_the_window_together_each_is_reported_as_lost_once() -> None:
    never, late = {3, 13, 15}, {21, *range(23, 27)}

    def drop(crossing: Crossing) -> bool:
        sent = crossing.message
        return isinstance(sent, Data) and (sent.object_id in never or (sent.object_id in late and crossing.now < 0.05))

    scene = Scene(drop=drop, order="fifo", window=8)
    scene.publish(*(message(number, 100) for number in range(30)))
    scene.run(30.0)
    assert scene.numbers() == [number for number in range(30) if number not in never]
    assert told_lost(scene) == len(never)
    # Message 3 was skipped for those that waited for it, and left the window with the others later.
    assert scene.subscribers["s1"].counts()["messages_skipped"] == 1
    early = scene.subscribers["s1"]._early
    assert early is not None
    assert early.is_empty


def test_few_that_wait_are_delivered_in_order_when_the_first_comes() -> None:
    scene = Scene(drop=lost(3, 0.1), order="fifo", pool=20_000)
    scene.publish(*(message(number, 1000) for number in range(15)))
    scene.run(30.0)
    assert scene.numbers() == list(range(15))
    assert scene.subscribers["s1"].counts()["messages_skipped"] == 0


@pytest.mark.parametrize("limit", [20_000, 10_000_000], ids=["skipped", "waits"])
def test_the_messages_of_a_publisher_that_restarts_wait_for_nothing_before(limit: int) -> None:
    scene = Scene(drop=lost(3, 5.0), order="fifo")
    early = scene.subscribers["s1"]._early
    assert early is not None
    early.limit = limit
    scene.publish(*(message(number, 1000) for number in range(40)))
    scene.run(0.5)
    scene.bench.crash("p")
    host = scene.bench["p"]
    again = PROTOCOL.roles["publisher"].make(host, RoleContext(scene.config, 1, GROUP, instance=2))
    host.run(again, scene.events.append)
    scene.bench.run(6.0)
    for number in range(100, 105):
        host.call(again.publish, message(number, 1000))  # type: ignore[attr-defined]
    scene.run(5.0)
    assert scene.numbers() == [*range(3), *range(4, 40), *range(100, 105)]
    assert told_lost(scene) == 1
    assert early.is_empty


class Attacked(Scene):
    """A subscriber that receives forged packets beside those of its publisher, of which it misses the second one."""

    def __init__(self, pool: int, window: int) -> None:
        drop = numbered("data", {2})
        super().__init__(drop=drop, order="fifo", pool=pool, window=window)
        self.most = 0

    def forge(self, source_id: int, sent: Iterable[Data]) -> None:
        """Hear packets in the name of a publisher."""
        for data in sent:
            forged = replace(data, origin=replace(data.origin, source_id=source_id))
            self.bench["s1"].deliver(forged, f"attacker {source_id}", GROUP, self.bench.now)
            for name, (kept, limit) in self.subscribers["s1"].held().items():
                assert kept <= limit, name
            self.most = max(self.most, self.subscribers["s1"].held()[WAITING][0])


def begun(size: int, count: int, gap: int) -> list[Data]:
    """Return the packets of `count` messages, but of every `gap`-th one only the first."""
    source = Scene(rate=1e8)
    source.publish(*(message(number, size, FORGED) for number in range(count)))
    source.run(5.0)
    packets = [packet.message for packet in source.bench["p"].packets]
    return [data for data in packets if isinstance(data, Data) and (data.object_id % gap or data.symbol == 0)]


@pytest.mark.parametrize(
    ("sources", "size", "count", "gap", "pool", "window"),
    [(1, 3000, 200, 10, 100_000, 10_000), (4, 600, 50, 50, 1_000_000, 60)],
    ids=["bytes", "count"],
)
def test_forged_messages_that_wait_take_bounded_memory_and_keep_nothing_from_other_publishers(
    sources: int, size: int, count: int, gap: int, pool: int, window: int
) -> None:
    scene = Attacked(pool, window)
    scene.publish(*(message(number, 1000) for number in range(5)))
    scene.run(0.006)
    assert scene.subscribers["s1"].held()[WAITING][0] > 0
    packets = begun(size, count, gap)
    for source in range(sources):
        scene.forge(666 + source, packets)
    assert 25 < scene.most <= window
    skipped = scene.subscribers["s1"].counts()["messages_skipped"]
    assert skipped >= 3
    assert told_lost(scene) == skipped
    scene.publish(*(message(number, 1000) for number in range(5, 20)))
    scene.run(5.0)
    assert [each.number for each in scene.received() if each.priority != FORGED] == list(range(20))
