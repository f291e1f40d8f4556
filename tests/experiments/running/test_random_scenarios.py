"""Both engines, with objects and with bytes, give one result for any scenario. MCASTLAB_SCENARIOS says how many are tried."""

import os
from dataclasses import replace
from typing import Any

import pytest

from experiments.running.run import run
from experiments.scenario.scenario import Scenario
from tests.support.scenarios import random_scenario

WAYS = [{"engine": engine, "wire": wire} for engine in ("strict", "fast") for wire in ("objects", "bytes")]
COSTS = ("cpu_s", "events", "peak_memory")
"""Metrics of how a run was computed, and not of what happened in it."""


def outcome(scenario: Scenario, way: dict[str, Any]) -> dict[str, Any]:
    """Return all values of a run's result that do not depend on the way it is computed."""
    found = run(scenario.model_copy(update=way))
    metrics = {key: value for key, value in found.metrics.items() if key not in COSTS}
    rows = tuple(replace(row, proof="") for row in found.receivers)
    return replace(found, digest="", metrics=metrics, receivers=rows).plain()


@pytest.mark.parametrize("number", range(int(os.environ.get("MCASTLAB_SCENARIOS", "12"))))
def test_a_random_scenario_has_one_result(number: int) -> None:
    scenario = random_scenario(number)
    first, *others = (outcome(scenario, way) for way in WAYS)
    for other in others:
        assert other == first
