"""A publisher that is faster than its subscribers slows down or tells; nothing is lost silently, in any world."""

import sys
from typing import Any

import pytest

from emu.namespaces import run_isolated
from experiments.running.run import run
from experiments.scenario.cases import load_cases
from tests.emu.lab import Lab
from topologies.generators import Star

# 8 Mbit/s of updates, over links of 4 Mbit/s with short queues.
FASTER = (
    *("workload.0.size=1000", "workload.0.count=1500", "workload.1.count=20", "duration=60s"),
    *("topology.link.rate=4Mbit", "topology.link.queue=20"),
)


def accounts(backend: str, *settings: str) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    """Run the scenario of market data; return its result, and what became of the messages by publisher and by subscription."""
    scenario = load_cases("market-data", [*FASTER, *settings], 1)[""]
    result = run(scenario, backend)
    messages = result.plain()["messages"]
    return result, messages["publishers"], messages["subscriptions"]


@pytest.mark.parametrize("backend", ["sim", pytest.param("emu", marks=[pytest.mark.emu, pytest.mark.slow])])
def test_what_a_network_has_no_room_for_is_told_as_lost(backend: str) -> None:
    # A cache too small to repair what the queues drop.
    result, _, subscriptions = accounts(backend, "protocol.rate=20Mbit", "protocol.cache=50000")
    assert result.metrics["invariants"]["violations"] == []
    assert all(row["delivered"] + row["lost"] == row["due"] for row in subscriptions)
    assert sum(row["lost"] for row in subscriptions) > 100
    assert [row["untold"] for row in subscriptions] == [0] * len(subscriptions)
    assert all(row["in_order"] and not row["repeated"] for row in subscriptions)


@pytest.mark.parametrize("backend", ["sim", pytest.param("emu", marks=[pytest.mark.emu, pytest.mark.slow])])
def test_a_publisher_with_a_rate_is_slowed_down_and_nothing_is_lost(backend: str) -> None:
    result, publishers, subscriptions = accounts(backend, "protocol.rate=3Mbit")
    assert result.completed
    assert publishers[0]["blocked"] > 2.0
    assert [(row["delivered"], row["lost"]) for row in subscriptions] == [(row["due"], 0) for row in subscriptions]


PROGRAM = """
import asyncio, json, sys, time, mcastlab
from mcastlab import DeliveryOverflowed, SegmentsLost

role, group, iface, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

async def publish(connection):
    await connection.announce()
    await asyncio.sleep(0.3)
    for first in range(0, count, 1000):
        await connection.publish_many("/s", [str(number).encode() for number in range(first, first + 1000)])
    await connection.flush()
    await asyncio.sleep(4.0)
    return {"published": count}

async def subscribe(connection):
    updates, got, told = connection.subscribe("/s", most=2000), [], {"dropped": 0, "lost": 0}

    async def hear():
        async for event in connection:
            if isinstance(event, DeliveryOverflowed):
                told["dropped"] = event.dropped
            elif isinstance(event, SegmentsLost):
                told["lost"] += event.count

    hearing = asyncio.create_task(hear())
    while True:
        try:
            together = await asyncio.wait_for(updates.together(), 5.0 if got else 30.0)
        except TimeoutError:
            break
        got += map(int, together.contents)
        # Ten thousand updates a second at the most, and the event loop stands still meanwhile.
        time.sleep(len(together.contents) / 10_000)
    await asyncio.sleep(0)
    hearing.cancel()
    counted = connection.statistics()["updates_dropped"]
    return {"received": len(got), "sorted": got == sorted(set(got)), **told, "counted": counted}

async def main():
    async with mcastlab.distributor(group, iface, holdback="10ms", management=None) as connection:
        print(json.dumps(await (publish if role == "pub" else subscribe)(connection)), flush=True)

asyncio.run(main())
"""


@pytest.mark.emu
@pytest.mark.slow
def test_a_program_that_is_too_slow_is_told_of_every_update_that_it_missed() -> None:
    count, group = 60_000, "239.7.7.10:5656"

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        lab = Lab(Star(receivers=1).build())
        command = [sys.executable, "-c", PROGRAM]
        subscriber = lab.start("r1", [*command, "sub", group, lab.device("r1"), str(count)])
        lab.await_join("r1", "239.7.7.10")
        publisher = lab.start("sender", [*command, "pub", group, lab.device("sender"), str(count)])
        return lab.end(publisher, 60)[-1], lab.end(subscriber, 60)[-1]

    published, found = run_isolated(work)
    assert published["published"] == count
    assert found["sorted"]
    missed = count - found["received"]
    assert missed > 0
    # Datagrams of many updates that the host had no time for may be lost for good; then this is told as well.
    assert found["dropped"] == found["counted"]
    assert found["dropped"] == missed or found["lost"] > 0
    assert found["dropped"] > 0 or found["lost"] > 0
