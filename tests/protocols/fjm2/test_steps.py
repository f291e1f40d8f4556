"""The steps of a subscriber (thesis of FJM2, 3.4, (1) to (16)) as a trace shows them: a test of every path."""

from collections.abc import Sequence
from math import inf
from typing import Any

from experiments.contract.losses import Crossing, Drop, any_of, everything_to, nothing, numbered
from protocols.messaging import Subscription
from protocols.norm.messages import Data, Nack
from tests.protocols.fjm2.scene import Scene, message

BEGUN = ["container_taken", "message_cached"]
"""(3) and (4): no message with this key is cached, and a container of its size is."""
ENDED = ["message_completed", "message_delivered", "container_returned"]
"""(7) to (9)."""


class Steps(Scene):
    """A scene whose first subscriber is traced."""

    def __init__(self, subscribers: int = 1, drop: Drop = nothing, **settings: Any) -> None:
        super().__init__(subscribers, drop, **settings)
        self.steps: list[tuple[float, str]] = []
        host = self.bench["s1"]
        host.trace = lambda name, details: self.steps.append((host.now, name))

    @property
    def names(self) -> list[str]:
        """The names of the steps."""
        return [name for _, name in self.steps]

    def at(self, name: str) -> list[float]:
        """Return the times of a step."""
        return [when for when, found in self.steps if found == name]

    def nacks(self, name: str = "s1") -> list[float]:
        """Return when a subscriber sent NACKs."""
        return [when for when, what in self.bench[name].transcript if what == Nack.kind]


def run(sizes: Sequence[int], subscribers: int = 1, drop: Drop = nothing, seconds: float = 5.0, **settings: Any) -> Steps:
    """Publish messages of these sizes, and run."""
    scene = Steps(subscribers, drop, **settings)
    scene.publish(*(message(number, size) for number, size in enumerate(sizes)))
    scene.run(seconds)
    return scene


def test_a_message_of_one_packet_is_taken_completed_delivered_and_given_back() -> None:
    assert run([100]).names == [*BEGUN, *ENDED]


def test_further_packets_of_a_message_find_it_cached_and_take_no_container() -> None:
    # (2) leads to (5), and (10) to (11): nothing before the packet is missing.
    assert run([1900]).names == [*BEGUN, *ENDED]


def test_a_missing_packet_leads_to_a_back_off_a_nack_and_a_hold_off() -> None:
    scene = run([900, 100], drop=numbered("data", {2}))
    assert scene.names == [*BEGUN, *BEGUN, "nack_backoff", *ENDED, "nack_due", "holdoff", *ENDED]
    assert scene.nacks() == scene.at("nack_due")


def test_a_back_off_ends_without_a_nack_when_nothing_is_missing_any_more() -> None:
    # The second packet comes late, while a longer message is under way.
    scene = Steps(drop=numbered("data", {2}), grtt=0.05, rate=2e4)
    scene.publish(message(0, 900), message(1, 10_000))
    scene.run(0.15)
    late = next(
        packet for packet in scene.bench["p"].packets if isinstance(packet.message, Data) and packet.message.symbol == 1
    )
    assert scene.names[-1] == "nack_backoff"
    scene.bench["s1"].deliver(late.message, "p", late.to, scene.bench.now)
    scene.run(5.0)
    assert scene.names == [*BEGUN, *BEGUN, "nack_backoff", *ENDED, *ENDED]
    assert scene.nacks() == []


def _both_lose(numbers: set[int]) -> Drop:
    return numbered("data", numbers)


def test_an_overheard_nack_for_the_same_items_suppresses_the_own_one() -> None:
    # Six subscribers lose the same packet; whoever overhears the first NACK in its back-off sends none.
    scene = run([900, 100], 6, _both_lose({2}), grtt=0.05)
    sent = [name for name in scene.subscribers if scene.nacks(name)]
    suppressed = sum(each.counts()["nacks_suppressed"] for each in scene.subscribers.values())
    assert (len(sent), suppressed) == (1, 5)
    if "s1" in sent:
        assert "nack_suppressed" not in scene.names
    else:
        assert scene.names.count("nack_suppressed") == 1
        assert "nack_due" not in scene.names
        assert "holdoff" not in scene.names
    assert all(scene.numbers(name) in ([0, 1], [1, 0]) for name in scene.subscribers)


def test_a_back_off_is_resumed_when_more_is_missing_than_others_requested() -> None:
    # Both lose message 1; as soon as s2 has requested it, s1 loses another one.
    scene = _resumed(next(seed for seed in range(20) if "nack_resumed" in _resumed(seed).names))
    order = [name for name in scene.names if name.startswith("nack")]
    assert order == ["nack_backoff", "nack_suppressed", "nack_resumed", "nack_due"]
    assert len(scene.nacks()) == len(scene.nacks("s2")) == 1


def _resumed(seed: int) -> Steps:
    """Run it with back-offs that depend on the seed."""
    lost = set[int]()

    def drop(crossing: Crossing) -> bool:
        sent = crossing.message
        if not isinstance(sent, Data) or sent.repair:
            return False
        if crossing.receiver == "s1" and not lost and scene.nacks("s2"):
            lost.add(sent.object_id)
        return sent.object_id == 1 or (crossing.receiver == "s1" and sent.object_id in lost)

    scene = Steps(2, drop, grtt=0.1, rate=7e3)
    for _ in range(seed):
        scene.bench["s2"].rng.uniform()
    scene.publish(*(message(number, 100) for number in range(80)))
    scene.run(10.0)
    assert sorted(scene.numbers()) == sorted(scene.numbers("s2")) == list(range(80))
    return scene


def test_within_the_hold_off_nothing_is_requested_and_after_it_what_is_still_missing() -> None:
    # Repairs are lost for a second.
    scene = run([900, 100], drop=any_of(numbered("data", {2}), _repairs_before(1.0)), seconds=10.0)
    assert sorted(scene.numbers()) == [0, 1]
    begun, over, due = scene.at("holdoff"), scene.at("holdoff_over"), scene.at("nack_due")
    assert len(due) > 2
    assert len(over) == len(due) - 1
    ends = [end for when, end in scene_ends(scene)]
    for start, end in zip(begun, ends, strict=True):
        assert not [when for when in scene.nacks() if start < when < end]
        assert not [when for when in scene.at("nack_backoff") if start < when < end]
    # (16): the decision is made again, and leads to (12).
    for name, after in zip(scene.names, scene.names[1:], strict=False):
        if name == "holdoff_over":
            assert after == "nack_backoff"


def scene_ends(scene: Steps) -> list[tuple[float, float]]:
    """Return begin and end of each hold-off."""
    return list(zip(scene.at("holdoff"), [*scene.at("holdoff_over"), inf], strict=False))


def _repairs_before(end: float) -> Drop:
    return lambda crossing: crossing.message.repair and crossing.now < end


def test_with_an_exhausted_pool_no_message_begins_and_it_is_requested_again() -> None:
    scene = Steps(drop=numbered("data", {2, 5, 8}), grtt=0.02)
    scene.subscribers["s1"]._pool.limit = 2048
    scene.publish(*(message(number, 1500) for number in range(4)))
    scene.run(30.0)
    assert "pool_exhausted" in scene.names
    assert sorted(scene.numbers()) == list(range(4))
    assert scene.names.count("container_taken") == scene.names.count("container_returned") == 4


def test_a_message_larger_than_the_pool_is_refused() -> None:
    scene = Steps()
    scene.subscribers["s1"]._pool.limit = 512
    scene.publish(message(0, 1500))
    scene.run()
    assert scene.names == ["message_refused"]


def test_an_incomplete_message_expires_and_its_container_comes_back() -> None:
    scene = run([2000], drop=everything_to("s1", 0.003), seconds=60.0, expire=2.0, rate=1e5)
    assert scene.names[: len(BEGUN)] == BEGUN
    assert scene.names[-1] == "container_returned"
    assert "message_completed" not in scene.names


def test_a_message_of_another_topic_is_completed_and_delivered_to_nobody() -> None:
    scene = Steps(to="topic:other")
    scene.bench["s1"].call(scene.subscribers["s1"].subscribe, Subscription(1, "topic:another"))
    scene.publish(message(0))
    scene.run()
    assert scene.names == [*BEGUN, *ENDED]
    assert scene.received() == []
