"""UDP datagrams are extracted from captures of any link layer, and broken captures are reported in one line."""

import re
from pathlib import Path
from struct import pack

import pytest

from experiments.captures.datagrams import Capture
from protocols.errors import ConfigError, UsageError
from tests.support.capture_writer import (
    COOKED,
    COOKED2,
    ETHERNET,
    NULL,
    RAW,
    Sent,
    datagram,
    frame,
    write_pcap,
    write_pcapng,
)
from topologies.pcapng import PcapngWriter

SENT = Sent(b"payload", time=12.5)


@pytest.mark.parametrize(
    ("link", "tags"),
    [(ETHERNET, ()), (ETHERNET, (5,)), (ETHERNET, (5, 6)), (RAW, ()), (NULL, ()), (COOKED, ()), (COOKED2, ()), (COOKED2, (5,))],
)
def test_a_datagram_is_extracted_from_every_link_layer(tmp_path: Path, link: int, tags: tuple[int, ...]) -> None:
    data = frame(datagram(SENT), link, tags)
    [plain] = Capture(write_pcap(tmp_path / "a.pcap", [(12.5, data)], link))
    [next_] = Capture(write_pcapng(tmp_path / "a.pcapng", [(12.5, data, 0)], [link]))
    for found in (plain, next_):
        assert (found.source, found.target, found.sport, found.port) == ("10.0.0.1", "239.1.2.3", 40_000, 6003)
        assert (found.payload, found.size, found.number) == (b"payload", 7, 1)
        assert found.time == pytest.approx(12.5)


def test_big_endian_and_nanosecond_files_are_read(tmp_path: Path) -> None:
    data = frame(datagram(SENT))
    [found] = Capture(write_pcapng(tmp_path / "a.pcapng", [(3.25, data, 0)], order=">"))
    assert found.time == pytest.approx(3.25)
    head = pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
    (tmp_path / "b.pcap").write_bytes(head + pack(">IIII", 3, 250_000_001, len(data), len(data)) + data)
    [found] = Capture(tmp_path / "b.pcap")
    assert found.time == pytest.approx(3.250000001, abs=1e-9)
    assert found.payload == b"payload"


def test_comments_and_directions_of_simulator_captures_are_read(tmp_path: Path) -> None:
    with (tmp_path / "a.pcapng").open("wb") as file:
        writer = PcapngWriter(file)
        link = writer.interface("r1")
        writer.packet(link, 1.0, frame(datagram(SENT)), 1, "repair; lost by the link")
        writer.packet(link, 2.0, frame(datagram(SENT)), 2)
    first, second = Capture(tmp_path / "a.pcapng")
    assert first.comment == "repair; lost by the link"
    assert first.point != second.point


def test_ipv6_is_read(tmp_path: Path) -> None:
    udp = pack(">HHHH", 40_000, 6003, 15, 0) + b"payload"
    ip = pack(">IHBB", 6 << 28, len(udp), 17, 1) + bytes(15) + b"\x01" + b"\xff\x15" + bytes(13) + b"\x07" + udp
    [found] = Capture(write_pcap(tmp_path / "a.pcap", [(0.0, frame(ip, kind=0x86DD))]))
    assert (found.source, found.target, found.payload) == ("::1", "ff15::7", b"payload")


def pieces(sent: Sent) -> list[bytes]:
    """Return the datagram in three fragments."""
    whole = datagram(sent)[20:]
    cuts = [(0, whole[:16], True), (16, whole[16:32], True), (32, whole[32:], False)]
    return [frame(datagram(sent, at // 8 | (0x2000 if more else 0), body)) for at, body, more in cuts]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_fragments_are_reassembled_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    sent = Sent(bytes(range(40)), ident=9)
    capture = Capture(write_pcap(tmp_path / "a.pcap", [(0.0, pieces(sent)[place]) for place in order]))
    [found] = capture
    assert (found.payload, found.number) == (sent.payload, 3)
    assert (capture.frames, capture.others, capture.unfinished) == (3, 0, 0)


def test_incomplete_fragments_are_counted(tmp_path: Path) -> None:
    capture = Capture(write_pcap(tmp_path / "a.pcap", [(0.0, each) for each in pieces(Sent(bytes(40)))[:2]]))
    assert list(capture) == []
    assert (capture.others, capture.unfinished) == (0, 2)


def test_other_frames_are_counted_and_short_frames_are_harmless(tmp_path: Path) -> None:
    tcp = bytearray(datagram(SENT))
    tcp[9] = 6
    frames = [frame(b"", kind=0x0806), b"\x01", b"", frame(bytes(tcp)), frame(datagram(SENT))[:20], frame(datagram(SENT))]
    capture = Capture(write_pcap(tmp_path / "a.pcap", [(0.0, each) for each in frames]))
    [found] = capture
    assert found.number == 6
    assert (capture.frames, capture.others) == (6, 5)


def test_truncated_frames_keep_the_original_size(tmp_path: Path) -> None:
    [found] = Capture(write_pcap(tmp_path / "a.pcap", [(0.0, frame(datagram(Sent(bytes(100)))))], snap=64))
    assert (len(found.payload), found.size) == (22, 100)


@pytest.mark.parametrize("ng", [False, True])
def test_a_truncated_file_yields_its_complete_packets_and_a_warning(tmp_path: Path, ng: bool) -> None:
    frames = [(0.0, frame(datagram(SENT)), 0)] * 3
    path = tmp_path / "a"
    write_pcapng(path, frames) if ng else write_pcap(path, [each[:2] for each in frames])
    path.write_bytes(path.read_bytes()[:-10])
    capture = Capture(path)
    assert len(list(capture)) == 2
    assert "ends inside" in capture.file.flaw


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello, this is text", "is not a pcap or pcapng file"),
        (b"\xd4\xc3\xb2\xa1", "is a broken capture"),
        (pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"\xff" * 32, "is a broken capture"),
        (b"\x0a\x0d\x0d\x0a" + bytes(20), "is a broken capture"),
        (pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 105) + pack("<IIII4s", 0, 0, 4, 4, b"wlan"), "link type 105"),
    ],
)
def test_a_file_that_is_no_capture_is_a_one_line_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.pcap").write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(message)):
        list(Capture(tmp_path / "bad.pcap"))


def test_a_missing_file_or_a_folder_is_a_one_line_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pcap", tmp_path):
        with pytest.raises(UsageError, match="can't be read"):
            list(Capture(path))
