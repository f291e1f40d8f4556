"""Tunnels of a scenario that know each other by a registry alone, in both worlds."""

from pathlib import Path
from typing import Any

import pytest

from experiments.running.run import run
from experiments.running.simulate import simulate
from experiments.scenario.ready import find_scenario
from experiments.scenario.scenario import load
from protocols.errors import ConfigError

READY = find_scenario(Path("fjm2-registry"))
PERIOD, RTT = 1.0, 0.02
"""Seconds, of the scenario."""
EMULATED = (pytest.mark.emu, pytest.mark.serial)
WORLDS = ["sim", pytest.param("emu", marks=EMULATED)]
AWAY = "faults=[{at: 3s, crash: a, for: 3s}, {at: 4s, crash: g3.host, for: 1s}]"
"""The registry is away from 3 s to 6 s, and the tunnel of site 3 restarts meanwhile."""


def longest(result: Any) -> dict[str, float]:
    """Check that every message came, and return the longest latency of each subscriber in seconds."""
    messages = result.metrics["messages"]
    assert messages["delivered"] == messages["due"] > 1100
    assert result.metrics["invariants"]["violations"] == []
    return {row["name"]: row["latency_max"] for row in result.messages["subscriptions"]}


@pytest.mark.parametrize("world", WORLDS)
def test_a_new_peer_is_known_within_a_period_and_a_round_trip(world: Any) -> None:
    """F28: the message that has waited longest is the first one after the tunnel crashed, 3 s before it comes again."""
    found = longest(run(load(READY), world))
    assert found["r2"] < 0.5
    assert 3.0 < found["r3"] < 3.0 + PERIOD + RTT


@pytest.mark.parametrize(("world", "state"), [("sim", 0), ("sim", 1), pytest.param("emu", 1, marks=EMULATED)])
def test_a_registry_that_is_killed_stops_no_traffic_and_knows_who_came_meanwhile_within_a_lease(world: Any, state: int) -> None:
    lease = 4.0
    found = longest(run(load(READY, (AWAY, f"nodes.a={{role: admin, lease: {lease}s, state: {state}}}")), world))
    assert found["r2"] < 0.5
    assert found["r3"] < 2.0 + lease


def test_both_engines_and_encoded_messages_leave_the_same_fingerprint() -> None:
    short = ("workload.0.until=4s", "duration=6s", "faults=[{at: 2.5s, crash: g3.host, for: 1s}]")
    prints = {simulate(load(READY, (*short, extra))).fingerprint for extra in ("engine=fast", "engine=strict", "wire=bytes")}
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("a={role: admin, period: 0s}", r"nodes.a.period: value '0s' is not allowed; a duration from 50ms to 1h"),
        ("a={role: admin, ring: 5}", r"nodes.a.ring: value 5 is not allowed; unknown key, known here: role, period, lease"),
        ("r2={role: admin}", r"nodes.r2.role: value 'admin' is not allowed; a takes it, and one is enough"),
    ],
)
def test_a_wrong_registry_is_refused_in_one_line(node: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load(READY, (f"nodes.{node}",))
    assert "\n" not in str(caught.value)
