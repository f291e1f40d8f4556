"""UDP payloads out of pcap and pcapng files, without any capture library."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct, error, unpack_from

from protocols.errors import ConfigError, UsageError

__all__ = ["Datagram", "is_capture", "read_capture"]

_PCAP = {b"\xa1\xb2\xc3\xd4": ">", b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\x3c\x4d": ">", b"\x4d\x3c\xb2\xa1": "<"}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_UDP = 17
_IPV4_TYPES = (0x0800,)
_TAGS = (0x8100, 0x88A8)
# Link type -> bytes before the protocol number, None where IP begins at once, -4 for the family word of loopback devices.
_ETHERNET, _RAW, _NULL, _COOKED, _COOKED2 = 1, (12, 14, 101, 228), (0, 108), 113, 276


@dataclass(frozen=True, slots=True)
class Datagram:
    """A UDP datagram over IPv4: addresses as text, payload as captured."""

    source: str
    target: str
    port: int
    payload: bytes


def is_capture(head: bytes) -> bool:
    """Do these first bytes of a file say pcap or pcapng?"""
    return head[:4] in _PCAP or head[:4] == _PCAPNG


def read_capture(path: Path) -> Iterator[Datagram]:
    """Every whole UDP datagram in order; other frames and fragments are passed over. ConfigError for a broken file."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise UsageError(f"{path}: can't be read ({problem.strerror})") from problem
    if not is_capture(data):
        raise ConfigError(f"{path}: is no pcap or pcapng file")
    frames = _pcapng(data) if data[:4] == _PCAPNG else _pcap(data)
    try:
        for link, frame in frames:
            found = _datagram(link, frame)
            if found is not None:
                yield found
    except (error, IndexError) as problem:
        raise ConfigError(f"{path}: is a broken capture ({problem})") from problem


def _pcap(data: bytes) -> Iterator[tuple[int, bytes]]:
    order = _PCAP[data[:4]]
    link = unpack_from(order + "I", data, 20)[0] & 0xFFFF
    head, at = Struct(order + "IIII"), 24
    while at + 16 <= len(data):
        length = head.unpack_from(data, at)[2]
        yield link, data[at + 16 : at + 16 + length]
        at += 16 + length


def _pcapng(data: bytes) -> Iterator[tuple[int, bytes]]:
    order, at, links = "<", 0, list[int]()
    while at + 12 <= len(data):
        kind = unpack_from(order + "I", data, at)[0]
        if kind == _SECTION:
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        length = unpack_from(order + "I", data, at + 4)[0]
        if length < 12:
            raise IndexError(f"a block of {length} bytes")
        if kind == _INTERFACE:
            links.append(unpack_from(order + "H", data, at + 8)[0])
        elif kind == _ENHANCED:
            which, captured = unpack_from(order + "I8xI", data, at + 8)
            yield links[which], data[at + 28 : at + 28 + captured]
        elif kind == _SIMPLE:
            yield links[0], data[at + 12 : at + length - 4]
        at += length


def _network(link: int, frame: bytes) -> int | None:
    """Where IPv4 begins in a frame, or None."""
    if link in _RAW:
        return 0
    if link in _NULL:
        return 4
    if link == _COOKED2:
        return 20 if unpack_from(">H", frame, 0)[0] in _IPV4_TYPES else None
    at = {_ETHERNET: 12, _COOKED: 14}.get(link)
    if at is None:
        raise ConfigError(f"link type {link} of a capture is not known; Ethernet, Linux cooked, raw IP and loopback are")
    while unpack_from(">H", frame, at)[0] in _TAGS:
        at += 4
    return at + 2 if unpack_from(">H", frame, at)[0] in _IPV4_TYPES else None


def _datagram(link: int, frame: bytes) -> Datagram | None:
    at = _network(link, frame)
    if at is None or len(frame) < at + 28 or frame[at] >> 4 != 4 or frame[at + 9] != _UDP:
        return None
    if unpack_from(">H", frame, at + 6)[0] & 0x3FFF:
        return None
    udp = at + (frame[at] & 15) * 4
    port, length = unpack_from(">HH", frame, udp + 2)
    source, target = (".".join(map(str, frame[at + n : at + n + 4])) for n in (12, 16))
    return Datagram(source, target, port, frame[udp + 8 : udp + length])
