"""UDP datagrams out of captures: link layers, VLAN tags, IPv4 and IPv6, each with its fragments."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from struct import error as StructError
from struct import unpack_from

from experiments.captures.capture_file import CaptureFile, Frame, is_capture
from protocols.errors import ConfigError
from topologies.frames.ipv4 import IPV4, IPV6, VLAN_TAGS, IpPacket, Reassembly, network_layer, read_ipv4
from topologies.frames.ipv6 import read_ipv6

__all__ = ["Capture", "CapturedDatagram", "endpoint_text", "is_capture", "read_capture"]

_ETHERNET, _COOKED, _COOKED2 = 1, 113, 276
_RAW = (12, 14, 101, 228, 229)
# Loopback devices: a word says the family, which the version of IP says as well.
_NULL = (0, 108)
_INCOMPLETE_KEPT = 1000
"""Incomplete datagrams that are kept for reassembly."""


def endpoint_text(address: str, port: int) -> str:
    """Return an address and a port as text; IPv6 addresses stand in brackets (RFC 3986)."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(frozen=True, slots=True)
class CapturedDatagram:
    """A UDP datagram: addresses as text, payload as captured, which is shorter than `size` when the capture cut it.

    `point` tells interfaces and, where the capture does, directions apart. One that came in fragments has number, time and
    point of the last.
    """

    source: str
    target: str
    port: int
    payload: bytes
    sport: int = 0
    number: int = 0
    time: float = 0.0
    size: int = 0
    point: tuple[int, ...] = ()
    comment: str = ""


class Capture:
    """The datagrams of a capture file, and counts of what else is in it; the counts are those of the last iteration."""

    def __init__(self, path: Path) -> None:
        self.file = CaptureFile(path)
        self.frames = self.others = self.unfinished = 0
        """Frames at all, those without UDP over IP, and fragments whose datagram is not whole."""
        self._addresses: dict[bytes, str] = {}
        self._reassembly = Reassembly(_INCOMPLETE_KEPT)

    def __iter__(self) -> Iterator[CapturedDatagram]:
        """Every UDP datagram in order. ConfigError for a file that is no capture, or one of a link type not known."""
        self.frames = self.others = self.unfinished = 0
        self._reassembly = Reassembly(_INCOMPLETE_KEPT)
        for frame in self.file.frames():
            self.frames += 1
            found, is_fragment = None, False
            try:
                at, point = _network(frame)
                packet = None if at is None else _packet(frame.data, at)
                if packet is not None:
                    is_fragment = bool(packet.fragment)
                    found = self._datagram(frame, packet, point)
            except (StructError, IndexError):
                # Too short for the headers it begins with.
                pass
            if found is not None:
                yield found
            elif not is_fragment:
                self.others += 1
        self.unfinished = self._reassembly.dropped + self._reassembly.waiting

    def _datagram(self, frame: Frame, packet: IpPacket, point: tuple[int, ...]) -> CapturedDatagram | None:
        body = packet.body
        if packet.fragment:
            found = self._reassembly.add(packet)
            if found is None:
                return None
            body = found.body
        return self._udp(frame, point, body, packet.source, packet.target)

    def _udp(self, frame: Frame, point: tuple[int, ...], body: bytes, source: bytes, target: bytes) -> CapturedDatagram | None:
        sport, port, length = unpack_from(">HHH", body)
        if length and length < 8:
            return None
        size = (length or len(body)) - 8
        payload = body[8 : 8 + size]
        names = self._address(source), self._address(target)
        return CapturedDatagram(*names, port, payload, sport, frame.number, frame.time, size, point, frame.comment)

    def _address(self, raw: bytes) -> str:
        found = self._addresses.get(raw)
        if found is None:
            found = self._addresses[raw] = str(ip_address(raw))
        return found


def _packet(data: bytes, at: int) -> IpPacket | None:
    """Return the IP packet at an offset, if it carries UDP."""
    version = data[at] >> 4
    return read_ipv4(data, at) if version == 4 else read_ipv6(data, at) if version == 6 else None


def _network(frame: Frame) -> tuple[int | None, tuple[int, ...]]:
    """Where IP begins in a frame, None when it carries something else; and where it was captured."""
    link, data = frame.link, frame.data
    point: tuple[int, ...] = (frame.interface, frame.direction)
    if link == _ETHERNET:
        return _ip_at(data, 12), point
    if link in _RAW:
        return 0, point
    if link in _NULL:
        return 4, point
    if link == _COOKED:
        return _ip_at(data, 14), (frame.interface, unpack_from(">H", data)[0])
    if link == _COOKED2:
        kind, device = unpack_from(">H2xI", data)
        point = (frame.interface, device, data[10])
        if kind in (IPV4, IPV6):
            return 20, point
        # The EtherType behind a VLAN tag comes after the header.
        return (_ip_at(data, 22) if kind in VLAN_TAGS else None), point
    raise ConfigError(f"link type {link} of a capture is not known; Ethernet, Linux cooked, raw IP and loopback are")


def _ip_at(data: bytes, at: int) -> int | None:
    """Return where IP begins behind the EtherType at `at` and VLAN tags; None where it is another protocol."""
    kind, at = network_layer(data, at)
    return at if kind in (IPV4, IPV6) else None


def read_capture(path: Path) -> Iterator[CapturedDatagram]:
    """Every UDP datagram of a capture in order; other frames are passed over. ConfigError for a broken file."""
    return iter(Capture(path))
