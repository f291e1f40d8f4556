"""`benchmarks.fjm2`: it compares what it counts; limits of speed are for a quiet machine."""

import argparse
from typing import Any

import pytest

from benchmarks.fjm2 import MEASURES, held, session
from benchmarks.fjm2_brokers import mosquitto_rate
from benchmarks.fjm2_sim import sim_ratio_norm
from emu.peers.brokers import BROKERS

NOTHING = argparse.Namespace()


def row(**more: Any) -> dict[str, Any]:
    """Return what a subscriber says that received 101 messages in a second."""
    return {"received": 101, "wrong": 0, "told_lost": 0, "began": 1.0, "ended": 2.0, **more}


def test_only_what_is_complete_and_right_at_all_subscribers_counts_and_the_slowest_does() -> None:
    assert held(101, [row(), row(ended=3.0)]) == 50.0
    for fault in ({"received": 100}, {"wrong": 1}, {"told_lost": 1}):
        assert held(101, [row(), row(**fault)]) == 0.0


@pytest.mark.emu
def test_messages_between_namespaces_arrive_whole() -> None:
    published, received = session(1024, 2, 2000, 300)
    assert held(300, received) > 0
    assert published["messages_published"] == 300
    assert all(found["cpu"] > 0 for found in received)


@pytest.mark.emu
@pytest.mark.skipif(BROKERS["mosquitto"].lacks is not None, reason="needs mosquitto and mosquitto-clients")
def test_what_a_broker_delivers_is_compared_too() -> None:
    assert mosquitto_rate(1024, 2, 200, qualities="0") > 100


@pytest.mark.parametrize("name", ["selector_us", "pool_gain"])
def test_what_needs_no_network_is_measured(name: str) -> None:
    assert 0 < MEASURES[name](NOTHING, print) < 100


def test_the_cost_of_simulated_subscribers_is_compared_with_receivers_of_norm() -> None:
    assert sim_ratio_norm(200, 30) > 1.0
