"""Whatever goes wrong, a run depends neither on the engine nor on how packets are carried."""

from typing import Any

import pytest

from experiments.run import run
from experiments.scenario import parse
from experiments.search import random_plan
from protocols.rng import Rng, key_of

LOSSY = {"rate": "20Mbit", "delay": "2ms", "queue": 20, "down": {"loss": "3%"}, "up": {"loss": "1%"}}
TOPOLOGIES: list[dict[str, Any]] = [
    {"kind": "star", "receivers": 7, "trunk": {"rate": "50Mbit", "delay": "1ms", "queue": 50}, "link": LOSSY},
    {"kind": "tree", "depth": 2, "fanout": 2, "receivers": 6, "trunk": {"delay": "1ms"}, "link": {"down": {"loss": "5%"}}},
    {"kind": "chain", "switches": 3, "receivers": 2, "trunk": {"delay": "5ms", "down": {"loss": "2%"}}, "link": LOSSY},
    {"kind": "lan", "receivers": 5, "link": LOSSY},
]
WAYS: list[dict[str, Any]] = [{"engine": "fast"}, {"engine": "strict"}, {"wire": "bytes"}]


@pytest.mark.parametrize("number", range(24))
def test_random_faults_leave_the_same_fingerprint_and_break_no_rule(number: int) -> None:
    base = {
        "name": "equal",
        "seed": number,
        "topology": TOPOLOGIES[number % 4],
        "protocol": {"name": "norm", "rate": "8Mbit", "grtt": "30ms", "robust": 4},
        "workload": {"size": "120kB"},
        "duration": "8s",
    }
    plan = random_plan(Rng(key_of(9, number)), parse(base, "equal").build_topology(), 1.0)
    results = [run(parse(base | way | {"faults": plan}, "equal")) for way in WAYS]
    assert len({result.fingerprint for result in results}) == 1
    assert [result.violations for result in results] == [[]] * len(WAYS)
