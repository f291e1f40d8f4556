"""Publishers and subscribers of the Distributor on fake hosts, which fail a test when a machine breaks the contract."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.contract.losses import Crossing, any_of, everything_to, numbered, randomly
from protocols.distributor.events import (
    ConnectionNagging,
    PublisherGone,
    PublisherHeard,
    QueueOverflowed,
    SegmentsLost,
    UpdatesSent,
)
from protocols.distributor.messages import (
    Batch,
    Nak,
    Request,
    Segment,
    Source,
    SubjectUpdates,
)
from protocols.errors import UsageError
from protocols.messaging import PublisherIdle, PublisherUnblocked, Subscribed, Subscription, SubscriptionEnded
from tests.protocols.distributor.scene import GROUP, Scene


def texts(count: int) -> list[bytes]:
    return [f"update {n}".encode() for n in range(count)]


# Delivery


def test_updates_come_in_order_and_no_request_is_sent_without_loss() -> None:
    scene = Scene(3, holdback=0.01, holdback_threshold=0.0)
    scene.each(texts(200))
    scene.run(10.0)
    assert [scene.received(name) for name in ("r1", "r2", "r3")] == [texts(200)] * 3
    assert scene.sent("request") == 0
    assert scene.bench["r1"].packets == []


@settings(max_examples=25, deadline=None)
@example(loss=0.4, seed=103, sizes=[0], holdback=0.0)
@given(
    loss=st.sampled_from([0.0, 0.05, 0.2, 0.4]),
    seed=st.integers(0, 1000),
    sizes=st.lists(st.sampled_from([0, 1, 50, 89, 90, 91, 100, 300, 2000]), min_size=1, max_size=25),
    holdback=st.sampled_from([0.0, 0.005]),
)
def test_whatever_is_lost_every_update_is_delivered_once_in_order(
    loss: float, seed: int, sizes: list[int], holdback: float
) -> None:
    scene = Scene(
        2,
        "pq",
        randomly(loss, seed),
        segment=128,
        holdback=holdback,
        holdback_threshold=0.0,
        timeout=0.05,
        heartbeat=0.1,
        retries=30,
    )
    contents = {by: [bytes([n]) * size for n, size in enumerate(sizes)] for by in "pq"}
    for n, _ in enumerate(sizes):
        for by in "pq":
            scene.publish(contents[by][n], by=by)
        scene.run(0.003)
    scene.run(8.0)
    for name in ("r1", "r2"):
        assert not scene.kinds(name, SegmentsLost)
        assert scene.received(name, by=1) == contents["p"]
        assert scene.received(name, by=2) == contents["q"]


@pytest.mark.parametrize("size", [1, 79, 80, 81, 178, 179, 180, 1000, 1 << 20, (1 << 24)])
def test_an_update_of_any_size_arrives_whole(size: int) -> None:
    scene = Scene(segment=128 if size < 10_000 else 60_000, receive_queue=1 << 26)
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    scene.publish(b"before")
    scene.publish(content)
    scene.publish(b"after")
    scene.run(1.0)
    assert scene.received() == [b"before", content, b"after"]


def test_an_update_beyond_the_largest_size_is_refused() -> None:
    scene = Scene()
    with pytest.raises(UsageError, match="size: value 16777217 with properties"):
        scene.publish(bytes((1 << 24) + 1))


@pytest.mark.parametrize(("size", "segments"), [(8192 - 28 - 12, 1), (8192 - 28 - 12 + 1, 2)])
def test_an_update_is_split_from_the_size_on_at_which_the_java_program_splits_it(size: int, segments: int) -> None:
    scene = Scene()
    scene.publish(bytes(size))
    scene.run(0.1)
    assert scene.sent("data") == segments


def test_the_loss_of_one_part_costs_one_retransmission() -> None:
    scene = Scene(drop=numbered("data", {5}), segment=1000)
    scene.publish(bytes(9000))
    scene.run(5.0)
    assert scene.received() == [bytes(9000)]
    assert scene.publishers["p"].counts()["repairs_sent"] == 1


# Batching


def test_a_lone_update_leaves_at_once_and_a_burst_shares_datagrams() -> None:
    scene = Scene(holdback=0.1, holdback_threshold=0.0, segment=1400)
    scene.publish(b"first")
    assert scene.sent("data") == 1
    scene.run(0.001)
    scene.each([bytes(50)] * 40)
    scene.run(0.2)
    batches = [packet.message for packet in scene.bench["p"].packets if isinstance(packet.message, Batch)]
    # 62 bytes each: 22 in a datagram of 1400 bytes; the rest leaves when its time is over.
    assert [batch.updates for batch in batches] == [1, 22, 18]
    scene.run(1.0)
    scene.publish(b"after a pause")
    assert scene.sent("data") == 4


def test_no_update_waits_longer_than_the_hold_back() -> None:
    scene = Scene(holdback=0.1, holdback_threshold=0.0)
    scene.each([b"a", b"b"])
    scene.run(0.1001)
    assert scene.sent("data") == 2


def test_below_the_threshold_every_update_has_its_own_datagram() -> None:
    scene = Scene(holdback=0.1, holdback_threshold=100.0)
    scene.each(texts(20), gap=0.05)
    assert scene.sent("data") == 20
    scene.each(texts(1000), gap=0.001)
    assert scene.sent("data") < 20 + 300, "20 segments per second were sent, and then 1000 updates"


def test_a_batch_stays_open_while_segments_wait_before_it() -> None:
    scene = Scene(rate=50_000.0, segment=1000, queue=1000)
    scene.each([bytes(88)] * 100)
    scene.run(5.0)
    assert scene.received() == [bytes(88)] * 100
    assert scene.sent("data") < 20, "9 updates fit into a datagram, though each was published alone"


# Recovery


def test_an_update_that_is_lost_at_the_end_is_found_by_the_heartbeat() -> None:
    scene = Scene(drop=numbered("data", {10}), heartbeat=1.0)
    scene.each(texts(10))
    scene.run(0.5)
    assert scene.received() == texts(9)
    scene.run(2.0)
    assert scene.received() == texts(10)


def test_the_first_updates_of_a_publisher_are_not_missed_by_earlier_subscribers() -> None:
    scene = Scene(drop=any_of(numbered("data", {1, 2}), numbered("configuration", {1}), numbered("heartbeat", {1})))
    scene.each(texts(5))
    scene.run(2.0)
    assert scene.received() == texts(5)


def test_a_late_subscriber_gets_what_follows_and_the_event_shows_from_when_on() -> None:
    scene = Scene(2)
    late = scene.subscribers["r2"]
    scene.bench["r2"].call(late.unsubscribe, 0)
    scene.run(1.0)
    scene.each(texts(5))
    scene.run(1.0)
    scene.bench["r2"].call(late.subscribe, Subscription(7, "/s"))
    scene.publish(b"later")
    scene.run(1.0)
    assert scene.received("r2") == [b"later"]
    assert scene.kinds("r2", Subscribed)[-2:] == [Subscribed(7), Subscribed(7)]
    assert scene.sent("request") == 0


def test_one_request_serves_all_subscribers_that_lost_the_same() -> None:
    # Every subscriber loses the third segment; the delay of packets is a 50th of the random wait.
    scene = Scene(20, drop=numbered("data", {3}), request_delay=0.05)
    scene.each(texts(6), gap=0.01)
    scene.run(3.0)
    assert all(scene.received(name) == texts(6) for name in scene.subscribers)
    assert scene.sent("request") <= 3
    assert scene.publishers["p"].counts()["repairs_sent"] == 1
    suppressed = sum(machine.counts()["requests_suppressed"] for machine in scene.subscribers.values())
    assert suppressed >= 17


def test_requests_that_come_while_a_retransmission_waits_are_merged() -> None:
    scene = Scene(10, drop=numbered("data", {3}), request_delay=0.0, server_holdback=0.02)
    scene.each(texts(6), gap=0.01)
    scene.run(3.0)
    assert scene.sent("request") == 10
    assert scene.publishers["p"].counts() | {"requests_merged": 9, "repairs_sent": 1} == scene.publishers["p"].counts()


def test_a_lost_retransmission_is_requested_again_and_nothing_else_is() -> None:
    """The Java receiver requested everything after it again (defect 1)."""

    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        if not isinstance(message, Segment) or message.seqno not in (5, 6):
            return False
        return not message.is_retransmission or (message.seqno == 5 and crossing.now < 0.2)

    scene = Scene(drop=drop, timeout=0.3)
    scene.each(texts(60), gap=0.005)
    scene.run(5.0)
    assert scene.received() == texts(60)
    assert scene.publishers["p"].counts()["repairs_sent"] == 3
    assert scene.sent("request") == 2


def test_retransmissions_of_one_publisher_do_not_suppress_requests_to_another() -> None:
    scene = Scene(1, "pq", drop=numbered("data", {5}))
    for n in range(10):
        scene.publish(b"p%d" % n, by="p")
        scene.publish(b"q%d" % n, by="q")
        scene.run(0.01)
    scene.run(3.0)
    assert scene.received(by=1) == [b"p%d" % n for n in range(10)]
    assert scene.received(by=2) == [b"q%d" % n for n in range(10)]


def test_what_has_left_the_cache_is_refused_reported_and_left_out() -> None:
    scene = Scene(drop=numbered("data", {2, 3, 4}), cache=1)
    scene.each(texts(8), gap=0.01)
    scene.run(2.0)
    assert scene.received() == [text for n, text in enumerate(texts(8)) if n not in (1, 2, 3)]
    (lost,) = scene.kinds("r1", SegmentsLost)
    assert (lost.first, lost.count, lost.reason) == (2, 3, "not cached any more")
    naks = [packet.message for packet in scene.bench["p"].packets if isinstance(packet.message, Nak)]
    assert naks[0].seqnos[0] == 2


def test_what_is_never_answered_is_given_up_after_the_retries() -> None:
    silent = lambda crossing: crossing.message.kind == "request"  # noqa: E731
    scene = Scene(drop=any_of(numbered("data", {2}), silent), retries=3, timeout=0.1, heartbeats_lost=1000)
    scene.each(texts(5), gap=0.01)
    scene.run(5.0)
    assert scene.received() == [text for n, text in enumerate(texts(5)) if n != 1]
    (lost,) = scene.kinds("r1", SegmentsLost)
    assert (lost.first, lost.count, lost.reason) == (2, 1, "too many requests")
    assert scene.sent("request") == 4
    assert not scene.subscribers["r1"].counts().get("kept")
    assert scene.subscribers["r1"].held()["receive queue"][0] == 0


@pytest.mark.parametrize(("size", "lost"), [(10, {2: False, 4: True}), (3000, {2: False, 5: True})])
def test_a_loss_is_the_last_one_if_no_update_follows_it(size: int, lost: dict[int, bool]) -> None:
    """Of a large update whose first segment is lost, the others wait and are no update."""
    scene = Scene(
        retries=0,
        segment=1400,
        drop=lambda crossing: crossing.message.kind == "data" and crossing.message.seqno in lost,  # type: ignore[attr-defined]
    )
    scene.each([b"a", b"b", b"c"] if size < 1400 else [b"a", b"b", b"c", b"d"], gap=0.3)
    scene.publish(bytes(size))
    scene.run(60.0)
    assert {event.first: event.is_last for event in scene.kinds("r1", SegmentsLost)} == lost


def test_retries_wait_longer_each_time() -> None:
    silent = lambda crossing: crossing.message.kind == "request"  # noqa: E731
    scene = Scene(drop=any_of(numbered("data", {2}), silent), retries=4, timeout=0.1, request_delay=0.0, heartbeats_lost=1000)
    times: list[float] = []
    scene.each(texts(5))
    for _ in range(200):
        before = scene.sent("request")
        scene.run(0.01)
        times += [scene.bench.now] * (scene.sent("request") - before)
    gaps = [round(b - a, 2) for a, b in pairwise(times)]
    assert gaps == [0.1, 0.2, 0.4, 0.4]


def test_only_so_many_segments_are_requested_at_the_same_time() -> None:
    scene = Scene(drop=numbered("data", set(range(2, 200))), requested=16, segment=128, cache=1 << 20)
    scene.each(texts(202))
    scene.run(5.0)
    assert scene.received() == texts(202)
    requests = [packet.message for packet in scene.bench["r1"].packets if isinstance(packet.message, Request)]
    assert max(message.high - message.low + 1 for message in requests) <= 16


# Rate


def test_a_publisher_keeps_its_rate_with_retransmissions_and_does_not_throw() -> None:
    scene = Scene(drop=randomly(0.2), rate=100_000.0, segment=1000, queue=8, timeout=0.05, retries=40)
    count = 0
    blocked = False
    while scene.bench.now < 2.0:
        while not blocked:
            blocked = scene.publish(bytes(900))
            count += 1
        seen = len(scene.kinds("p", PublisherUnblocked))
        scene.run(0.01)
        blocked = len(scene.kinds("p", PublisherUnblocked)) == seen
    octets = sum(packet.size for packet in scene.bench["p"].packets if packet.message.kind == "data")
    assert octets / scene.bench.now == pytest.approx(100_000, rel=0.05)
    assert scene.publishers["p"].counts()["repairs_sent"] > 10
    scene.run(30.0)
    assert len(scene.received()) == count


def test_a_full_network_stops_a_publisher_until_it_takes_packets_again() -> None:
    scene = Scene()
    host, machine = scene.bench["p"], scene.publishers["p"]
    host.room = 2
    for n in range(5):
        scene.publish(b"%d" % n)
    assert scene.sent("data") <= 2
    host.room = inf
    host.call(machine.resume)
    scene.run(1.0)
    assert scene.received() == [b"0", b"1", b"2", b"3", b"4"]


def test_a_publisher_reports_what_was_sent_and_when_it_is_idle() -> None:
    scene = Scene(rate=100_000.0, segment=200, queue=2)
    assert scene.publish(*[bytes(150)] * 20)
    scene.run(1.0)
    assert sum(event.count for event in scene.kinds("p", UpdatesSent)) == 20
    assert scene.events["p"][-1] == PublisherIdle()
    assert len(scene.kinds("p", PublisherUnblocked)) == 1


# Publishers that come and go


def test_a_publisher_is_reported_when_it_comes_and_when_it_is_gone() -> None:
    scene = Scene(heartbeat=0.5, heartbeats_lost=3)
    scene.publish(b"a")
    scene.run(10.0)
    assert [event.application for event in scene.kinds("r1", PublisherHeard)] == ["", "node-1"]
    assert not scene.kinds("r1", PublisherGone)
    scene.bench.crash("p")
    scene.run(3.0)
    (gone,) = scene.kinds("r1", PublisherGone)
    assert gone.source.host == 1
    assert scene.subscribers["r1"].held()["publishers"][0] == 0


def test_a_large_update_whose_publisher_ended_in_its_middle_is_told() -> None:
    scene = Scene(segment=200, rate=10_000.0, heartbeat=0.5, heartbeats_lost=3)
    scene.publish(bytes(5000))
    scene.run(0.1)
    begun = scene.subscribers["r1"].snapshot(0.1).parts[0].only("object")
    assert [(each.states["state"], 0 < each.values["bytes_received"] < each.values["size"]) for each in begun] == [
        ("receiving", True)
    ]
    scene.bench.crash("p")
    scene.run(3.0)
    assert [(lost.count, lost.reason) for lost in scene.kinds("r1", SegmentsLost)] == [(0, "the publisher is gone")]
    assert scene.subscribers["r1"].counts()["segments_lost"] == 0


def test_a_lost_update_is_told_to_be_the_last_when_the_missing_parts_behind_its_loss_have_come() -> None:
    scene = Scene(drop=numbered("data", {2, 3, 7, 8}), segment=200, requested=1, retries=1)
    scene.publish(bytes(900))
    scene.run(30.0)
    assert [(lost.count, lost.is_last) for lost in scene.kinds("r1", SegmentsLost)] == [(1, False), (0, True)]
    scene.publish(b"next")
    scene.run(1.0)
    assert scene.received() == [b"next"]
    assert len(scene.kinds("r1", SegmentsLost)) == 2


def test_a_publisher_that_restarts_is_another_one_and_what_is_missing_of_the_first_is_reported() -> None:
    scene = Scene(drop=numbered("data", {2}), request_delay=0.05)
    scene.each([b"a", b"b", b"c"])
    scene.run(0.01)
    scene.bench.crash("p")
    scene.run(0.01)
    scene.start("p", 1)
    scene.publish(b"d")
    scene.run(1.0)
    assert scene.received() == [b"a", b"c", b"d"]
    assert [lost.reason for lost in scene.kinds("r1", SegmentsLost)] == ["the publisher has restarted"]


def test_senders_whose_id_and_start_have_the_same_sum_are_told_apart() -> None:
    """The Java receiver took them for one, and discarded the updates of the second (defect 9)."""
    scene = Scene(1, "")
    for source in (Source(1, 61234, 100), Source(1, 61235, 99), Source(2, 61234, 100)):
        batch = Batch(source, 1, [SubjectUpdates("/s", [str(source.sender_id).encode()])], 1, 45)
        scene.bench["r1"].deliver(batch, "other", GROUP, scene.bench.now)
    assert scene.received() == [b"61234", b"61235", b"61234"]


# Overload


def test_a_full_receive_queue_is_reported_and_everything_comes_nevertheless() -> None:
    scene = Scene(
        drop=lambda crossing: crossing.message.kind == "data" and crossing.message.seqno == 2 and crossing.now < 0.5,  # type: ignore[attr-defined]
        receive_queue=2000,
        timeout=0.1,
        heartbeat=0.5,
    )
    scene.each([bytes(100)] * 60, gap=0.002)
    scene.run(5.0)
    assert len(scene.received()) == 60
    assert len(scene.kinds("r1", QueueOverflowed)) >= 1
    assert scene.subscribers["r1"].counts()["overflowed"] > 0
    assert scene.subscribers["r1"].held()["receive queue"] == (0, 2000)


def test_a_connection_that_nags_stops_and_reports_it() -> None:
    scene = Scene(
        2,
        nagging_window=0.5,
        nagging_check=2.0,
        nagging_max=5,
        drop=lambda crossing: crossing.receiver == "r1" and crossing.number % 3 == 0,
    )
    for n in range(400):
        scene.publish(b"%d" % n)
        scene.run(0.01)
    (event,) = scene.kinds("r1", ConnectionNagging)
    assert event.requests >= 5
    assert scene.events["r1"][-1] == SubscriptionEnded(0, "nagging")
    before = len(scene.received("r1"))
    scene.run(1.0)
    assert len(scene.received("r1")) == before < 400
    assert len(scene.received("r2")) == 400
    assert not scene.kinds("r2", ConnectionNagging)


def test_a_subscriber_without_subscriptions_forgets_and_leaves() -> None:
    scene = Scene(drop=everything_to("nobody"))
    scene.publish(b"a")
    scene.run(0.1)
    scene.bench["r1"].call(scene.subscribers["r1"].unsubscribe, 0)
    scene.publish(b"b")
    scene.run(1.0)
    assert scene.received() == [b"a"]
    assert scene.subscribers["r1"].held()["publishers"][0] == 0
    assert scene.subscribers["r1"].counts()["data_received"] == 1


def test_wrong_use_is_a_usage_error_that_names_what_is_wrong() -> None:
    scene = Scene()
    subscriber = scene.subscribers["r1"]
    for subscription, match in (
        (Subscription(0, "/x"), "in use"),
        (Subscription(1, "x"), "no '/'"),
        (Subscription(1, "/.../x"), "nothing can follow"),
        (Subscription(1, "/x", "a > 1"), "selector"),
    ):
        with pytest.raises(UsageError, match=match):
            scene.bench["r1"].call(subscriber.subscribe, subscription)
    with pytest.raises(UsageError, match="no subscription 9"):
        scene.bench["r1"].call(subscriber.unsubscribe, 9)
    with pytest.raises(UsageError, match="wildcards"):
        scene.publish(b"", to="/a/*")
    with pytest.raises(UsageError, match="has 9001 bytes"):
        scene.publish(b"", to="/" + "a" * 9000)
