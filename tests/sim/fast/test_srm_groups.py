"""Lockstep of SRM members: equal results with any memory of members and packets, and few calls of single members."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.simulator import bytes_per_receiver
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.srm.fast import group, policy
from protocols.srm.fast.receiver import FastSrmReceiver
from protocols.srm.fast.sender import FastSrmSender
from tests.sim.test_arq_engines import FAST, STRICT, fingerprints, scenario

PARAMETERS = st.fixed_dictionaries(
    {
        "session_share": st.sampled_from([0.05, 0.2, 0.0]),
        "session_interval": st.sampled_from([0.1, 0.01]),
        "timers": st.sampled_from(["adaptive", "fixed"]),
        "cache": st.sampled_from([4096, 30, 5, 0]),
        "peers": st.sampled_from([128, 8, 3]),
        "robust": st.sampled_from([20, 2]),
        "timeout": st.sampled_from([0.25, 0.03]),
    }
)
FORGETFUL = {"session_interval": 0.01, "cache": 0, "peers": 3, "robust": 2, "timeout": 0.25}


def network(receivers: int, loss: str, delay: str = "1ms") -> dict[str, Any]:
    """Return a star with losses both ways on the links of the receivers."""
    link = {"rate": "100Mbit", "delay": delay, "down": {"loss": loss}, "up": {"loss": "1%"}}
    return {"kind": "star", "receivers": receivers, "trunk": {"delay": "2ms"}, "link": link}


@settings(deadline=None, max_examples=12, derandomize=True)
@given(st.integers(0, 1000), st.integers(4, 25), st.sampled_from(["1%", "20%"]), PARAMETERS, st.sampled_from([4, 256]))
@example(7, 6, "20%", FORGETFUL, 4)
@example(7, 6, "20%", FORGETFUL, 256)
@example(7, 30, "4%", {"session_share": 0.2, "session_interval": 0.01, "peers": 8}, 4)
def test_engines_agree_whatever_members_remember(
    seed: int, receivers: int, loss: str, parameters: dict[str, Any], large: int
) -> None:
    """`large` is the number of members from which on they share what they remember."""
    protocol = {"name": "srm", "rate": "4Mbit", **parameters}
    work: list[dict[str, Any]] = [{"size": 60_000}, {"size": 20_000, "at": "80ms"}, {"size": 1400, "at": "1s"}]
    written = scenario(network(receivers, loss), protocol, work, seed=seed, duration="4s")
    with patch.object(group, "LARGE", large):
        assert len(fingerprints(written, FAST, STRICT)) == 1


def test_engines_agree_when_samples_are_smaller_than_the_bits_computed_for_all_members_tell() -> None:
    protocol = {"name": "srm", "rate": "4Mbit", "session_share": 0.2, "session_interval": "10ms", "peers": 3}
    written = scenario(network(25, "2%"), protocol, [{"size": 60_000}], seed=3, duration="3s")
    with patch.object(group, "LARGE", 4):
        usual = fingerprints(written, FAST, STRICT)
        with patch.object(policy, "LAST_BITS", 1):
            assert fingerprints(written, FAST) == usual
    assert len(usual) == 1


def test_pauses_of_the_session_end_in_lockstep() -> None:
    protocol = {"name": "srm", "rate": "4Mbit", "timeout": "30ms", "session_interval": "20ms"}
    work = [{"size": 30_000, "at": at} for at in ("0s", "1s", "2s")]
    assert len(fingerprints(scenario(network(12, "1%"), protocol, work, duration="5s"), FAST, STRICT)) == 1


def calls_of(method: str, machine: type, monkeypatch: pytest.MonkeyPatch, receivers: int, size: int) -> tuple[int, int]:
    """Return how often a method is called in a session of one object, and the packets sent in it."""
    calls = 0
    plain = getattr(machine, method)

    def counted(self: Any, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        plain(self, *arguments)

    monkeypatch.setattr(machine, method, counted)
    written = scenario(network(receivers, "1%", "5ms"), {"name": "srm", "rate": "10Mbit"}, [{"size": size}])
    result = run(parse(written | FAST, "srm"))
    assert result.completed
    return calls, result.metrics["packets"]["total"]


def test_most_deliveries_call_no_single_member(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, packets = calls_of("receive", FastSrmReceiver, monkeypatch, 60, 280_000)
    assert 0 < calls < 0.2 * 60 * packets


def test_members_that_lose_a_request_or_a_repair_are_not_called_for_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, packets = calls_of("receive", FastSrmReceiver, monkeypatch, 10, 700_000)
    # 1 % of units lost, each with a call at the next unit, a repair, and few messages before the group is known.
    assert 0 < calls < 0.03 * 10 * packets


def test_a_source_is_woken_for_few_of_its_new_units(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, _ = calls_of("wake", FastSrmSender, monkeypatch, 10, 700_000)
    assert 0 < calls < 0.3 * 500


def test_members_of_a_large_group_take_less_memory_than_with_a_table_each() -> None:
    found = []
    for large in (256, 1000):
        with patch.object(group, "LARGE", large):
            found.append(bytes_per_receiver(300, 2, case="srm"))
    assert found[0] < 0.5 * found[1]
