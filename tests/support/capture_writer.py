"""Captures written by tests: UDP datagrams in frames of any link layer, as pcap or pcapng."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from struct import pack

__all__ = ["COOKED", "COOKED2", "ETHERNET", "NULL", "RAW", "Sent", "datagram", "frame", "write_pcap", "write_pcapng"]

ETHERNET, RAW, NULL, COOKED, COOKED2 = 1, 101, 0, 113, 276
PORT = 6003


@dataclass(frozen=True)
class Sent:
    """UDP datagram of a test: `time` in seconds, addresses as four numbers."""

    payload: bytes
    time: float = 0.0
    source: tuple[int, int, int, int] = (10, 0, 0, 1)
    target: tuple[int, int, int, int] = (239, 1, 2, 3)
    sport: int = 40_000
    port: int = PORT
    ident: int = 0


def datagram(sent: Sent, fragment: int = 0, body: bytes | None = None) -> bytes:
    """Encode an IPv4 packet; with `body` a fragment of one."""
    udp = pack(">HHHH", sent.sport, sent.port, 8 + len(sent.payload), 0) + sent.payload
    udp = udp if body is None else body
    head = pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), sent.ident, fragment, 1, 17, 0)
    return head + bytes(sent.source) + bytes(sent.target) + udp


def frame(ip: bytes, link: int = ETHERNET, tags: Iterable[int] = (), kind: int = 0x0800, way: int = 0) -> bytes:
    """Encode the frame of a packet for a link layer; `way` is the packet type in Linux cooked captures."""
    tagged = b"".join(pack(">HH", 0x8100, tag) for tag in tags)
    if link == RAW:
        return ip
    if link == NULL:
        return pack("<I", 2) + ip
    if link == COOKED:
        return pack(">HHHQ", way, 1, 6, 0) + tagged + pack(">H", kind) + ip
    if link == COOKED2:
        protocol, inner = (kind, b"") if not tagged else (0x8100, tagged[2:] + pack(">H", kind))
        return pack(">HHIHBBQ", protocol, 0, 3, 1, way, 6, 0) + inner + ip
    return bytes(12) + tagged + pack(">H", kind) + ip


def write_pcap(path: Path, frames: Iterable[tuple[float, bytes]], link: int = ETHERNET, snap: int = 65_535) -> Path:
    """Write (time, frame) as a pcap file, each frame cut to `snap` bytes."""
    out = [pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, link)]
    for time, data in frames:
        kept = data[:snap]
        out.append(pack("<IIII", int(time), round(time % 1 * 1e6), len(kept), len(data)) + kept)
    path.write_bytes(b"".join(out))
    return path


def _block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return pack(order + "II", kind, length) + body + pack(order + "I", length)


def write_pcapng(
    path: Path, frames: Iterable[tuple[float, bytes, int]], links: Iterable[int] = (ETHERNET,), order: str = "<"
) -> Path:
    """Write (time, frame, interface) as a pcapng file with times in nanoseconds, in either byte order."""
    out = [_block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)]
    resolution = pack(order + "HHB3xI", 9, 1, 9, 0)
    out += [_block(1, pack(order + "HHI", link, 0, 0) + resolution, order) for link in links]
    for time, data, interface in frames:
        stamp = round(time * 1e9)
        head = pack(order + "IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data))
        out.append(_block(6, head + data, order))
    path.write_bytes(b"".join(out))
    return path
