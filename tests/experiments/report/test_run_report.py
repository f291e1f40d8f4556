"""The report of one run: what it counts, what it leaves out and says so, and what it refuses."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.report import run_report_recording
from tests.experiments.report.runs import SHARED, data_of, record

TRACE = ("--set", "trace=true")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a run in a trace."""
    return record(tmp_path_factory.mktemp("traced"), SHARED, *TRACE)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the same run in captures of all hosts."""
    return record(tmp_path_factory.mktemp("captured"), SHARED, "--capture", "hosts")


def report(folder: Path, *options: str) -> dict[str, Any]:
    """Make the page of a run and return its data."""
    assert invoke(["report", str(folder), *options]) == 0
    return data_of(folder / "report.html")


def trace_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the lines of a trace with this name."""
    rows = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()[1:]]
    return [row for row in rows if row["name"] == name]


def lost_by(data: dict[str, Any]) -> dict[str, int]:
    """Return the losses of each row of the loss map."""
    return dict(zip(data["losses"]["names"], data["losses"]["lost"], strict=True))


def multicast_losses(folder: Path) -> Counter[str]:
    """Count the losses of multicast packets in a trace by receiver; what the sender's link loses, all others lose."""
    groups = {row["data"]["packet"] for row in trace_rows(folder, "packet_sent") if row["data"]["to"] == "all"}
    found: Counter[str] = Counter()
    for row in trace_rows(folder, "packet_dropped"):
        if row["data"]["packet"] in groups:
            found.update([row["node"]] if row["node"] != "s1" else [f"r{n}" for n in range(1, 7)])
    return found


def notes(folder: Path) -> str:
    """Return what the page says about the replay."""
    found = re.search(r'<div class="notes">(.*?)</div>', (folder / "report.html").read_text(), re.S)
    assert found is not None
    return found[1]


# -- what it shows ---------------------------------------------------------------------------------------------------------


def test_the_loss_map_counts_each_loss_of_the_trace(folder: Path) -> None:
    data = report(folder)
    expected = multicast_losses(folder)
    assert sum(expected.values()) > 20
    assert lost_by(data) == {f"r{n}": expected[f"r{n}"] for n in range(1, 7)}
    for axis in ("time", "order"):
        cells = [sum(count for _, count, _ in row) for row in data["losses"][axis]["rows"]]
        assert cells == data["losses"]["lost"]
        assert sum(data["losses"][axis]["sent"]) == data["losses"]["sent"]


def test_captures_of_all_hosts_show_the_same_losses_as_the_trace(folder: Path, captured: Path) -> None:
    assert lost_by(report(captured)) == lost_by(report(folder))


def test_captures_of_all_hosts_show_the_same_packets_as_the_trace(folder: Path, captured: Path) -> None:
    kinds = {kind["name"]: kind["count"] for kind in report(folder)["replay"]["kinds"]}
    assert {kind["name"]: kind["count"] for kind in report(captured)["replay"]["kinds"]} == kinds
    assert sum(kinds.values()) == len(trace_rows(folder, "packet_sent"))


def test_a_loss_in_captures_is_placed_on_the_link_that_explains_it(folder: Path, captured: Path) -> None:
    def places(data: dict[str, Any]) -> Counter[tuple[str, str]]:
        names = [node["name"] for node in data["replay"]["nodes"]]
        packets = data["replay"]["packets"]
        return Counter((label, names[node]) for _, _, _, _, label, _, lost in packets for node in lost[::2])

    assert places(report(captured)) == places(report(folder))


def test_the_replay_has_each_packet_with_its_receptions(folder: Path) -> None:
    packets = report(folder)["replay"]["packets"]
    assert len(packets) == len(trace_rows(folder, "packet_sent"))
    assert sum(len(packet[5]) for packet in packets) == 2 * len(trace_rows(folder, "packet_received"))


def test_events_tell_who_lost_who_asked_and_who_repaired(folder: Path) -> None:
    replay = report(folder)["replay"]
    notable = {category["name"] for category in replay["categories"] if category["notable"]}
    assert {"loss", "nack", "object received"} <= notable
    texts = "\n".join(event[3] for event in replay["events"])
    assert re.search(r"^r\d sends nack 0\.", texts, re.M)
    assert re.search(r"^sender repairs: data 0\.", texts, re.M)
    assert re.search(r"^sender-s1 loses data 0\.\S+: lost by the link$", texts, re.M)
    assert [event[0] for event in replay["events"]] == sorted(event[0] for event in replay["events"])


def test_the_rates_add_up_to_what_was_sent(folder: Path) -> None:
    metrics = json.loads((folder / "result.json").read_text())["metrics"]
    rates = report(folder)["rates"]
    assert sum(sum(kind["bytes"]) for kind in rates["kinds"]) == metrics["bytes_sent"]


def test_a_window_limits_the_replay_and_nothing_else(folder: Path) -> None:
    whole, part = report(folder), report(folder, "--from", "50ms", "--to", "150ms", "--hosts", "sender,r2")
    assert part["rates"] == whole["rates"]
    assert lost_by(part)["r2"] == lost_by(whole)["r2"]
    assert lost_by(part)["5 others"] == sum(lost_by(whole).values()) - lost_by(whole)["r2"]
    times = [packet[0] for packet in part["replay"]["packets"]]
    assert 0.05 <= min(times) <= max(times) <= 0.15
    assert [node["name"] for node in part["replay"]["nodes"]] == ["sender", "s1", "r2"]
    assert "0.05 s to 0.15 s" in notes(folder)


def test_packets_that_a_link_was_down_for_count_as_lost(tmp_path: Path) -> None:
    quiet = SHARED.replace(", down: {loss: 4%}", "")
    folder = record(tmp_path, f"{quiet}faults: [{{at: 50ms, flap: [sender, s1], for: 6ms}}]\n", *TRACE)
    data = report(folder)
    sent = [row["data"]["packet"] for row in trace_rows(folder, "packet_sent") if row["data"]["to"] == "all"]
    came = Counter(row["data"]["packet"] for row in trace_rows(folder, "packet_received"))
    missing = sum(came[packet] == 0 for packet in sent)
    assert missing > 1
    assert set(lost_by(data).values()) == {missing}
    texts = [event[3] for event in data["replay"]["events"]]
    assert sum(bool(re.fullmatch(r"sender-s1 loses .*: did not arrive", text)) for text in texts) == missing


def test_a_receiver_that_has_not_joined_loses_nothing(tmp_path: Path) -> None:
    late = SHARED.replace("{size: 100kB}", "[{size: 50kB}, {size: 50kB, at: 1s}]")
    folder = record(tmp_path, f"{late}receivers: [{{hosts: [r1], join: 900ms}}]\n", *TRACE)
    data = report(folder)
    first = data["losses"]["time"]["rows"][data["losses"]["names"].index("r1")][0][0]
    assert first / data["losses"]["time"]["columns"] * data["losses"]["time"]["extent"] >= 0.85
    (node,) = [node for node in data["replay"]["nodes"] if node["name"] == "r1"]
    assert node["there"] == [0.9, None]


@pytest.mark.parametrize("protocol", ["{name: srm}", "{name: n2}", "{name: a}", "{name: norm, auto_parity: 4, parity: 8}"])
def test_any_protocol_is_replayed_with_a_colour_for_each_kind(protocol: str, tmp_path: Path) -> None:
    scenario = re.sub(r"protocol: .*", f"protocol: {protocol}", SHARED)
    for options in (TRACE, ("--capture", "hosts")):
        kinds = report(record(tmp_path / options[0].strip("-"), scenario, *options))["replay"]["kinds"]
        assert len({kind["colour"] for kind in kinds}) == len(kinds) > 1
    assert ("parity" in {kind["name"] for kind in kinds}) == ("auto_parity" in protocol)


def test_messages_of_an_own_protocol_are_shown_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["new", "protocol", "own"]) == 0
    scenario = re.sub(r"protocol: .*", f"protocol: {{module: {tmp_path}/own.py}}", SHARED)
    traced = record(tmp_path / "traced", scenario, *TRACE)
    captured = record(tmp_path / "captured", scenario, "--set", "wire=bytes", "--capture", "hosts")
    assert report(captured)["replay"]["kinds"] == report(traced)["replay"]["kinds"] != []


def test_the_page_loads_nothing_and_names_its_command(folder: Path) -> None:
    report(folder)
    page = (folder / "report.html").read_text()
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)
    assert f"mcastlab report {folder}" in page
    for section in ("Replay", "Who lost what", "Rates over time", "Sequence diagram", "Receivers", "Metrics", "Provenance"):
        assert f"<h2>{section}</h2>" in page


# -- what it leaves out ----------------------------------------------------------------------------------------------------


def test_of_many_receivers_the_ten_worst_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    many = SHARED.replace("receivers: 6", "receivers: 300").replace("100kB", "20kB")
    folder = record(tmp_path, many, *TRACE)
    data = report(folder)
    rows = json.loads((folder / "result.json").read_text())["receivers"]
    worst = sorted(rows, key=lambda row: (row["equal"], -row["loss"], -row["nacks_sent"]))[:10]
    hosts = [node["name"] for node in data["replay"]["nodes"] if node["role"] == "host"]
    assert sorted(hosts) == sorted(row["name"] for row in worst)
    assert data["losses"]["names"][-1] == "290 others"
    shared = sum(row["node"] == "s1" for row in trace_rows(folder, "packet_dropped"))
    alone = sum(row["node"] != "s1" for row in trace_rows(folder, "packet_dropped"))
    assert sum(data["losses"]["lost"]) == pytest.approx(300 * shared + alone, rel=0.02)
    assert "11 of 301 hosts: the senders and the 10 receivers that lost most" in notes(folder)
    assert (folder / "report.html").stat().st_size < 1_000_000


def test_beyond_the_limit_of_packets_the_replay_ends_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report(folder)
    monkeypatch.setattr(run_report_recording, "MOST_PACKETS", 40)
    data = report(folder)
    assert len(data["replay"]["packets"]) == 40
    assert data["replay"]["end"] < whole["replay"]["end"]
    assert (lost_by(data), data["rates"]) == (lost_by(whole), whole["rates"])
    assert "another part: --from and --to" in notes(folder)


def test_hosts_without_a_capture_are_drawn_as_not_known(tmp_path: Path) -> None:
    folder = record(tmp_path, SHARED, "--capture", "sender", "--capture", "r2")
    data = report(folder)
    assert [node["name"] for node in data["replay"]["nodes"] if node.get("unknown")] == ["r1", "r3", "r4", "r5", "r6"]
    assert list(lost_by(data)) == ["r2"]
    assert "Not captured" in notes(folder)


# -- what it refuses -------------------------------------------------------------------------------------------------------


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that has to end with exit code 2 and one line, and return the line."""
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_a_run_without_a_recording_is_refused_with_the_command_that_records_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = record(tmp_path)
    error = refused(["report", str(folder)], capsys)
    assert "has neither a trace nor captures, so there is nothing to replay" in error
    assert f"mcastlab run SCENARIO.yaml --out {folder}" in error
    assert error.rstrip().endswith("--set trace=true")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--hosts", "r9"], "--hosts: value 'r9' is not allowed; recorded are sender, r1, r2, r3, r4, r5, r6"),
        (["--from", "2s", "--to", "1s"], "--to: value 1 is not allowed; later than the beginning, 2 s"),
        (["--from", "soon"], "--from: "),
        (["--theory", "arq"], "--theory: is not allowed; it is for a report of a sweep"),
        (["--out", "nowhere/page.html"], "--out: "),
    ],
)
def test_bad_options_are_one_line(folder: Path, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in refused(["report", str(folder), *options], capsys)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("result.json", "{"),
        ("result.json", "[]"),
        ("result.json", '{"receivers": 3}'),
        ("scenario.json", "{}"),
        ("scenario.json", '{"topology": {"kind": "star"}, "workload": [{}], "receivers": []}'),
        ("trace.jsonl", "{}"),
        ("trace.jsonl", '{"format": "mcastlab trace 1"}'),
    ],
)
def test_a_broken_file_is_named(folder: Path, name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("result.json", "scenario.json", "trace.jsonl"):
        (tmp_path / file).write_text(text if file == name else (folder / file).read_text(), encoding="utf-8")
    assert f"{tmp_path / name}: " in refused(["report", str(tmp_path)], capsys)


def test_a_folder_of_several_cases_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = f"{SHARED}compare: {{few: {{seed: 2}}, more: {{seed: 3}}}}\n"
    folder = record(tmp_path, cases, *TRACE)
    capsys.readouterr()
    assert f"holds 2 runs; name one: {folder / 'few'}, {folder / 'more'}" in refused(["report", str(folder)], capsys)
    assert report(folder / "more")["replay"]["packets"]


def test_options_for_a_run_are_refused_for_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs").mkdir()
    assert "--from: is not allowed; it is for a report of one run" in refused(["report", str(tmp_path), "--from", "1s"], capsys)


@pytest.mark.parametrize("name", ["", "nowhere", "file"])
def test_a_folder_with_neither_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    expected = f"{tmp_path / name}: holds no results of a sweep and no run; what makes them: mcastlab run"
    assert expected in refused(["report", str(tmp_path / name)], capsys)


@pytest.mark.parametrize("content", [b"", b"no capture", b"\x0a\x0d\x0d\x0a" + bytes(40)])
def test_a_broken_capture_is_named(content: bytes, captured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("result.json", "scenario.json"):
        (tmp_path / file).write_bytes((captured / file).read_bytes())
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "r1.pcapng").write_bytes(content)
    assert f"{tmp_path / 'captures' / 'r1.pcapng'}: is" in refused(["report", str(tmp_path)], capsys)


def test_the_table_of_receivers_does_not_call_objects_that_came_twice_duplicates(folder: Path) -> None:
    duplicates = json.loads((folder / "result.json").read_text())["metrics"]["storm"]["duplicates"]
    table = report(folder)["tables"][0]
    assert duplicates > 0
    assert "duplicates" not in table["columns"]
    assert [row[table["columns"].index("objects twice")] for row in table["rows"]] == [0] * 6
