"""Recording options of a run: files are written as requested, and unsupported recordings are one-line errors."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from experiments.captures.capture_file import CaptureFile
from experiments.captures.datagrams import read_capture
from experiments.cli import invoke

SMALL = """
name: small
topology: {kind: star, receivers: 3, trunk: {delay: 2ms}, link: {rate: 100Mbit, down: {loss: 5%}}}
protocol: {name: norm, rate: 10Mbit, grtt: 50ms, robust: 5}
workload: {size: 60kB}
"""
ALL = ["--set", "capture=[s1-r1, sender]", "--set", "trace=true", "--set", "series=100ms"]


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


def result(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Parse the one JSON object printed."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_scenario_selects_its_recordings(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--json"]) == 0
    plain = result(capsys)
    assert invoke(["run", scenario, "--json", "--out", str(tmp_path / "run"), *ALL]) == 0
    seen = result(capsys)
    assert (seen["fingerprint"], seen["digest"]) == (plain["fingerprint"], plain["digest"])
    assert sorted(path.name for path in (tmp_path / "run" / "captures").iterdir()) == ["s1-r1.pcapng", "sender.pcapng"]
    head = json.loads((tmp_path / "run" / "trace.jsonl").read_text().splitlines()[0])
    assert (head["scenario"], head["digest"], head["senders"]) == ("small", seen["digest"], ["sender"])


def test_command_line_options_select_recordings(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--json", "--out", str(tmp_path / "a"), *ALL]) == 0
    options = ["--capture", "s1-r1", "--capture", "sender", "--trace", str(tmp_path / "t.jsonl"), "--series", "100ms"]
    assert invoke(["run", scenario, "--json", "--out", str(tmp_path / "b"), *options]) == 0
    for name in ("captures/s1-r1.pcapng", "captures/sender.pcapng", "series.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a" / "trace.jsonl").read_bytes() == (tmp_path / "t.jsonl").read_bytes()


def test_a_trace_needs_no_folder(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--json", "--trace", str(tmp_path / "new" / "t.jsonl")]) == 0
    assert (tmp_path / "new" / "t.jsonl").stat().st_size > 1000


def test_time_series_are_a_table_of_time_measure_entity_and_value(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", scenario, "--json", "--out", str(tmp_path), "--series", "50ms"]) == 0
    totals = result(capsys)["metrics"]["packets"]
    table = parquet.read_table(tmp_path / "series.parquet")
    assert table.column_names == ["time", "measure", "of", "value"]
    assert float(table.schema.metadata[b"interval"]) == 0.05
    rows = table.to_pylist()
    sent = [row["value"] for row in rows if row["measure"] == "packets_sent" and row["of"] == "data"]
    assert sum(sent) == totals["data"]
    assert rows[-1]["measure"] == "receivers_complete"
    assert rows[-1]["value"] == 3


def test_faults_and_cross_traffic_are_recorded(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults = ["--set", "faults=[{at: 10ms, crash: r1, for: 20ms}, {at: 5ms, storm: r2, rate: 5Mbit, for: 50ms}]"]
    assert invoke(["run", scenario, "--json", *faults]) in (0, 1)
    plain = result(capsys)
    invoke(["run", scenario, "--json", "--out", str(tmp_path / "run"), *faults, *ALL, "--capture", "s1"])
    seen = result(capsys)
    assert seen["fingerprint"] == plain["fingerprint"]
    lines = (tmp_path / "run" / "trace.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["name"] == "end"
    assert any('"kind":"noise"' in line for line in lines)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--capture", "s1-r1"], "capture: needs a folder to write to; give --out DIR"),
        (["--set", "trace=true"], "trace: needs a folder to write to; give --out DIR"),
        (["--series", "1s"], "series: needs a folder to write to; give --out DIR"),
        (["--out", "{out}", "--capture", "r7"], "capture: 'r7' is no host, switch or link here"),
        (["--out", "{out}", "--set", "trace=[r7]"], "trace: 'r7' is no host of this topology"),
        (["--out", "{out}", "--series", "0s"], "series: value '0s' is not allowed"),
        (["--out", "{out}", "--series", "soon"], "series: value 'soon' is not allowed"),
        (["--out", "{out}", "--series", "1us"], "series: value 1e-06 is not allowed; at least 6e-05 s in a run of this"),
        (["--trace", "{scenario}/t.jsonl"], "t.jsonl' is not allowed; it can't be written"),
    ],
)
def test_unsupported_recordings_are_refused_in_one_line(
    options: list[str], line: str, scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option.format(out=tmp_path / "out", scenario=scenario) for option in options]
    assert invoke(["run", scenario, *given]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert line in err


def test_only_the_simulator_can_record(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", scenario, "--on", "emu", "--trace", str(tmp_path / "t.jsonl")]) == 3
    assert "only the simulator" in capsys.readouterr().err


def test_series_without_pyarrow_name_the_command_that_installs_it(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert invoke(["run", scenario, "--out", str(tmp_path), "--series", "1s"]) == 3
    assert "pip install 'mcastlab[data]'" in capsys.readouterr().err


def test_hosts_stands_for_a_capture_of_every_host(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--capture", "hosts", "--capture", "s1", "--capture", "r2"]
    assert invoke(["run", scenario, "--json", "--out", str(tmp_path), *options]) == 0
    names = sorted(path.stem for path in (tmp_path / "captures").iterdir())
    assert names == ["r1", "r2", "r3", "s1", "sender"]


def test_hosts_is_refused_for_too_many(scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--capture", "hosts", "--set", "topology.receivers=1000", "--out", str(tmp_path)]
    assert invoke(["run", scenario, *options]) == 2
    assert "capture: 'hosts' is not allowed for 1,001 hosts; at most 200, so name some" in capsys.readouterr().err


def test_a_capture_of_content_without_bytes_is_as_long_as_one_of_real_content(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", "drip"]) == 0
    sizes = {}
    for wire in ("objects", "bytes"):
        options = ["--set", "protocol={module: drip.py}", "--set", f"wire={wire}", "--capture", "sender", "--out", wire]
        assert invoke(["run", scenario, *options]) == 0
        sizes[wire] = [len(frame.data) for frame in CaptureFile(tmp_path / wire / "captures" / "sender.pcapng").frames()]
    assert sizes["objects"] == sizes["bytes"]
    assert len(sizes["objects"]) > 40


def test_captures_have_cross_traffic_at_ports_of_its_own(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = "traffic=[{kind: constant, from: sender, to: r1, rate: 1Mbit, size: 500, end: 100ms}]"
    assert invoke(["run", scenario, "--json", "--set", flow, "--out", str(tmp_path / "run"), "--capture", "r1"]) == 0
    (flow_row,) = result(capsys)["metrics"]["cross_traffic"]
    ports = Counter(datagram.port for datagram in read_capture(tmp_path / "run" / "captures" / "r1.pcapng"))
    assert ports[6004] == flow_row["received"] > 0
    assert ports[6003] > 0
