"""Containers from pools, and new memory in their place."""

from pathlib import Path
from resource import getpagesize
from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.fjm2 import Fjm2Config
from protocols.fjm2.allocation import containers
from protocols.fjm2.content import KnownMessage, MessageSink
from protocols.fjm2.pool import Container, Pool
from protocols.jms import jms_message

SIZE, COUNT, ALLOCATE = 4000, 300, 1e-8
OCTETS = 4096
"""Bytes of the container of a message."""


def busy(wire: str = "objects", **protocol: Any) -> float:
    """Return the processor time that a publisher of messages stated, in seconds."""
    written = {
        "name": "pools",
        "wire": wire,
        "topology": {"kind": "lan", "receivers": 1, "link": {"rate": "100Mbit", "queue": 100}},
        "protocol": {
            "name": "fjm2",
            "rate": "50Mbit",
            "grtt": "1ms",
            "queue": 5,
            "cache_max": 10,
            "allocate": "10ns",
            **protocol,
        },
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": SIZE, "count": COUNT, "rate": "saturated"},
            {"kind": "subscribe", "hosts": ["r1"], "to": "topic:t"},
        ],
    }
    result = run(parse(written, "pools"), "sim")
    assert result.ok
    return float(sum(row["busy"] for row in result.metrics["processors"]))


def test_new_memory_is_paid_for_with_every_message() -> None:
    assert busy(pooling=False) == pytest.approx(COUNT * OCTETS * ALLOCATE)


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_pool_is_paid_for_once(wire: str) -> None:
    # The cache of 10, the queue of 5, and those on the way between them.
    assert 15 * OCTETS * ALLOCATE <= busy(wire) <= 30 * OCTETS * ALLOCATE


def test_containers_without_a_pool_are_bounded_and_never_used_again() -> None:
    pool = containers(Fjm2Config(pool=10_000, pooling=False), Container)
    seen = list[Container]()
    for _ in range(5):
        taken = [pool.take(4000), pool.take(4000), pool.take(4000)]
        assert taken[2] is None
        for container in taken[:2]:
            assert container is not None
            container.memory[:3] = b"abc"
            seen.append(container)
            pool.give_back(container)
    assert len({id(each) for each in seen}) == len(seen) == 10
    assert (pool.held, pool.taken - pool.returned, pool.exhausted) == (0, 0, 5)


def test_a_container_of_a_pool_is_used_again_though_nothing_was_written_to_it() -> None:
    spent = list[float]()
    pool = containers(Fjm2Config(pool=10_000, allocate=1e-9), Container, spent.append)
    for _ in range(5):
        container = pool.take(4000)
        assert container is not None
        pool.give_back(container)
    assert spent == [pytest.approx(OCTETS * 1e-9)]


def test_what_all_subscribers_have_of_a_known_message_is_never_used_for_another_one() -> None:
    pool = containers(Fjm2Config(pool=10_000), MessageSink)
    known = KnownMessage(jms_message(1, 2, "topic:t", 4000), Container(OCTETS))
    assert pool.take(4000, known) is known
    assert known.read(0, 4) == bytes(4)
    pool.give_back(known)
    assert pool.held == 0
    following = pool.take(4000)
    assert following is not None
    assert following is not known


def test_a_container_takes_memory_for_what_was_written_and_not_for_what_was_announced() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()

    pool = Pool(400 << 20, MessageSink)
    before = resident()
    sinks = [pool.take(15_000_000) for _ in range(20)]
    for sink in sinks:
        assert sink is not None
        sink.write(10_000_000, b"x" * 1400)
        assert sink.read(9_999_999, 3) == b"\0xx"
    assert resident() - before < 20_000_000
