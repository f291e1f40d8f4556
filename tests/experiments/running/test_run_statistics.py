"""Statistics in the result of a run: kept at an interval, in the simulator and in Mininet."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import ConfigError

SCENARIO: dict[str, Any] = {
    "name": "kept",
    "topology": {"kind": "star", "receivers": 2, "link": {"rate": "10Mbit", "delay": "1ms", "down": {"loss": "2%"}}},
    "protocol": {"name": "norm", "rate": "4Mbit", "grtt": "20ms", "robust": 5},
    "workload": {"kind": "file", "size": "300kB"},
}


def rows_of(plain: dict[str, Any], host: str) -> list[dict[str, Any]]:
    """Return the session of a host at all times."""
    return [row["statistics"]["parts"][0] for row in plain["statistics"] if row["host"] == host]


def check(plain: dict[str, Any]) -> None:
    """Check that the statistics of a run agree with its receivers."""
    assert [row["time"] for row in plain["statistics"]] == sorted(row["time"] for row in plain["statistics"])
    for receiver in plain["receivers"]:
        told = rows_of(plain, receiver["name"])
        assert told[-1]["values"]["bytes_received"] == 300_000
        assert told[-1]["values"]["nacks_sent"] == receiver["nacks_sent"]
        octets = [each["values"]["bytes_received"] for each in told]
        assert octets == sorted(octets)
        assert 0 < octets[0] < 300_000
    assert rows_of(plain, "sender")[-1]["values"]["bytes_sent"] == 300_000


def test_a_simulation_keeps_them_without_any_other_effect() -> None:
    result = run(parse({**SCENARIO, "statistics": "200ms"}, "kept"))
    check(result.plain())
    assert {row["time"] for row in result.statistics or ()} >= {0.2, 0.4, 0.6000000000000001}
    plain = run(parse(SCENARIO, "kept"))
    assert plain.statistics is None
    assert "statistics" not in plain.plain()
    assert (plain.fingerprint, plain.digest) == (result.fingerprint, result.digest)


@pytest.mark.emu
def test_an_emulation_keeps_them() -> None:
    check(run(parse({**SCENARIO, "statistics": "200ms"}, "kept"), "emu").plain())


@pytest.mark.emu
def test_a_host_that_crashes_keeps_those_of_all_its_lives() -> None:
    faults = [{"at": "300ms", "for": "300ms", "crash": ["r1"]}]
    plain = run(parse({**SCENARIO, "statistics": "100ms", "faults": faults}, "kept"), "emu").plain()
    times = [row["time"] for row in plain["statistics"] if row["host"] == "r1"]
    assert any(time < 0.3 for time in times)
    assert not any(0.45 < time < 0.6 for time in times)
    assert any(time > 0.65 for time in times)


def test_the_command_writes_them_where_the_result_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kept.yaml"
    file.write_text(json.dumps(SCENARIO))
    assert invoke(["run", str(file), "--stats", "1s", "--out", str(tmp_path / "out"), "--brief"]) == 0
    check_json = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {row["host"] for row in check_json["statistics"]} == {"sender", "r1", "r2"}
    capsys.readouterr()
    assert invoke(["run", str(file), "--stats", "1s"]) == 2
    assert capsys.readouterr().err == "mcastlab: --stats: needs a result to be kept in; give --out DIR or --json\n"


def test_too_many_snapshots_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"statistics: value 1e-05 is not allowed; at least 0.00018 s for so many hosts"):
        parse({**SCENARIO, "statistics": "10us"}, "kept")
