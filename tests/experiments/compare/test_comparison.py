"""`mcastlab compare`: protocols run on the same losses, and differences are reported with intervals."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.compare.comparison import collate, compare, usual_protocols, variants
from experiments.scenario.scenario import Scenario, parse

SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "star", "receivers": 5, "link": {"rate": "100Mbit", "down": {"loss": "5%"}}},
    "protocol": {"name": "norm", "rate": "10Mbit", "grtt": "20ms", "robust": 5, "fec": 0, "parity": 0},
    "workload": {"size": "200kB"},
}


@pytest.fixture
def small() -> Scenario:
    return parse(SMALL, "small")


def test_pure_retransmission_repeats_equally_under_every_protocol(small: Scenario) -> None:
    # The same first transmissions and the same repairs are lost, so each packet takes the same number of rounds.
    chosen = variants(small, ["norm", "a", "n1", "n2"], {"n1": {"gather": "100ms"}, "n2": {"timeout": "400ms"}})
    repairs = {name: result.metrics["repairs_sent"] for name, _, result in compare(chosen, 1)}
    assert repairs["a"] == repairs["n1"] == repairs["n2"] > 20
    # NORM repairs nothing else; the other protocols also lose the headers of their objects.
    assert repairs["norm"] == pytest.approx(repairs["a"], abs=3)


def test_rate_and_segment_apply_to_all_protocols_and_other_keys_to_their_own(small: Scenario) -> None:
    chosen = variants(small, ["norm", "n2"], {"n2": {"window": "100ms"}})
    assert chosen["norm"].protocol == small.protocol
    config = chosen["n2"].protocol.config
    assert (config.rate, config.window, config.robust) == (1_250_000.0, 0.1, 20)


def test_differences_are_paired_with_the_first_protocol(small: Scenario) -> None:
    chosen = variants(small, ["n2", "a"], {})
    found = collate("small", compare(chosen, 3))
    assert found.completed == {"n2": 3, "a": 3}
    gap = found.differences["a"]["packets"]
    ours, theirs = found.values["a"]["packets"], found.values["n2"]["packets"]
    assert gap.mean == pytest.approx(sum((x or 0) - (y or 0) for x, y in zip(ours, theirs, strict=True)) / 3)
    assert gap.low > 0


def test_the_protocol_of_a_scenario_is_the_first_by_default_unless_it_is_one_of_the_usual(small: Scenario) -> None:
    assert usual_protocols(small) == ["norm", "a", "n1", "n2", "srm"]
    other = parse({**SMALL, "protocol": {"name": "fjm2", "rate": "10Mbit"}}, "small")
    assert usual_protocols(other) == ["fjm2", "norm", "a", "n1", "n2", "srm"]


def test_cases_of_a_scenario_are_what_is_compared_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = {
        "slow": {"protocol": {"rate": "1Mbit"}},
        "other": {"protocol": {"name": "n2"}},
        "lossless": {"topology": {"link": {"down": {"loss": 0}}}},
    }
    file = tmp_path / "cases.yaml"
    file.write_text(json.dumps({**SMALL, "compare": cases}), encoding="utf-8")
    command = ["compare", str(file), "--runs", "2", "--with", "other.window=100ms"]
    assert invoke([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["protocols"] == ["slow", "other", "lossless"]
    times = {name: sum(values["completion_time"]) / 2 for name, values in found["values"].items()}
    assert times["slow"] > 1.6 > times["other"]
    assert found["values"]["lossless"]["repairs_sent"] == [0, 0]
    assert "other 100ms (window)" in found["notes"][0]
    assert invoke(command) == 0
    assert "2 runs each, seeds 1 to 2, equal seeds" in capsys.readouterr().out
    assert invoke([*command, "--protocols", "norm,n2", "--json", "--with", "n2.window=100ms"]) == 2
    assert "--with: value 'other' is not allowed; one of norm, n2" in capsys.readouterr().err
    assert invoke([*command, "--with", "no.window=1ms"]) == 2
    assert "--with: value 'no' is not allowed; one of slow, other, lossless" in capsys.readouterr().err


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(json.dumps(SMALL), encoding="utf-8")
    return str(file)


def test_the_command_prints_json_or_a_table(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", path, "--protocols", "n1,n2", "--runs", "2"]
    assert invoke([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["protocols"] == ["n1", "n2"]
    assert output["differences"]["n2"]["feedback"]["pairs"] == 2
    assert invoke(command) == 0
    assert "95 % interval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--protocols", "norm"], "at least two"),
        (["--protocols", "norm,x"], "each one of"),
        (["--with", "n1"], "PROTOCOL.key=value"),
        (["--with", "n1=3"], "PROTOCOL.key=value"),
        (["--with", "n1.colour=3"], "unknown key"),
        (["--on", "moon"], "one of sim, emu"),
    ],
)
def test_mistakes_are_one_line_errors(path: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["compare", path, *options]) == 2
    line = capsys.readouterr().err
    assert words in line
    assert line.count("\n") == 1


def test_two_files_that_give_their_protocol_one_name_are_told(
    path: str, gossip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = gossip.with_name("copy.py")
    copy.write_text(gossip.read_text())
    assert invoke(["compare", path, "--protocols", f"{gossip},norm,{copy}"]) == 2
    told = f"--protocols: value {str(copy)!r} is not allowed; it calls its protocol 'gossip', as {str(gossip)!r} does"
    assert told in capsys.readouterr().err
