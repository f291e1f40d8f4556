"""A session over IPv6 is inspected as the same session over IPv4."""

import json
import re
from pathlib import Path
from struct import pack

import pytest

from experiments.captures.datagrams import CapturedDatagram, read_capture
from experiments.cli import invoke
from experiments.inspection.packet import packet_of
from tests.support.capture_writer import frame, write_pcap
from tests.support.captures import VECTORS

LOSSY = VECTORS / "file_loss5.pcap"


SCOPES = {"site": (b"\xff\x05", b"\xfd\0"), "link": (b"\xff\x02", b"\xfe\x80")}
"""How groups and hosts begin."""


def over_ipv6(datagram: CapturedDatagram, scope: str, most: int) -> list[bytes]:
    """Return a datagram in frames, with IPv6 addresses that end with those of IPv4; fragments have at most `most` bytes."""
    ends = []
    for address in (datagram.source, datagram.target):
        parts = bytes(map(int, address.split(".")))
        ends.append(SCOPES[scope][parts[0] < 224] + bytes(10) + parts)
    size = 8 + len(datagram.payload)
    # A checksum of 0 is not allowed over IPv6, but neither reader checks it.
    udp = pack(">HHHH", datagram.sport, datagram.port, size, 0xFFFF) + datagram.payload
    if size <= most:
        return [frame(pack(">IHBB", 6 << 28, size, 17, 1) + b"".join(ends) + udp, kind=0x86DD)]
    found = []
    for at in range(0, size, most):
        part = udp[at : at + most]
        extension = pack(">BxHI", 17, at | (at + most < size), datagram.number)
        head = pack(">IHBB", 6 << 28, len(extension + part), 44, 1) + b"".join(ends)
        found.append(frame(head + extension + part, kind=0x86DD))
    return found


@pytest.fixture(params=[("site", 9000), ("link", 9000), ("site", 400)], ids=["site", "link", "fragments"])
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a recorded session with its packets over IPv6."""
    frames = [(each.time, data) for each in read_capture(LOSSY) for data in over_ipv6(each, *request.param)]
    return write_pcap(tmp_path / "v6.pcap", frames)


def inspected(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the result of `mcastlab inspect` without the name of the file, with addresses replaced."""
    assert invoke(["inspect", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    text = json.dumps(found, sort_keys=True).replace(str(path), "FILE").replace(path.name, "FILE")
    # There are more frames where datagrams came in fragments, so the numbers of packets differ.
    text = re.sub(r'"(frames|packet)": \d+', r'"\1": N', text)
    return re.sub(r"\[?[0-9a-f]*::[0-9a-f:]+\]?|\d+\.\d+\.\d+\.\d+", "ADDRESS", text)


def test_the_result_is_the_same_but_for_the_addresses(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded, converted = inspected(LOSSY, capsys), inspected(capture, capsys)
    assert "ADDRESS:6003" in converted
    assert converted == recorded


def test_addresses_and_ports_are_told_apart_by_brackets(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["inspect", str(capture)]) == 0
    assert re.search(r"to \[ff0[25]::[0-9a-f:]+\]:6003", capsys.readouterr().out)


def test_a_packet_has_its_layers(capture: Path) -> None:
    number = next(each.number for each in read_capture(capture) if each.payload[0] & 15 == 4)
    layers = packet_of(capture, number)["layers"]
    assert [layer["layer"] for layer in layers] == ["Ethernet", "IPv6", "UDP", "NORM_NACK"]
