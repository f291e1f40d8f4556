"""Sequence diagrams: the excerpt of the trace, and a mark for every loss in it."""

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from experiments.captures.trace_file import Trace, TracedPacket, read_trace
from experiments.cli import invoke
from experiments.drawing.ladder import draw_ladder
from experiments.drawing.ladder_excerpt import MOST_HOSTS, MOST_SHOWN, FoldedPackets, LadderExcerpt, cut
from experiments.drawing.parity_requests import find_parity_requests, parity_rule
from experiments.running.recording import Recording
from experiments.running.run import run
from experiments.scenario.scenario import parse
from protocols.errors import UsageError

SCENARIO: dict[str, Any] = {
    "name": "ladder",
    "topology": {
        "kind": "star",
        "receivers": 12,
        "trunk": {"rate": "20Mbit", "delay": "5ms", "down": {"loss": "2%"}},
        "link": {"rate": "20Mbit", "delay": "5ms", "down": {"loss": "2%"}},
    },
    "protocol": {"name": "norm", "rate": "5Mbit", "grtt": "50ms"},
    "workload": {"size": "100kB"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    run(parse(SCENARIO, "here"), recording=Recording(trace=path / "trace.jsonl"))
    return path


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    return read_trace(folder)


def shapes(svg: str) -> list[ElementTree.Element]:
    """Return all elements of a drawing; raises if it is not well-formed."""
    return list(ElementTree.fromstring(svg).iter())


def words(svg: str) -> set[str]:
    """Return all text of a drawing."""
    return {element.text or "" for element in shapes(svg) if element.tag.endswith("text")}


def draw(shown: LadderExcerpt) -> str:
    """Return the drawing as text."""
    return draw_ladder(shown, "title").svg()


def test_the_excerpt_goes_from_a_loss_to_its_repair(trace: Trace) -> None:
    shown = cut(trace)
    packets = [packet for packet in trace.packets.values() if shown.begin <= packet.time <= shown.end]
    assert any(packet.missed for packet in packets[:10])
    assert any(packet.repair for packet in packets)
    assert len(shown.hosts) == 1 + MOST_HOSTS
    assert shown.hosts[0] == "sender"
    assert len(shown.shown) <= MOST_SHOWN


def test_folding_keeps_every_message(trace: Trace) -> None:
    shown = cut(trace)
    found = [item.packets if isinstance(item, FoldedPackets) else (item,) for item in shown.shown]
    numbers = [packet.number for packets in found for packet in packets]
    expected = [packet.number for packet in trace.packets.values() if shown.begin <= packet.time <= shown.end]
    hosts = {number: packet.node for number, packet in trace.packets.items()}
    assert numbers == [number for number in expected if hosts[number] in shown.hosts]
    assert any(isinstance(item, FoldedPackets) for item in shown.shown)


def test_every_loss_that_is_not_folded_has_a_cross(trace: Trace) -> None:
    shown = cut(trace, ["sender", "r1", "r2", "r3"], 0.0, 0.06)
    crosses = [element for element in shapes(draw(shown)) if element.get("stroke-width") == "2.4"]
    single = [item for item in shown.shown if not isinstance(item, FoldedPackets)]
    own = sum(missed.node in shown.hosts for packet in single for missed in packet.missed)
    shared = sum(missed.node == "s1" for packet in single for missed in packet.missed)
    assert own > 0
    # The legend has one more.
    assert len(crosses) == own + shared + 1


def test_hosts_message_kinds_and_repairs_are_labelled(trace: Trace) -> None:
    labels = words(draw(cut(trace)))
    assert {"sender", "data", "nack", "repair", "lost", "back-off", "NACK suppressed"} <= labels
    assert any(re.fullmatch(r"data 0\.0\.p0", text) for text in labels)
    assert any("more data" in text for text in labels)


def test_the_drawing_is_legible_on_light_and_dark_backgrounds(trace: Trace) -> None:
    svg = draw(cut(trace))
    assert "prefers-color-scheme: dark" in svg
    classes = {name for element in shapes(svg) for name in (element.get("class") or "").split()}
    light, _, dark = svg.partition("prefers-color-scheme")
    for name in classes:
        assert f".{name}" in light
        assert f".{name}" in dark


def test_a_run_without_losses_is_shown_from_its_start(tmp_path: Path) -> None:
    calm = {**SCENARIO, "topology": {"kind": "lan", "receivers": 2}, "workload": {"size": "5kB"}}
    run(parse(calm, "here"), recording=Recording(trace=tmp_path / "trace.jsonl"))
    shown = cut(read_trace(tmp_path))
    assert shown.begin == 0.0
    assert {"sender", "r1", "r2", "complete"} <= words(draw(shown))


def test_the_command_writes_a_file_beside_the_trace(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert invoke(["ladder", str(folder)]) == 0
    path, *explained, rule = capsys.readouterr().out.splitlines()
    assert path == str(folder / "ladder.svg")
    assert 1 <= len(explained) <= 3
    assert all(
        re.match(r"0\.\d{4} s: r\d+ lost 0\.0\.\d+.* and requests 0\.0\.p0.*: any 36 symbols decode block 0\.0", line)
        for line in explained
    )
    assert rule.startswith("A NACK for p0 requests parity: any 36 symbols of a block decode it")
    svg = (folder / "ladder.svg").read_text(encoding="utf-8")
    assert "sender" in words(svg)
    other = folder / "other.svg"
    options = ["--from", "100ms", "--to", "150ms", "--hosts", "sender, r2", "--svg", str(other)]
    assert invoke(["ladder", str(folder / "trace.jsonl"), *options]) == 0
    assert {"sender", "r2"} <= words(other.read_text(encoding="utf-8"))
    assert "r1" not in words(other.read_text(encoding="utf-8"))


def test_an_excerpt_with_too_many_messages_is_cut_unless_its_times_were_given(tmp_path: Path) -> None:
    acked = {**SCENARIO, "protocol": {"name": "a", "rate": "5Mbit"}}
    run(parse(acked, "here"), recording=Recording(trace=tmp_path / "trace.jsonl"))
    trace = read_trace(tmp_path)
    shown = cut(trace)
    assert len(shown.shown) == MOST_SHOWN
    assert shown.end == shown.shown[-1].time
    with pytest.raises(UsageError, match=r"--to: \d+ messages exceed the limit of a drawing \(50\)"):
        cut(trace, end=0.3)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--hosts", "r99"], "--hosts: 'r99' is not in this trace; hosts are sender, r1"),
        (["--from", "1s", "--to", "500ms"], "--to: value 0.5 is not allowed; later than the beginning, 1 s"),
        (["--from", "soon"], "--from: 'soon' is not a duration"),
        (["--svg", "/nowhere/a.svg"], "--svg: value '/nowhere/a.svg' is not allowed; it can't be written"),
    ],
)
def test_bad_input_exits_with_code_2_and_one_line(
    options: list[str], line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["ladder", str(folder), *options]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert line in err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "there is no trace; record one: mcastlab run SCENARIO.yaml --out RUN --set trace=true"),
        ("", "is no whole trace of this version"),
        ("nonsense", "line 1 is not JSON"),
        ("{}", "is not a trace; its first line has no format"),
        (json.dumps({"format": "mcastlab trace 1", "hosts": []}) + '\n{"time": 1}', "is no whole trace"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(
    text: str | None, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "trace.jsonl").write_text(text)
    assert invoke(["ladder", str(tmp_path)]) == 2
    assert line in capsys.readouterr().err


def test_a_nack_for_parity_is_labelled_as_the_repair_and_explained(trace: Trace) -> None:
    shown = cut(trace)
    svg = draw(shown)
    assert any(text.startswith("nack 0.0.p0") for text in words(svg))
    assert any("requests parity: any 36 symbols of a block decode it" in text for text in words(svg))
    for request in shown.parity.values():
        missed = {
            packet.brief
            for packet in trace.packets.values()
            if any(each.node in (request.node, "s1") for each in packet.missed)
        }
        assert request.lost
        assert {*request.lost} <= missed
        assert escape(request.explained) in svg


def test_without_parity_nothing_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = {**SCENARIO, "protocol": {**SCENARIO["protocol"], "parity": 0}}
    run(parse(plain, "here"), recording=Recording(trace=tmp_path / "trace.jsonl"))
    shown = cut(read_trace(tmp_path))
    assert any(re.fullmatch(r"nack 0\.0\.\d+.*", text) for text in words(draw(shown)))
    assert shown.parity == {}
    assert invoke(["ladder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_ranges_and_blocks_of_different_size_are_explained() -> None:
    trace = Trace({"hosts": ["sender", "r1"]})
    for number, brief in enumerate(("0.0.0", "0.0.1", "0.1.0", "0.1.1", "0.1.2")):
        trace.packets[number] = TracedPacket(number, number * 0.1, "sender", "data", brief, False, "all", {})
    nack = TracedPacket(9, 1.0, "r1", "nack", "0.0.2-3, 0.1.3 +2", False, "all")
    other = TracedPacket(10, 1.0, "r1", "nack", "0.0.1, 0.1", False, "all")
    found = find_parity_requests(trace, [nack, other])
    assert set(found) == {9}
    assert found[9].explained == "r1 lost 0.0.0, 0.0.1 and requests 0.0.p0-p1, 0.1.p0 +2: any 2 symbols decode block 0.0"
    assert "any 2 symbols of a block" in parity_rule(found.values())
    mixed = [found[9], replace(found[9], source=5)]
    assert "as many symbols as it has source symbols of a block" in parity_rule(mixed)


def test_the_steps_of_a_subscriber_are_drawn(tmp_path: Path) -> None:
    scenario = {
        "name": "steps",
        "topology": {"kind": "star", "receivers": 2, "link": {"rate": "10Mbit", "queue": 100, "down": {"loss": 0.05}}},
        "protocol": {"name": "fjm2", "rate": "5Mbit", "grtt": "10ms"},
        "workload": [
            {"kind": "publish", "hosts": ["sender"], "to": "topic:t", "size": "4kB", "rate": "50/s", "count": 40},
            {"kind": "subscribe", "hosts": ["r"], "to": "topic:t"},
        ],
        "duration": "20s",
    }
    run(parse(scenario, "steps"), recording=Recording(trace=tmp_path / "trace.jsonl"))
    drawn = draw(cut(read_trace(tmp_path)))
    for told in ("back-off of", "hold-off of", "container taken, message", "message delivered, message", "container returned"):
        assert told in drawn
