"""Faults of a scenario: validation, effects on a run, and invariants under faults."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import ConfigError, UnsupportedError

STAR = {"kind": "star", "receivers": 5, "link": {"rate": "100Mbit", "delay": "2ms", "down": {"loss": "3%"}}}
BASE: dict[str, Any] = {
    "name": "faulty",
    "topology": STAR,
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "50ms", "robust": 5},
    "workload": {"size": "400kB"},
}


def faulty(*faults: dict[str, Any], **changes: Any) -> Scenario:
    return parse(BASE | {"faults": list(faults)} | changes, "FILE")


BAD = [
    ({"at": "1s"}, "faults.0: value .* is not allowed; .*one of partition, hold, .* says what happens, and here are none"),
    ({"at": "1s", "crash": "r1", "step": "r2", "forward": "1s"}, "here are crash, step"),
    ({"crash": "r1"}, "faults.0: value {'crash': 'r1'} is not allowed; either 'at'"),
    ({"at": "1s", "explode": "r1"}, "faults.0.explode: value 'r1' is not allowed; unknown key, known here: at, when, for, "),
    ({"at": "1s", "crash": "r9"}, "faults.0.crash: value .*'r9'.* is not allowed; 'r9' is no host"),
    ({"at": "1s", "partition": [["r1"], ["r1", "r2"]]}, "faults.0.partition: value .* is not allowed; 'r1' is named twice"),
    ({"at": "1s", "partition": [["r1"]]}, "faults.0.partition: value .* is not allowed; .* at least 2 items"),
    ({"at": "1s", "flap": ["r1", "r2"], "for": "1s"}, "faults.0.flap: value .* is not allowed; these two have no link"),
    ({"at": "1s", "flap": ["s1", "r2"]}, "flap needs 'for'"),
    ({"at": "1s", "flap": ["s1", "r1"], "for": "2s", "every": "1s"}, "'every' is longer than 'for'"),
    ({"at": "1s", "change": ["s1", "r"]}, "change needs 'rate' or 'loss'"),
    (
        {"at": "1s", "change": ["s1", "r1"], "loss": "1%"},
        r"faults.0.change: value \[s1, r1\] is not allowed; .* named as a whole",
    ),
    ({"at": "1s", "change": ["r", "s1"], "loss": "1%"}, "faults.0.change: value .* is not allowed; .* on their way to it"),
    ({"at": "1s", "change": ["s1", "r"], "loss": "101%"}, "faults.0.loss: value '101%' is not allowed"),
    ({"at": "1s", "change": ["s1", "r"], "loss": 0, "size": 5}, "'size' does not belong to change"),
    ({"at": "1s", "drift": "r1"}, "drift needs 'factor'"),
    ({"at": "1s", "drift": "r1", "factor": 0}, "faults.0.factor: value 0 is not allowed"),
    ({"at": "1s", "step": "r1", "forward": "-1s"}, "faults.0.forward: value '-1s' is not allowed; it is not a duration"),
    ({"at": "1s", "crash": "r1", "room": 5}, "'room' does not belong to crash"),
    ({"at": "soon", "crash": "r1"}, "faults.0.at: value 'soon' is not allowed; it is not a duration"),
]


@pytest.mark.parametrize(("fault", "words"), BAD)
def test_an_invalid_fault_is_refused_in_one_line(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        faulty(fault)
    assert "\n" not in str(caught.value)


GOOD: dict[str, list[dict[str, Any]]] = {
    "partition": [{"at": "100ms", "partition": [["r1", "r2"], "rest"], "for": "150ms"}],
    "one way": [{"at": "100ms", "partition": ["sender", ["r1", "r2"]], "for": "150ms", "oneway": True}],
    "hold": [{"at": "100ms", "hold": ["r1", "rest"], "for": "150ms"}],
    "flap": [{"at": "100ms", "flap": ["s1", "r1"], "for": "20ms", "times": 3}],
    "change": [{"at": "100ms", "change": ["s1", "r"], "rate": "9Mbit", "loss": "20%", "for": "150ms"}],
    "trunk": [{"at": "100ms", "flap": ["sender", "s1"], "for": "50ms"}],
    "sender crash": [{"at": "100ms", "crash": "sender", "for": "100ms"}],
    "slow": [{"at": "100ms", "slow": "r1", "takes": "3ms", "room": 8, "for": "1s"}],
    "drift": [{"at": 0, "drift": "r1", "factor": 1.5}, {"at": "50ms", "drift": "sender", "factor": 0.7, "for": "100ms"}],
    "step": [{"at": "100ms", "step": "r", "forward": "2s"}, {"at": "150ms", "step": "sender", "forward": "2s"}],
    "storm": [{"at": "100ms", "storm": "r1", "rate": "200Mbit", "for": "50ms"}],
}


@pytest.mark.parametrize("name", GOOD)
def test_norm_survives_the_fault_and_message_objects_and_encoded_messages_agree(name: str) -> None:
    objects, encoded = (run(faulty(*GOOD[name], wire=wire)) for wire in ("objects", "bytes"))
    for result in (objects, encoded):
        assert result.completed, name
        assert result.violations == []
        assert result.metrics["invariants"]["checked"] == ["once", "intact", "sent", "memory", "quiescence"]
    assert objects.fingerprint == encoded.fingerprint
    assert objects.fingerprint != run(faulty()).fingerprint


def test_only_the_crashed_receiver_misses_objects() -> None:
    result = run(faulty({"at": "100ms", "crash": "r2"}))
    assert [row.name for row in result.receivers if not row.equal] == ["r2"]
    assert result.metrics["injected"] == {"crash": 1, "dropped": 0}
    assert not result.completed
    assert result.violations == []


def test_a_restarted_receiver_gets_what_is_sent_afterwards() -> None:
    work = [{"size": "200kB"}, {"size": "50kB", "at": "1s"}]
    result = run(faulty({"at": "100ms", "crash": "r2", "for": "300ms"}, workload=work))
    assert [row.objects for row in result.receivers] == [2, 1, 2, 2, 2]


def test_a_restarted_sender_repeats_its_workload_as_a_new_instance() -> None:
    result = run(faulty({"at": "200ms", "crash": "sender", "for": "100ms"}, wire="bytes"))
    assert result.completed
    assert {row.proof for row in result.receivers} == {"sha256"}
    # 400 kB at 10 Mbit/s take 0.33 s: the first instance was cut short, and the second sent everything.
    assert result.metrics["completion_time"] > 0.3 + 0.33


def test_a_fault_plan_survives_a_round_trip_through_plain_values() -> None:
    scenario = faulty(*(fault for faults in GOOD.values() for fault in faults))
    again = parse(BASE | {"faults": scenario.plain()["faults"]}, "FILE")
    assert again.faults == scenario.faults
    assert again.digest() == scenario.digest()
    json.dumps(scenario.plain(), allow_nan=False)


def test_faults_that_mininet_cannot_do_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnsupportedError, match="Mininet can't do 'drift'"):
        run(faulty({"at": "1s", "drift": "r1", "factor": 2}), "emu")
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(BASE | {"faults": [{"at": "1s", "drift": "r1", "factor": 2}]}))
    assert invoke(["run", str(file), "--on", "emu"]) == 3
    assert "the simulator can" in capsys.readouterr().err
