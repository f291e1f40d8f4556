"""`mcastlab compare`: protocols run on the same losses, and differences are reported with intervals."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.compare.comparison import collate, compare, variants
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
    repairs = {name: result.metrics["repairs_sent"] for name, _, result in compare(small, chosen, 1)}
    assert repairs["a"] == repairs["n1"] == repairs["n2"] > 20
    # NORM repairs nothing else; the other protocols also lose the headers of their objects.
    assert repairs["norm"] == pytest.approx(repairs["a"], abs=3)


def test_rate_and_segment_apply_to_all_protocols_and_other_keys_to_their_own(small: Scenario) -> None:
    chosen = variants(small, ["norm", "n2"], {"n2": {"window": "100ms"}})
    assert chosen["norm"] == small.protocol
    assert (chosen["n2"].config.rate, chosen["n2"].config.window, chosen["n2"].config.robust) == (1_250_000.0, 0.1, 20)


def test_differences_are_paired_with_the_first_protocol(small: Scenario) -> None:
    chosen = variants(small, ["n2", "a"], {})
    found = collate(small, compare(small, chosen, 3))
    assert found.completed == {"n2": 3, "a": 3}
    gap = found.differences["a"]["packets"]
    ours, theirs = found.values["a"]["packets"], found.values["n2"]["packets"]
    assert gap.mean == pytest.approx(sum((x or 0) - (y or 0) for x, y in zip(ours, theirs, strict=True)) / 3)
    assert gap.low > 0


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
