"""The Distributor under lateness, strangers and floods; further rules of the contract: tests/contract/test_messages.py."""

from experiments.contract.losses import randomly
from protocols.distributor.events import SegmentsLost
from protocols.distributor.messages import (
    Batch,
    Configuration,
    Fragment,
    Heartbeat,
    Nak,
    Request,
    Source,
    SubjectUpdates,
)
from tests.protocols.distributor.scene import GROUP, Scene


def texts(count: int) -> list[bytes]:
    return [f"update {n}".encode() for n in range(count)]


def test_late_and_early_wake_ups_do_no_harm() -> None:
    scene = Scene(2, "pq", randomly(0.1), late=0.02, holdback=0.005, holdback_threshold=0.0, timeout=0.05, heartbeat=0.1)
    for n, text in enumerate(texts(60)):
        scene.publish(text, by="pq"[n % 2])
        for host in scene.bench.hosts.values():
            machine = scene.publishers.get(host.name) or scene.subscribers[host.name]
            host.call(machine.wake)
        scene.run(0.003)
    scene.run(10.0)
    for name in ("r1", "r2"):
        assert (scene.received(name, by=1), scene.received(name, by=2)) == (texts(60)[::2], texts(60)[1::2])


def test_a_session_repeats_itself() -> None:
    found = []
    for _ in range(2):
        scene = Scene(3, drop=randomly(0.2), holdback=0.005, timeout=0.05)
        scene.each(texts(100), gap=0.002)
        scene.run(10.0)
        found.append([(name, list(map(repr, events))) for name, events in scene.events.items()])
    assert found[0] == found[1]


STRANGE = Source(77, 78, 79, 80)
NOISE = [
    Heartbeat(STRANGE, 0, 0, 0, (1 << 31) - 1),
    Configuration(STRANGE, 0, 0, 0, -1, -1, "x" * 1000),
    Batch(STRANGE, 5, [SubjectUpdates("no slash", [b""]), SubjectUpdates("/t", [b"no message"])], 2, 60),
    Fragment(STRANGE, -6, 1, b"abc", "/t", 1 << 24),
    Fragment(STRANGE, 7, 4, b""),
    Request(STRANGE, 0, 1, 0, -(1 << 31), (1 << 31) - 1, "", ""),
    Request(STRANGE, 0, 2, 0, 5, 1, "", ""),
    Nak(STRANGE, 0, 0, (1, 2, 3, -4)),
    Nak(Source(1, 1, 0), 0, 0, ()),
]


def test_messages_of_strangers_stop_no_transfer_and_fill_no_memory() -> None:
    scene = Scene(2, drop=randomly(0.1), timeout=0.05, heartbeat=0.1, retries=40)
    for n, text in enumerate(texts(150)):
        scene.publish(text)
        for host in scene.bench.hosts.values():
            host.deliver(NOISE[n % len(NOISE)], "stranger", GROUP, scene.bench.now)
        scene.run(0.003)
    for n in range(100, 6000):
        scene.bench["r1"].deliver(Heartbeat(Source(n, n, n), 0, 0, 0, n), "stranger", GROUP, scene.bench.now)
    scene.run(10.0)
    for name in ("r1", "r2"):
        assert scene.received(name, by=1) == texts(150)
    for machine in (*scene.publishers.values(), *scene.subscribers.values()):
        assert all(kept <= most for kept, most in machine.held().values())


def test_a_request_whose_numbers_are_not_in_order_leaves_what_is_missing_as_it_is() -> None:
    scene = Scene(timeout=0.05, heartbeat=0.1, retries=40)
    scene.each(texts(1))
    scene.run(0.01)
    source = scene.publishers["p"]._source
    # Segments 2 to 40 are missing, and will not come.
    scene.bench["r1"].deliver(Heartbeat(source, 0, 0, source.start, 40), "stranger", GROUP, scene.bench.now)
    for low, high in ((30, 10), (40, 2), (20, 19), ((1 << 31) - 1, -(1 << 31))):
        upside_down = Request(STRANGE, 0, source.sender_id, source.start, low, high, "", "")
        scene.bench["r1"].deliver(upside_down, "stranger", GROUP, scene.bench.now)
        scene.run(0.2)
    (reception,) = scene.subscribers["r1"]._receptions.values()
    ranges = [(item.low, item.high) for item in reception.requests._missing]
    assert [number for low, high in ranges for number in range(low, high + 1)] == list(range(2, 41))
    scene.run(10.0)


def test_a_flood_of_requests_causes_few_retransmissions_and_new_updates_go_on() -> None:
    scene = Scene(rate=1_000_000.0, segment=1000, server_holdback=0.02, queue=1000)
    scene.each([bytes(900)] * 50)
    flood = Request(STRANGE, 0, 1, 0, 1, 50, "", "")
    began = scene.bench.now
    while scene.bench.now < began + 1.0:
        for _ in range(20):
            scene.bench["p"].deliver(flood, "stranger", GROUP, scene.bench.now)
        scene.publish(bytes(900))
        scene.run(0.01)
    assert len(scene.received()) >= 140
    # Half of the rate at the most; without merging 100,000 segments would have been requested.
    assert scene.publishers["p"].counts()["repairs_sent"] < 1200


def test_a_flood_of_naks_stops_no_other_publisher_and_what_it_refuses_is_reported() -> None:
    scene = Scene(1, "pq", randomly(0.2), timeout=0.05, heartbeat=0.1, retries=40)
    forged = {name: scene.publishers[name]._source for name in "pq"}
    for n, text in enumerate(texts(200)):
        scene.publish(text, by="pq"[n % 2])
        near = range(max(1, n // 2 - 20), n // 2 + 20)
        for _ in range(20):
            # Of a stranger, and in the name of q: what is missing, what is here, what comes later, and nothing at all.
            for source, numbers in ((STRANGE, near), (forged["q"], near), (forged["q"], ()), (forged["q"], (-5, 0, 1 << 30))):
                scene.bench["r1"].deliver(Nak(source, 0, 0, tuple(numbers)), "stranger", GROUP, scene.bench.now)
        scene.run(0.003)
    scene.run(10.0)
    assert scene.received(by=1) == texts(200)[::2]
    of_q, lost = scene.received(by=2), sum(event.count for event in scene.kinds("r1", SegmentsLost))
    assert {event.source.host for event in scene.kinds("r1", SegmentsLost)} == {2}
    assert of_q == sorted(of_q, key=texts(200).index)
    assert len(of_q) + lost == 100
    assert lost > 0
    assert all(kept <= most for kept, most in scene.subscribers["r1"].held().values())


def test_a_flood_of_naks_to_a_publisher_costs_it_nothing() -> None:
    scene = Scene(1)
    for _ in range(10_000):
        scene.bench["p"].deliver(Nak(scene.publishers["p"]._source, 0, 0, (1, 2, 3)), "stranger", GROUP, scene.bench.now)
    before = scene.bench.kinds()
    scene.run(0.01)
    assert scene.bench.kinds() == before
    scene.publish(b"update")
    scene.run(0.1)
    assert scene.received() == [b"update"]


def test_who_takes_the_identity_of_a_publisher_but_for_one_part_is_another_publisher() -> None:
    scene = Scene(1)
    real = scene.publishers["p"]._source
    scene.each(texts(20), gap=0.002)
    for place in range(3):
        other = real._replace(**{real._fields[place]: real[place] + 1})
        for seqno in (1 << 20, -7):
            scene.bench["r1"].deliver(
                Batch(other, seqno, [SubjectUpdates("/s", [b"false"])], 1, 50), "stranger", GROUP, scene.bench.now
            )
    scene.each(texts(40)[20:], gap=0.002)
    scene.run(1.0)
    assert scene.received(by=1)[:1] == texts(1)
    true = [text for text in scene.received() if text != b"false"]
    assert true == texts(40)
