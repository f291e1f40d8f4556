"""The post-dissector for Wireshark reads NORM as the codec does, finds the repairs that `inspect` finds, and colours losses."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.inspection.inspection import Inspection
from protocols.norm.messages import Data, Info
from tests.support.capture_writer import Sent, datagram, frame, write_pcap
from tests.support.captures import VECTORS

CAPTURES = (
    *("app_cmd", "cc_two_receivers", "fec129_loss", "fec2_m16_loss", "fec2_m8_loss", "file_autoparity", "fti_info_only"),
    *("object_ranges", "squelch_hole", "stream_bytes_loss", "unicast_nack", "watermark_ex"),
)
"""Recorded captures that have every message, extension and code between them; each start of tshark takes half a second."""
pytestmark = pytest.mark.peer("tshark")


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wireshark")
    assert invoke(["new", "wireshark", str(folder)]) == 0
    return folder


def _tshark(configuration: Path, capture: Path, fields: Sequence[str], *options: str) -> list[list[str]]:
    """Return the fields of every packet as tshark has them with the post-dissector and the profile."""
    script = ["-C", "mcastlab", "-X", f"lua_script:{configuration / 'mcastlab_norm.lua'}"]
    shown = [word for field in fields for word in ("-e", field)]
    command = ["tshark", *script, "-r", str(capture), *options, "-T", "fields", "-E", "separator=|", *shown]
    environment = {
        "WIRESHARK_CONFIG_DIR": str(configuration),
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "HOME": str(configuration),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert "Lua" not in done.stderr, done.stderr
    return [line.split("|") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", CAPTURES)
def test_recorded_traffic_is_read_as_by_the_codec(name: str, configuration: Path) -> None:
    capture = VECTORS / f"{name}.pcap"
    found = Inspection(capture)
    expected = {}
    for captured in found.reading:
        kind = found.session.add(captured)
        message = captured.message
        assert message is not None
        content = f"{message.kind} {message.brief}" if isinstance(message, Data | Info) else message.kind
        expected[captured.datagram.number] = message.kind, content, kind == "repair"
    rows = _tshark(configuration, capture, ["frame.number", "mcastlab.kind", "mcastlab.what", "mcastlab.repair"])
    read = {}
    for number, kind, what, repair in rows:
        if kind:
            shown = what.removeprefix("repair: ") if kind in ("data", "info") else kind
            read[int(number)] = kind, shown, repair in ("1", "True")
    differences = {number: (read.get(number), expected[number]) for number in expected if read.get(number) != expected[number]}
    assert not differences, dict(list(differences.items())[:5])
    assert read.keys() == expected.keys()


def test_losses_and_repairs_of_our_captures_are_coloured(configuration: Path, tmp_path: Path) -> None:
    loss = "topology.link.down.loss=3%"
    run = [
        "run",
        "lan-file",
        "--set",
        "workload.size=200kB",
        "--set",
        loss,
        "--out",
        str(tmp_path),
        "--capture",
        "s1-r1",
        "--brief",
    ]
    assert invoke(run) == 0
    fields = ["mcastlab.kind", "mcastlab.lost", "mcastlab.repair", "frame.coloring_rule.name", "frame.comment"]
    rows = _tshark(configuration, tmp_path / "captures" / "s1-r1.pcapng", fields, "--color")
    lost = [row for row in rows if "lost by the link" in row[4]]
    repairs = [row for row in rows if "repair" in row[4] and "lost" not in row[4]]
    assert lost
    assert repairs
    assert all(row[1] and row[3] == "NORM lost" for row in lost)
    assert all(row[2] and row[3] == "NORM repair" for row in repairs)
    rules = {row[0]: row[3] for row in rows if not row[4]}
    assert rules["data"] == "NORM data"
    assert rules["nack"] == "NORM NACK"
    assert not any(row[1] for row in rows if "lost" not in row[4])


def test_a_repair_names_the_request_and_the_first_transmission(configuration: Path) -> None:
    fields = ["frame.number", "mcastlab.what", "mcastlab.first", "mcastlab.asked"]
    rows = {row[0]: row[1:] for row in _tshark(configuration, VECTORS / "noparity_loss.pcap", fields, "-Y", "mcastlab.repair")}
    assert rows
    for number, (what, first, asked) in rows.items():
        assert what.startswith("repair: data")
        assert int(first) < int(asked) < int(number)


def test_two_passes_show_what_one_shows(configuration: Path) -> None:
    fields = ["frame.number", "mcastlab.what", "mcastlab.asked", "mcastlab.again"]
    capture = VECTORS / "unicast_nack.pcap"
    assert _tshark(configuration, capture, fields, "-2") == _tshark(configuration, capture, fields)


def test_the_stream_header_and_congestion_control_are_read(configuration: Path) -> None:
    stream = ["mcastlab.stream.offset", "mcastlab.stream.length", "mcastlab.stream.msg_start"]
    rows = _tshark(configuration, VECTORS / "stream_messages.pcap", stream, "-Y", "mcastlab.stream.length > 0")
    offsets = [int(offset) for offset, _, _ in rows]
    assert offsets == sorted(offsets)
    assert offsets[1] == int(rows[0][1])
    probes = _tshark(configuration, VECTORS / "cc_two_receivers.pcap", ["mcastlab.clr", "mcastlab.rtt"], "-Y", "mcastlab.clr")
    assert {row[0] for row in probes} <= {"2", "3"}
    assert all(float(row[1]) < 0.3 for row in probes)


def test_bytes_that_are_no_norm_are_left_alone(configuration: Path, tmp_path: Path) -> None:
    capture = tmp_path / "noise.pcap"
    payloads = [
        b"",
        b"\x12",
        b"\x12\x04" + bytes(6),
        b"\x13\x04" + bytes(14),
        b"\x14\x06" + bytes(22) + b"\x01\x01\xff\xff" * 9,
    ]
    sent = [Sent(payload, 0.1 * number, (10, 0, 0, 1)) for number, payload in enumerate(payloads)]
    write_pcap(capture, [(each.time, frame(datagram(each))) for each in sent])
    rows = _tshark(configuration, capture, ["mcastlab.kind"])
    assert len(rows) == len(payloads)
    assert [row[0] for row in rows[:3]] == ["", "", ""]
