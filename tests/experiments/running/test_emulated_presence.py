"""Receivers that join late and leave early in Mininet, as in the simulator."""

from typing import Any

import pytest

from experiments.running.result import Row
from experiments.running.run import run
from experiments.scenario.scenario import parse

SCENARIO: dict[str, Any] = {
    "name": "presence",
    "topology": {"kind": "star", "receivers": 4, "link": {"down": {"loss": "1%"}}},
    "protocol": {"name": "norm", "rate": "8Mbit", "grtt": "20ms", "robust": 10},
    "workload": [
        {"kind": "file", "size": "200kB"},
        {"kind": "file", "size": "200kB", "at": "800ms"},
        {"kind": "file", "size": "200kB", "at": "1600ms"},
    ],
    "receivers": [{"hosts": ["r2"], "join": "600ms"}, {"hosts": ["r3"], "join": "1400ms"}, {"hosts": ["r4"], "leave": "600ms"}],
    "duration": "20s",
}


@pytest.mark.parametrize("world", ["sim", pytest.param("emu", marks=[pytest.mark.emu, pytest.mark.timed])])
def test_receivers_get_what_was_sent_during_their_membership(world: str) -> None:
    result = run(parse(SCENARIO, "FILE"), world)
    assert result.completed, result
    rows: dict[str, Row] = {row.name: row for row in result.receivers}
    assert {name: row.objects for name, row in rows.items()} == {"r1": 3, "r2": 2, "r3": 1, "r4": 1}
    assert {name: row.visitor for name, row in rows.items()} == {"r1": False, "r2": True, "r3": True, "r4": True}
