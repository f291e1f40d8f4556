"""SRM's loss recovery in a chain and in a star, beside sections IV-A and IV-B of Floyd et al. (1997)."""

from math import sqrt
from statistics import mean, stdev
from typing import Any

import pytest

from experiments.running.simulate import simulate
from experiments.scenario.scenario import parse
from experiments.theory.multicast import srm_requests
from tests.protocols.srm.networks import chain, run, segments, star, totals

LOST = range(60, 600, 40)
"""Segments lost, 17 round-trip times apart, from when distances have been measured."""
DETERMINISTIC: dict[str, Any] = {"c1": 1.0, "c2": 0.0, "d1": 1.0, "d2": 0.0}


@pytest.mark.parametrize("timers", ["adaptive", "fixed"])
@pytest.mark.parametrize(
    ("members", "source", "cut"), [(2, 0, 1), (3, 0, 2), (10, 0, 1), (10, 0, 5), (10, 0, 9), (10, 3, 5), (10, 9, 4)]
)
def test_in_a_chain_every_loss_has_one_request_and_one_repair(members: int, source: int, cut: int, timers: str) -> None:
    session = run(chain(members, source, cut, segments(*LOST)), 600, timers=timers, **DETERMINISTIC)
    found = totals(session)
    assert found["data_lost"] >= len(LOST)
    assert found["objects_received"] == members - 1
    assert (found["nacks_sent"], found["repairs_sent"]) == (len(LOST), len(LOST))


MEMBERS = 31
EVENTS = 30
SESSIONS = 6


@pytest.mark.parametrize("width", [5.0, 20.0])
def test_in_a_star_as_many_repairs_are_sent_as_in_theory(width: float) -> None:
    """All members but one have the segment and are as far from it: the closed form of requests holds for repairs, too."""
    lost = tuple(range(20, 20 + 5 * EVENTS, 5))
    topology = star(MEMBERS - 1, segments(*lost), everywhere=False)
    # A packet each 0.1 s. Requests are so late that none is repeated before the repair.
    settings: dict[str, Any] = {"timers": "fixed", "c1": 10.0, "c2": 0.0, "d2": width, "rate": 5310.0}
    settings |= {"session_share": 1.0, "session_interval": 0.5}
    counts = [totals(run(topology, 20 + 5 * EVENTS, seed=seed, **settings)) for seed in range(1, SESSIONS + 1)]
    assert all(count["nacks_sent"] == EVENTS for count in counts)
    means = [count["repairs_sent"] / EVENTS for count in counts]
    error = stdev(means) / sqrt(SESSIONS)
    assert abs(mean(means) - srm_requests(MEMBERS, width)) < 4 * error
    assert abs(mean(means) - (1 + (MEMBERS - 2) / width)) < 4 * error + 0.2


def test_adaptive_timers_leave_few_repairs_of_a_loss_and_fixed_ones_of_the_default_width_many() -> None:
    topology = star(30, segments(), everywhere=False, loss=0.01)
    adaptive, fixed = (totals(run(topology, 600, timers=timers)) for timers in ("adaptive", "fixed"))
    assert adaptive["objects_received"] == fixed["objects_received"] == 30
    # Some 160 segments are lost by one or more receivers.
    assert fixed["repairs_sent"] > 15 * 160
    assert adaptive["repairs_sent"] < 3.5 * 160
    assert adaptive["nacks_sent"] < 1.5 * 180


def test_adaptive_timers_leave_few_requests_for_a_loss_that_all_receivers_share() -> None:
    lost = tuple(range(60, 1500, 30))
    counts = [totals(run(star(30, segments(*lost), everywhere=True), 1500, timers=timers)) for timers in ("adaptive", "fixed")]
    adaptive, fixed = (count["nacks_sent"] / len(lost) for count in counts)
    assert fixed > 12.0
    assert adaptive < 6.0
    assert all(count["repairs_sent"] < 1.5 * len(lost) for count in counts)


@pytest.mark.parametrize(("rate", "seed"), [("20Mbit", 1), ("20Mbit", 13), ("20Mbit", 20), ("1Mbit", 11), ("1Mbit", 15)])
def test_a_member_next_to_the_source_does_not_give_up_while_others_take_it_for_far(rate: str, seed: int) -> None:
    # It has measured microseconds, while the others have measured nothing and ignore requests for 60 ms after a repair.
    data: dict[str, Any] = {"name": "near", "seed": seed, "protocol": {"name": "srm", "rate": rate}, "duration": "20s"}
    data |= {"topology": {"kind": "lan", "receivers": 4, "link": {"down": {"loss": "2%"}}}, "workload": {"size": "200kB"}}
    assert simulate(parse(data, "near")).completed
