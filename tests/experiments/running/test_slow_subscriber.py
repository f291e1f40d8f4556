"""A publisher at full speed for a minute beside a dead and a slow subscriber: FJM2 is bounded, the bus is not."""

from pathlib import Path

import pytest

from experiments.running.result import Result
from experiments.running.run import run
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load

# A fifth of the rates of the scenario, so that a minute of messages takes a second or two.
SLOWER = ("topology.link.rate=2Mbit", "protocol={name: fjm2, rate: 1.8Mbit, grtt: 20ms, pool: 1MB, cache_max: 100}")


def played(*sets: str) -> Result:
    return run(load(find_scenario(Path("slow-subscriber")), ("compare={}", *sets)))


def test_a_dead_and_a_slow_subscriber_cost_the_others_of_fjm2_nothing() -> None:
    result = played(*SLOWER)
    assert result.metrics["faults"] == {}
    assert result.messages is not None
    first, second, dead, slow = result.messages["subscriptions"]
    for each in (first, second):
        assert each["delivered"] == each["due"] == each["promised"] > 3000
        assert each["goodput_mbit_s"] == pytest.approx(1.74, rel=0.05)
    assert dead["delivered"] < 120
    assert slow["delivered"] < slow["due"] / 2


def test_the_bus_dies_beside_them_unless_its_messages_are_apart() -> None:
    assert "out of memory" in played().metrics["faults"]["sender"]["error"]
    paced = played("workload.0.rate=20/s")
    assert paced.metrics["faults"] == {}
    assert paced.metrics["messages"]["published"] == 1191
