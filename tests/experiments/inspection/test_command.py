"""`mcastlab inspect` on the command line: tables, JSON, a page, a packet, and one-line errors."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.cli import invoke
from tests.experiments.inspection.scenes import Scene
from tests.support.capture_writer import COOKED, COOKED2, ETHERNET, NULL, RAW, write_pcap
from tests.support.captures import CAPTURES, VECTORS

LOSSY = VECTORS / "file_loss5.pcap"


def test_the_terminal_shows_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(LOSSY)]) == 0
    text = capsys.readouterr().out
    for wanted in (
        "147 NORM messages",
        "sender 1, instance 1, 10.77.0.1:35839 to 239.7.7.7:6003",
        "f0.bin",
        "13 for 13 requested segments",
        "any 9 of 0.0, any 3 of 0.1",
        "no violations of the protocol",
    ):
        assert wanted in text
    assert re.search(r"nack +█", text)
    assert re.search(r"3 -> 239.7.7.7:6003 +nack", text)


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_recorded_capture_can_be_printed_and_written_as_a_page(
    capture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert invoke(["inspect", str(VECTORS / f"{capture}.pcap"), "--html", str(page)]) == 0
    # The path of the checkout decides where the first line wraps.
    assert "NORM messages" in " ".join(capsys.readouterr().out.split())
    text = page.read_text()
    drawings = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(drawings) == 2
    for drawing in drawings:
        ET.fromstring(drawing)
    assert "<script" not in text
    assert not re.search(r'(src|href)="', text)


def test_json_is_the_only_output_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(LOSSY), "--json", "--html", str(tmp_path / "a.html")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["senders"][0]["repairs"]["packets"] == 13
    assert found["timeline"]["interval"] == 0.02


def test_one_packet_is_shown_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(LOSSY), "--packet", "124"]) == 0
    assert "grtt_response_usec     604432" in capsys.readouterr().out
    assert invoke(["inspect", str(LOSSY), "--packet", "124", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"][3]["layer"] == "NORM_NACK"


def test_a_violation_exits_with_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.data(0, 0)
    scene.data(5, 0)
    assert invoke(["inspect", str(scene.write(tmp_path))]) == 1
    text = capsys.readouterr().out
    assert "VIOLATION beyond-object, 1 times" in text
    assert "packet 2, 0.010000 s: sender 1: 0.5.0: 2 blocks" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "none.pcap"], r"none\.pcap: can't be read \(No such file or directory\)"),
        (["inspect", __file__], r"is not a pcap or pcapng file"),
        (["inspect", str(LOSSY), "--port", "0"], r"--port: value 0 is not allowed; a whole number from 1 to 65535"),
        (["inspect", str(LOSSY), "--port", "9"], r"holds no NORM messages to port 9"),
        (["inspect", str(LOSSY), "--packet", "148"], r"--packet: value 148 is not allowed; .* has packets 1 to 147"),
        (
            ["inspect", str(LOSSY), "--html", "/none/a.html"],
            r"--html: value '/none/a\.html' is not allowed; it can't be written",
        ),
    ],
)
def test_a_mistake_is_a_one_line_error(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


def test_without_scapy_a_capture_can_be_inspected_but_no_packet_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "scapy" or "dissector" in name.split(".")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scapy", None)
    assert invoke(["inspect", str(LOSSY)]) == 0
    assert "scapy is not installed; get it: pip install 'mcastlab[inspect]'" in capsys.readouterr().out
    assert invoke(["inspect", str(LOSSY), "--packet", "1"]) == 3
    assert "pip install 'mcastlab[inspect]'" in capsys.readouterr().err


LINKS = st.sampled_from([ETHERNET, RAW, NULL, COOKED, COOKED2])
NAMES = ("unicast_nack", "fec129_loss", "stream_messages", "squelch_hole", "fec2_m8_loss")
EDITS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 110), st.integers(0, 255)), max_size=40)


def edited(name: str, edits: list[tuple[int, int, int]]) -> bytes:
    """Change bytes of a recorded capture, each given by packet, offset in its record and value; most are in headers."""
    content = bytearray((VECTORS / f"{name}.pcap").read_bytes())
    starts, at = [0], 24
    while at + 16 <= len(content):
        starts.append(at)
        at += 16 + int.from_bytes(content[at + 8 : at + 12], "little")
    for packet, offset, value in edits:
        place = starts[packet % len(starts)] + offset
        if place < len(content):
            content[place] = value
    return bytes(content)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from(NAMES), edits=EDITS, kept=st.integers(0, 60_000), number=st.integers(1, 60))
def test_changed_bytes_never_cause_a_traceback(
    name: str, edits: list[tuple[int, int, int]], kept: int, number: int, tmp_path: Path
) -> None:
    path = tmp_path / "changed.pcap"
    path.write_bytes(edited(name, edits)[:kept])
    assert invoke(["inspect", str(path), "--html", str(tmp_path / "a.html")]) in (0, 1, 2)
    assert invoke(["inspect", str(path), "--packet", str(number)]) in (0, 2)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(frames=st.lists(st.binary(max_size=120), max_size=5), link=LINKS)
def test_any_frames_are_inspected_or_refused(frames: list[bytes], link: int, tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "any.pcap", [(0.0, each) for each in frames], link)
    assert invoke(["inspect", str(path)]) in (0, 1, 2)
    for number in range(1, len(frames) + 1):
        assert invoke(["inspect", str(path), "--packet", str(number)]) == 0
