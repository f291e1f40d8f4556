"""Crashes of a scenario: at a time or at a decision, of a process or of a whole host, and counters over all lives."""

from typing import Any

import pytest

from mcastlab import load, run
from protocols.errors import ConfigError

LAN = {
    "topology": {"kind": "star", "receivers": 3, "link": {"rate": "10Mbit", "delay": "1ms", "down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "5Mbit", "parity": 0, "block": 8, "grtt": "20ms"},
    "workload": [{"kind": "file", "from": "sender", "size": "400kB"}],
    "duration": "30s",
}


def crashed(fault: dict[str, Any], **keys: Any) -> Any:
    """Run the LAN with a fault."""
    return run(load({"name": "crash", **LAN, **keys, "faults": [fault]}))


@pytest.mark.parametrize("count", [1, 4])
def test_a_crash_at_a_decision_begins_when_it_is_made_for_the_nth_time(count: int) -> None:
    fault = {"crash": "r1", "when": {"decision": "nack_backoff", "count": count}, "for": "50ms"}
    strict, fast = (crashed(fault, engine=engine) for engine in ("strict", "fast"))
    assert strict.fingerprint == fast.fingerprint
    assert fast.metrics["injected"] == strict.metrics["injected"]
    assert fast.metrics["injected"]["crash"] == 1


def test_a_decision_that_is_never_made_crashes_nobody() -> None:
    result = crashed({"crash": "r1", "when": {"decision": "nack_backoff", "count": 100_000}})
    assert not result.metrics["injected"].get("crash")


@pytest.mark.parametrize("name", ["norm", "n1", "srm"])
def test_content_of_a_sender_that_restarted_is_verified(name: str) -> None:
    settings = {"probing": "none"} if name == "norm" else {}
    protocol = {"name": name, "rate": "2Mbit", "segment": 500, **settings}
    work = [{"kind": "file", "from": "sender", "size": "100kB"}]
    result = crashed({"crash": "sender", "at": "200ms", "for": "100ms"}, protocol=protocol, workload=work, wire="bytes")
    assert [(row.aborted, row.equal, row.proof) for row in result.receivers] == [(1, True, "sha256")] * 3


def test_counters_are_those_of_all_lives() -> None:
    whole = crashed({"crash": "r1", "at": "20s", "for": "1s"})
    broken = crashed({"crash": "r1", "at": "0.35s", "for": "50ms"})
    # The second life alone asks for less than both together.
    assert broken.receivers[0].nacks_sent + broken.receivers[0].nacks_suppressed > 0
    assert broken.metrics["packets"]["nack"] >= broken.metrics["nacks_sent"] - 1
    assert broken.metrics["nacks_sent"] == broken.metrics["packets"]["nack"]
    assert whole.metrics["nacks_sent"] == whole.metrics["packets"]["nack"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"crash": "r1"}, "either 'at' or, for a crash, 'when' says when it begins"),
        ({"crash": "r1", "at": "1s", "when": {"decision": "x"}}, "'at' or 'when'"),
        ({"crash": ["r1", "r2"], "when": {"decision": "x"}}, "a crash with 'when' is that of one host"),
        ({"crash": "r", "when": {"decision": "x"}}, "a crash with 'when' is that of one host"),
        ({"slow": "r1", "when": {"decision": "x"}, "takes": "1ms"}, "'when' does not belong to slow"),
        ({"crash": "r1", "at": "1s", "disk": "keep"}, "disk"),
    ],
)
def test_a_wrong_crash_is_one_line_that_names_the_key(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        crashed(fault)
    assert "faults.0" in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
