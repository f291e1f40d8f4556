"""Captures are valid pcapng with valid frames: tshark and scapy read them with checksums and comments."""

import io
import subprocess
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader

from protocols.errors import UsageError
from protocols.registry import protocol
from sim.sniffer import Encoder, Sniffer, check_point
from tests.sim.looks import Notes, watched
from tests.sim.test_fingerprint import ANY

NORM = protocol("norm")
LOSSY = {
    "kind": "star",
    "receivers": 3,
    "trunk": {"rate": "20Mbit", "delay": "5ms"},
    "link": {"rate": "20Mbit", "delay": "1ms", "queue": 2, "down": {"loss": "10%"}},
}
FIELDS = {
    "time": "frame.time_epoch",
    "interface": "frame.interface_name",
    "direction": "frame.packet_flags_direction",
    "comment": "frame.comment",
    "source": "ip.src",
    "to": "ip.dst",
    "mac": "eth.dst",
    "ip_sum": "ip.checksum.status",
    "udp_sum": "udp.checksum.status",
    "type": "norm.type",
    "malformed": "_ws.malformed",
    "number": "ip.id",
}


def captured(point: str, path: Path, *, wire: bool = False) -> Notes:
    """Capture a session at one point into a file; what a watcher beside it saw."""
    topology, notes = ANY.validate_python(LOSSY).build(), Notes()
    with path.open("wb") as file:
        sniffer = Sniffer(topology, point, file, Encoder(topology, NORM.codec()))
        watched(topology, NORM, [notes, sniffer], wire=wire)
    return notes


def read(path: Path) -> list[dict[str, str]]:
    """Every packet as tshark sees it."""
    options = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-d", "udp.port==1,norm"]
    fields = [word for field in FIELDS.values() for word in ("-e", field)]
    command = ["tshark", "-r", str(path), *options, "-T", "fields", "-E", "separator=/t", *fields]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in lines]


@pytest.mark.peer("tshark")
def test_tshark_finds_the_capture_of_a_link_whole_with_what_became_of_each_packet(tmp_path: Path) -> None:
    notes = captured("s1-r1", tmp_path / "link.pcapng")
    seen = read(tmp_path / "link.pcapng")
    passed = [
        (passage, fate)
        for passage in notes.passages
        for fate in passage.fates
        if {passage.near, fate.node} == {"s1", "r1"} and passage.now <= notes.ended[0]
    ]
    assert len(seen) == len(passed) > 50
    assert all((row["ip_sum"], row["udp_sum"], row["malformed"]) == ("1", "1", "") for row in seen)
    assert all(row["interface"] == "s1-r1" for row in seen)
    assert [float(row["time"]) for row in seen] == sorted(float(row["time"]) for row in seen)
    told = Counter(row["comment"] for row in seen)
    expected = Counter(
        "; ".join(filter(None, ["repair" if passage.flight.message.repair else "", fate.reason])) for passage, fate in passed
    )
    assert told == expected
    assert {"", "repair", "lost by the link"} <= set(told)
    assert {row["type"] for row in seen if row["to"].startswith("239")} >= {"1", "2", "3"}


@pytest.mark.peer("tshark")
def test_tshark_finds_at_a_node_what_leaves_it_and_what_arrives(tmp_path: Path) -> None:
    notes = captured("r2", tmp_path / "node.pcapng")
    seen = read(tmp_path / "node.pcapng")
    out = [passage for passage in notes.passages if passage.near == "r2"]
    came = [fate.when for passage in notes.passages for fate in passage.fates if fate.node == "r2" and fate.when < inf]
    directions = Counter(int(row["direction"], 0) & 3 for row in seen)
    assert directions == {1: sum(when <= notes.ended[0] for when in came), 2: len(out)}
    assert all((int(row["direction"], 0) & 3 == 2) == (row["source"] == "10.0.0.3") for row in seen)


@pytest.mark.peer("tshark")
def test_a_switch_shows_an_interface_per_link_and_whom_losses_hit(tmp_path: Path) -> None:
    captured("s1", tmp_path / "switch.pcapng")
    seen = read(tmp_path / "switch.pcapng")
    assert {row["interface"] for row in seen} == {"s1-sender", "s1-r"}
    assert any(row["comment"].startswith("lost by the link for r") for row in seen)


def test_captured_bytes_are_those_that_travelled(tmp_path: Path) -> None:
    notes = captured("sender-s1", tmp_path / "sender.pcapng", wire=True)
    codec = NORM.codec()
    sent = [codec.encode(packet.message) for _, host, packet, _ in notes.packets if host == "sender"]
    with PcapNgReader(str(tmp_path / "sender.pcapng")) as reader:
        frames = [Ether(bytes(frame)) for frame in reader]
    assert [bytes(frame[UDP].payload) for frame in frames if frame[IP].src == "10.0.0.1"] == sent


@pytest.mark.parametrize("point", ["", "r9", "s2", "sender-r1", "s1-s1", "r", "s1-r"])
def test_what_is_no_point_of_the_network_is_refused(point: str) -> None:
    with pytest.raises(UsageError, match=r"is no host, switch or link here; .* like sender-s1"):
        check_point(ANY.validate_python(LOSSY).build(), point)


@pytest.mark.parametrize(("point", "names"), [("r3", ("r3",)), ("s1-r3", ("s1", "r3")), ("r3-s1", ("r3", "s1"))])
def test_points_are_nodes_and_links(point: str, names: tuple[str, ...]) -> None:
    assert check_point(ANY.validate_python(LOSSY).build(), point) == names


def test_an_empty_capture_is_a_valid_file() -> None:
    topology, file = ANY.validate_python(LOSSY).build(), io.BytesIO()
    Sniffer(topology, "r1", file, Encoder(topology, NORM.codec())).end(0.0)
    head: Any = file.getvalue()
    assert head[:4] == b"\x0a\x0d\x0d\x0a"
    assert int.from_bytes(head[4:8], "little") == len(head)
