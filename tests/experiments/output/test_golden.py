"""The output of every command, at 80 and 120 columns, is that of its golden file; and no cell is cut at any width.

Commands that need Spark have theirs in tests/experiments/analysis/test_output.py.
"""

import io
import json
import re
from collections import Counter
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from rich.console import Console

from emu.capabilities import Capability
from emu.requirements import APT
from experiments.cli import invoke
from experiments.commands import doctor
from experiments.contract import suite
from experiments.contract.suite import Finding
from experiments.output.budget import Table, text_of
from experiments.output.extras import Extra
from experiments.output.printer import Printer
from experiments.running import run as running
from experiments.running.run import run
from experiments.scenario.scenario import Scenario
from experiments.zoo import zoo
from tests.support.captures import VECTORS
from tests.support.golden import WIDTHS, check_golden, recorded
from tests.tidy.tree import ROOT

SMALL = ("--set", "workload.size=200kB")
CROWDED = '{kind: star, receivers: 60, trunk: {rate: 100Mbit}, link: {rate: 100Mbit, delay: 5ms, down: {loss: "2%"}}}'
CAPTURE = "capture.pcap"
COMMANDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "run": (0, ("run", "lan-file")),
    "run-n1": (0, ("run", "lan-file", *SMALL, "--set", "protocol={name: n1, rate: 20Mbit}")),
    "run-srm": (0, ("run", "lan-file", *SMALL, "--set", "protocol={name: srm, rate: 20Mbit}")),
    "run-incomplete": (1, ("run", "lan-file", "--set", "duration=10ms")),
    "run-many": (0, ("run", "lan-file", *SMALL, "--set", f"topology={CROWDED}")),
    "run-faults": (1, ("run", "lan-file", *SMALL, "--set", "faults=[{at: 50ms, crash: r3}]")),
    "run-cross-traffic": (1, ("run", "cross-traffic", "--set", "duration=500ms")),
    "run-routers": (0, ("run", "router-single-mac", *SMALL)),
    "run-cases": (0, ("run", "{cases}")),
    "demo": (0, ("demo",)),
    "compare": (0, ("compare", "lan-file", *SMALL, "--runs", "2")),
    "twin": (0, ("twin", "twin/lan-5", "--worlds", "sim,sim", "--runs", "2", *SMALL)),
    "contract": (1, ("contract", "n1")),
    "search": (0, ("search", "lan-file", *SMALL, "--runs", "2")),
    "channel-fit": (0, ("channel", "fit", "{losses}")),
    "channel-show": (0, ("channel", "show", "{model: gilbert-elliott, p: 1%, r: 30%}")),
    "inspect": (0, ("inspect", CAPTURE)),
    "inspect-packet": (0, ("inspect", CAPTURE, "--packet", "20")),
    "doctor": (3, ("doctor",)),
    "doctor-scenario": (1, ("doctor", "no-parity", "--set", "protocol.rate=64kbit")),
    "scenarios": (0, ("scenarios",)),
    "validate": (0, ("validate", "--effort", "0.05", "--family", "implosion_drop", "--jobs", "1")),
    "zoo": (0, ("zoo", "--only", "stuck-gap", "--jobs", "1")),
    "claims": (0, ("claims", "003", "--only", "D13", "--only", "D22", "--jobs", "1")),
    "topo": (0, ("topo", "lan-file", "--svg", "lan.svg", "--core", "lan.xml")),
    "ladder": (0, ("ladder", "seen", "--svg", "ladder.svg")),
    "explain": (0, ("explain", CAPTURE, "--object", "0", "--receiver", "2")),
    "new": (0, ("new", "protocol", "gossip")),
}
"""Golden file -> exit code and command line."""
BRIEF = (
    *("run", "run-n1", "run-incomplete", "run-many", "run-cases", "demo", "compare", "twin", "search", "channel-fit"),
    *("inspect", "doctor", "scenarios", "validate"),
)
CASES = """
name: three
topology: {kind: star, receivers: 2, link: {rate: 100Mbit, down: {loss: 2%}}}
protocol: {name: norm, rate: 10Mbit}
workload: {size: 60kB}
compare:
  no-parity: {protocol: {parity: 0}}
  parity: {protocol: {auto_parity: 2}}
"""
FINDINGS = [
    Finding("Every object arrives at every receiver, equal and once", "fake, loss 10%", "ok"),
    Finding("A session repeats itself: equal random streams give equal packets and events at equal times", "", "ok"),
    Finding(
        "Wake-ups that come up to 50 ms late do no harm: everything still arrives", "", "broken", "object 1 of r2 is missing"
    ),
]
FOUND = [
    Capability("root", "real-time priority, TAP devices", present=True, needed=True),
    Capability("mnexec", "hosts, links and rate limits", False, True, "not found", "sudo apt-get install -y mininet"),
    Capability(
        "netem", "delay, jitter and loss in the kernel (netem)", False, False, "no module", "sudo modprobe -a sch_netem"
    ),
    Capability("ovs", "a switch", False, False, "not loaded", f"{APT} openvswitch-switch && sudo modprobe openvswitch"),
]


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Make a folder with what the commands read, a simulated Mininet, and a machine that lacks something."""
    monkeypatch.chdir(tmp_path)
    copy(VECTORS / "file_loss5.pcap", CAPTURE)
    Path("cases.yaml").write_text(CASES, encoding="utf-8")
    Path("losses.txt").write_text("".join("0" * 40 + "1" * (1 + place % 3) for place in range(40)), encoding="utf-8")
    Path("zoo").mkdir()
    copy(zoo.SCENARIOS / "small-cache.yaml", "zoo")
    monkeypatch.setattr(zoo, "SCENARIOS", Path("zoo"))
    monkeypatch.setitem(running.BACKENDS, "emu", _emulated)
    monkeypatch.setattr(doctor, "list_capabilities", lambda: FOUND)
    monkeypatch.setattr(doctor, "EXTRAS", (Extra("data", "time series", ("json",)), Extra("spark", "sweeps", ("no_such",))))
    monkeypatch.setattr(suite, "examine", lambda case: iter(FINDINGS))


def _emulated(scenario: Scenario, recording: object = None) -> Any:
    result = run(scenario, "sim")
    lateness = {"p50": 0.0001, "p99": 0.0023, "max": 0.01}
    health = {"healthy": True, "reasons": [], "lateness": lateness}
    return result.__class__(
        **{name: getattr(result, name) for name in result.__slots__}
        | {"backend": "emu", "fingerprint": None, "metrics": result.metrics | {"health": health, "events": None}}
    )


def command(name: str) -> list[str]:
    """Return the command line of a golden file."""
    return [part.replace("{cases}", "cases.yaml").replace("{losses}", "losses.txt") for part in COMMANDS[name][1]]


def output(name: str, width: int, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Run a command at a width, check its exit code, and return its output."""
    Path("gossip.py").unlink(missing_ok=True)
    if name == "ladder":
        assert (
            invoke(["run", "shared-loss", "--set", "topology.receivers=3", "--set", "trace=true", "--out", "seen", "--brief"])
            == 0
        )

    def play() -> None:
        assert invoke([*command(name), *more]) == COMMANDS[name][0]

    return recorded(play, width, capsys)


class Watched:
    """Keeps the tables that commands print, to compare them with the output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables: list[Table] = []
        plain = Printer.table

        def table(printer: Printer, shown: Table) -> None:
            self.tables.append(shown)
            plain(printer, shown)

        monkeypatch.setattr(Printer, "table", table)


def missing_cells(table: Table, width: int) -> list[str]:
    """Return the words of cells that a table does not show at this width, though it shows their column."""
    file = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        printer = Printer(console=Console(file=file, highlight=False))
        printer.table(table)
    shown = file.getvalue()
    left_out = re.sub(r"\s+", " ", shown.partition("left out at ")[2]).partition("; --wide")[0].partition(": ")[2].split(", ")
    words = set(shown.split())
    cut = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        if column.name in left_out or (all(cell in (None, "", "-") for cell in cells)):
            continue
        cut += [word for cell in cells for word in text_of(cell, column).split() if word not in words]
    return cut


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_of_a_command_is_that_of_its_golden_files(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    for width in WIDTHS:
        check_golden(f"{name}.{width}", output(name, width, capsys))
    for table in watched.tables[: len(watched.tables) // len(WIDTHS)]:
        for width in (40, 60, 80, 120, 200):
            assert not [word for word in missing_cells(table, width) if len(word) <= width // 2]


@pytest.mark.parametrize("name", ["doctor", "doctor-scenario"])
def test_the_doctor_prints_no_line_longer_than_the_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(name, 80, capsys).splitlines()
    assert max(map(len, lines)) <= 80


def test_with_brief_every_command_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [output(name, 80, capsys, "--brief") for name in BRIEF]
    assert [text.count("\n") for text in lines] == [1] * len(lines)
    check_golden("brief", "".join(lines))


def test_the_golden_files_are_those_of_the_commands() -> None:
    from tests.support.golden import FOLDER

    elsewhere = {"analyse", "analyse-effects", "results", "results-columns", "sweep", "report", "transfer"}
    made = {re.sub(r"\.\d+$", "", path.stem) for path in FOLDER.glob("*.txt")}
    assert made - elsewhere == {*COMMANDS, "brief"}
    assert sum(path.stat().st_size for path in FOLDER.glob("*.txt")) < 200_000
    assert ROOT in FOLDER.parents


JSON = {
    "demo": {"worlds", "missing"},
    "topo": {"written", "missing"},
    "ladder": {"written", "from", "to", "explained"},
    "new": {"written", "next"},
}


@pytest.mark.parametrize("name", JSON)
def test_with_json_a_command_prints_one_object_and_nothing_else(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(name, 80, capsys, "--json")
    assert text.count("\n") == 1
    found = json.loads(text)
    assert set(found) == JSON[name]
    assert all(Path(path).is_file() for path in found.get("written", ()))


def test_the_schema_is_one_line_of_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["schema", "--json"]) == 0
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert json.loads(text)["properties"]["protocol"]


def test_an_unknown_column_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run", None)
    assert invoke(["run", "lan-file", "--columns", "receiver,suppresed"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mcastlab: --columns: value 'suppresed' is not allowed; one of receiver, complete")
    assert err.endswith("did you mean 'suppressed'?\n")


def test_columns_of_one_table_leave_the_others_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = output("run", 80, capsys, "--columns", "loss,receiver")
    assert "complete receivers" in text
    assert re.search(r"^loss \[%\]  receiver\n─+\n {4}0.98  r1$", text, re.M)


SWEEP = """
name: small
scenario: {topology: {kind: star, receivers: 2}, protocol: {name: norm}, workload: {size: 10kB}, duration: 10s}
axes: {topology.receivers: [1, 2]}
replications: 3
"""


def test_the_output_of_a_sweep_is_that_of_its_golden_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = pytest.importorskip("experiments.sweep.run.driver")
    monkeypatch.setattr("experiments.sweep.run.spark_session.check_java", lambda: None)
    status = Counter({"ok": 3, "error": 1})
    made = driver.SweepSummary(Path("out/small"), "1", total=6, made=2, known=2, other_versions=5, unreadable=1, status=status)
    monkeypatch.setattr(driver, "run_sweep", lambda *_: made)
    Path("small.yaml").write_text(SWEEP, encoding="utf-8")
    for width in WIDTHS:
        check_golden(f"sweep.{width}", recorded(lambda: invoke(["sweep", "small.yaml"]), width, capsys))
    assert recorded(lambda: invoke(["sweep", "small.yaml", "--brief"]), 80, capsys).count("\n") == 1
