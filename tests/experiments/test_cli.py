"""The command line: exit codes, one line per error, and pure JSON output with --json."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.running import run as running
from experiments.running.run import run
from experiments.scenario.scenario import Scenario
from protocols.errors import UnsupportedError, WireError

SMALL = """
name: small
topology: {kind: star, receivers: 3, link: {rate: 100Mbit, down: {loss: 2%}}}
protocol: {name: norm, rate: 10Mbit, grtt: 50ms, robust: 5}
workload: {size: 60kB}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def test_a_run_prints_exactly_one_json_object(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["completed"] is True
    assert out.count("\n") == 1
    assert err == ""


def test_the_default_output_is_a_table_with_every_receiver(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario]) == 0
    out = capsys.readouterr().out
    for word in ("3 of 3", "erasure accounting", "fingerprint", "r1", "r3", "s1-r: rate 100Mbit, loss model bernoulli p 0.02"):
        assert word in out


def test_seed_and_set_change_the_run(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    invoke(["run", scenario, "--json", "--seed", "7", "--set", "topology.receivers=4", "--set", "workload.size=1kB"])
    result = json.loads(capsys.readouterr().out)
    assert (result["seed"], len(result["receivers"]), result["metrics"]["content_bytes"]) == (7, 4, 1000)


def test_an_incomplete_run_exits_with_code_1(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--json", "--set", "duration=10ms"]) == 1
    assert json.loads(capsys.readouterr().out)["completed"] is False


def test_out_receives_the_result_the_scenario_and_the_rows(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a" / "b"
    assert invoke(["run", scenario, "--json", "--out", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert json.loads((out / "result.json").read_text()) == result
    assert json.loads((out / "scenario.json").read_text())["protocol"]["rate"] == 1_250_000
    with (out / "receivers.csv").open() as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["r1", "r2", "r3"]


def test_of_many_receivers_the_worst_are_printed_and_all_are_written(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ["--set", "topology={kind: lan, receivers: 1001}", "--set", "workload.size=1kB"]
    assert invoke(["run", scenario, *many]) == 0
    out = capsys.readouterr().out
    assert "1001 receivers, complete 1001" in out
    assert "rows of 1001 receivers: written by --out DIR" in out
    assert len(out.splitlines()) < 60
    assert invoke(["run", scenario, *many, "--out", str(tmp_path / "o")]) == 0
    # A long path has a line of its own.
    assert f"rows of 1001 receivers: in {tmp_path / 'o' / 'receivers.csv'}" in " ".join(capsys.readouterr().out.split())
    assert len((tmp_path / "o" / "receivers.csv").read_text().splitlines()) == 1002


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "missing.yaml"], "missing.yaml: can't be read (No such file or directory)"),
        (["run", "{scenario}", "--set", "topology.receivers=0"], "small.yaml: topology.receivers: value 0 is not allowed; it"),
        (["run", "{scenario}", "--on", "moon"], "--on: value 'moon' is not allowed; one of sim, emu"),
        (["run", "{scenario}", "--seed", "-1"], "small.yaml: seed: value -1 is not allowed"),
        (["run", "{scenario}", "--seed", "x"], "--seed: value 'x' is not allowed; it should be a valid integer"),
        (["compare", "{scenario}", "--runs", "0"], "--runs: value '0' is not allowed; it should be greater than or equal to 1"),
        (
            ["compare", "{scenario}", "--with", "norm.grtt=fast"],
            "small under norm: protocol.grtt: value 'fast' is not allowed; a duration",
        ),
        (["channel", "show", "{{loss: 5%}}"], "channel {loss: 5%}: model: is missing; one of perfect, bernoulli, content"),
        (["channel", "show", "lan-fil"], "channel: 'lan-fil' is neither a file nor a channel like 1%"),
        (["run", "{scenario}", "--out", "{scenario}"], "--out: value "),
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "{scenario}", "--nonsense"], "No such option: --nonsense"),
        (["fly"], "No such command 'fly'"),
        (["send", "missing.bin", "--group", "239.0.0.1:6003"], "missing.bin: is not a file"),
        (["send", "{scenario}", "--group", "239.0.0.1"], "'239.0.0.1' is not an address and a port"),
        (["send", "{scenario}", "--group", "0.0.0.0:6003"], "--group: value '0.0.0.0:6003' is not allowed; the address of a"),
        (["send", "{scenario}", "--group", "127.0.0.1:6003", "--iface", "lo"], "--group: 127.0.0.1 is this end's own address"),
        (
            ["send", "{scenario}", "--group", "239.0.0.1:6003", "--tos", "256"],
            "--tos: value '256' is not allowed; a number from",
        ),
        (["recv", "--group", "239.0.0.1:6003", "--dir", ".", "--iface", "lo", "--source", "me"], "--source: value 'me' is not"),
        (["recv", "--group", "232.0.0.1:6003", "--dir", ".", "--iface", "lo"], "--group: 232.0.0.1 is for source-specific"),
        (["send", "{scenario}", "--group", "239.0.0.1:6003", "--iface", "nope0"], "iface: 'nope0' is no device"),
        (["send", "{scenario}", "--group", "239.0.0.1:6003", "--rate", "fast"], "--rate: value 'fast' is not allowed; a rate"),
        (["send", "{scenario}", "--group", "239.0.0.1:6003", "--auto-parity", "17"], "--auto-parity: value 17 is not allowed"),
        (
            ["send", "{scenario}", "--group", "239.0.0.1:6003", "--fec", "6"],
            "--fec: value 6 is not allowed; one of 0, 2, 5, 129",
        ),
        (["send", "{scenario}", "--group", "239.0.0.1:6003", "--node", "0"], "--node: value 0 is not allowed"),
        (["recv", "--group", "239.0.0.1:6003"], "Missing option '--dir'"),
        (["recv", "--group", "239.0.0.1:6003", "--dir", "{scenario}", "--iface", "127.0.0.1"], "--dir: value "),
        (["recv", "--group", "239.0.0.1:0", "--dir", "."], "the port of '239.0.0.1:0' is not a number from 1 to 65535"),
    ],
)
def test_bad_input_exits_with_code_2_and_one_line(
    arguments: list[str], line: str, scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([argument.format(scenario=scenario) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mcastlab: ")
    assert line in err


def after_an_interrupt() -> Exception:
    """Return an error that was raised while a KeyboardInterrupt was handled, as Spark's of a cancelled job."""
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("job 3 cancelled")
    except RuntimeError as error:
        return error


def failing(error: BaseException) -> Any:
    def fail(scenario: Scenario, recording: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UnsupportedError("no namespaces; apt install them"), 3, "mcastlab: no namespaces; apt install them"),
        (WireError("two\nlines"), 1, "mcastlab: two lines"),
        (KeyboardInterrupt(), 130, ""),
        (after_an_interrupt(), 130, ""),
    ],
)
def test_the_cause_of_an_aborted_run_sets_the_exit_code(
    error: BaseException,
    code: int,
    line: str,
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(running.BACKENDS, "emu", failing(error))
    assert invoke(["run", scenario, "--on", "emu"]) == code
    assert capsys.readouterr().err.strip() == line


def test_an_emulation_that_did_not_keep_up_is_marked_with_a_warning(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = {"p50": 0.002, "p99": 0.03, "max": 0.1}

    def slow(requested: Scenario, recording: object) -> Any:
        result = run(requested, "sim")
        result.metrics["health"] = {"healthy": False, "reasons": ["links late", "a queue full"], "lateness": late}
        return result

    monkeypatch.setitem(running.BACKENDS, "emu", slow)
    assert invoke(["run", scenario, "--on", "emu"]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(": ")[0] for line in err.splitlines()] == ["warning"] * 2
    assert err.splitlines()[1].endswith("not reliable: a queue full")
    told = {" ".join(line.split()) for line in out.splitlines()}
    assert told >= {
        "emulation on time NO",
        "lateness of links, median [ms] 2.00",
        "lateness of links, p99 [ms] 30.00",
        "lateness of links, maximum [ms] 100.00",
    }


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schema"]) == 0
    assert set(json.loads(capsys.readouterr().out)["required"]) == {"name", "topology", "protocol", "workload"}


def test_version_prints_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out.strip()[0].isdigit()


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "demo", "send", "recv", "schema", "ladder", "topo"):
        assert invoke([command, "--help"]) == 0
    assert invoke(["--help"]) == 0
    assert "Traceback" not in capsys.readouterr().out


def test_the_demo_runs_only_the_simulator_where_mininet_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(running.BACKENDS, "emu", failing(UnsupportedError("no mnexec; apt-get install mininet")))
    assert invoke(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "simulator" in out
    assert "4 of 4" in out
    assert err == "Mininet can't run here: no mnexec; apt-get install mininet\n"


def test_the_demo_compares_both_worlds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(running.BACKENDS, "emu", lambda scenario, recording: run(scenario, "sim", recording))
    assert invoke(["demo"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "complete receivers" in line]
    assert line.count("4 of 4") == 2


@pytest.mark.parametrize(
    "line",
    [
        "run small.yaml --trace ./small.yaml",
        "topo small.yaml --svg small.yaml",
        "search small.yaml --runs 1 --out small.yaml",
        "inspect a.pcap --html a.pcap",
        "ladder seen --svg seen/trace.jsonl",
        "report seen --out seen/result.json",
    ],
)
def test_an_output_that_is_an_input_is_refused_and_nothing_is_lost(
    line: str, scenario: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(scenario).parent
    monkeypatch.chdir(folder)
    (folder / "seen").mkdir()
    files = [folder / "small.yaml", folder / "a.pcap", folder / "seen" / "trace.jsonl", folder / "seen" / "result.json"]
    for file in files[1:]:
        file.write_text("kept")
    before = [file.read_bytes() for file in files]
    assert invoke(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "is not allowed; it is a" in err
    assert [file.read_bytes() for file in files] == before


def test_an_output_of_an_earlier_command_is_written_again(
    scenario: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen, drawing = str(tmp_path / "seen"), str(tmp_path / "seen" / "ladder.svg")
    for _ in range(2):
        assert invoke(["run", scenario, "--out", seen, "--trace", f"{seen}/trace.jsonl", "--brief"]) == 0
        assert invoke(["ladder", seen, "--svg", drawing]) == 0
    capsys.readouterr()


def test_scenarios_are_listed_by_words_of_their_names_and_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["scenarios", "tunnels", "three", "--brief"]) == 0
    assert capsys.readouterr().out.split() == ["fjm2-registry", "fjm2-three-sites"]
    assert invoke(["scenarios", "moonshine"]) == 2
    assert "WORD: value 'moonshine' is not allowed; no ready scenario has it" in capsys.readouterr().err
