"""UDP datagrams out of captures: link layers, VLAN tags, IPv4 with its fragments, and IPv6."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from struct import error as StructError
from struct import unpack_from

from experiments.captures.capture_file import CaptureFile, Frame, is_capture
from protocols.errors import ConfigError

__all__ = ["Capture", "Datagram", "is_capture", "read_capture"]

_UDP = 17
_IP_TYPES = (0x0800, 0x86DD)
_TAGS = (0x8100, 0x88A8)
_ETHERNET, _COOKED, _COOKED2 = 1, 113, 276
_RAW = (12, 14, 101, 228, 229)
# Loopback devices: a word says the family, which the version of IP says as well.
_NULL = (0, 108)
_FRAGMENTS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Datagram:
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
        self._pending: dict[bytes, _Pieces] = {}

    def __iter__(self) -> Iterator[Datagram]:
        """Every UDP datagram in order. ConfigError for a file that is no capture, or one of a link type not known."""
        self.frames = self.others = self.unfinished = 0
        self._pending.clear()
        for frame in self.file.frames():
            self.frames += 1
            try:
                at, point = _network(frame)
                found = None if at is None else self._datagram(frame, at, point)
            except (StructError, IndexError):
                # Too short for the headers it begins with.
                at = found = None
            if found is not None:
                yield found
            elif at is None or not self._is_fragment(frame.data, at):
                self.others += 1
        self.unfinished += sum(len(pieces.parts) for pieces in self._pending.values())

    def _datagram(self, frame: Frame, at: int, point: tuple[int, ...]) -> Datagram | None:
        data = frame.data
        if data[at] >> 4 == 6:
            if data[at + 6] != _UDP:
                return None
            return self._udp(frame, point, data[at + 40 :], data[at + 8 : at + 24], data[at + 24 : at + 40])
        if data[at] >> 4 != 4 or data[at + 9] != _UDP:
            return None
        length, ident, fragment = unpack_from(">HHH", data, at + 2)
        # Offloaded batches beyond 64 KiB carry 0 here.
        body = data[at + (data[at] & 15) * 4 : at + length if length else None]
        ends = data[at + 12 : at + 16], data[at + 16 : at + 20]
        if fragment & 0x3FFF:
            whole = self._gathered(ident, *ends, fragment, body)
            if whole is None:
                return None
            body = whole
        return self._udp(frame, point, body, *ends)

    def _udp(self, frame: Frame, point: tuple[int, ...], body: bytes, source: bytes, target: bytes) -> Datagram | None:
        sport, port, length = unpack_from(">HHH", body)
        if length and length < 8:
            return None
        size = (length or len(body)) - 8
        payload = body[8 : 8 + size]
        names = self._address(source), self._address(target)
        return Datagram(*names, port, payload, sport, frame.number, frame.time, size, point, frame.comment)

    def _address(self, raw: bytes) -> str:
        found = self._addresses.get(raw)
        if found is None:
            found = self._addresses[raw] = str(ip_address(raw))
        return found

    @staticmethod
    def _is_fragment(data: bytes, at: int) -> bool:
        return data[at] >> 4 == 4 and data[at + 9] == _UDP and bool(unpack_from(">H", data, at + 6)[0] & 0x3FFF)

    def _gathered(self, ident: int, source: bytes, target: bytes, fragment: int, body: bytes) -> bytes | None:
        """The whole of a datagram once its last fragment is there."""
        key = source + target + ident.to_bytes(2)
        pieces = self._pending.get(key)
        if pieces is None:
            if len(self._pending) >= _FRAGMENTS_KEPT:
                self.unfinished += len(self._pending.pop(next(iter(self._pending))).parts)
            pieces = self._pending[key] = _Pieces()
        whole = pieces.add((fragment & 0x1FFF) * 8, body, more=bool(fragment & 0x2000))
        if whole is not None:
            del self._pending[key]
        return whole


class _Pieces:
    """The fragments of one datagram."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self._end = -1

    def add(self, offset: int, body: bytes, *, more: bool) -> bytes | None:
        """The whole, or None as long as something lacks."""
        self.parts[offset] = body
        if not more:
            self._end = offset + len(body)
        joined = b""
        for start in sorted(self.parts):
            if start != len(joined):
                return None
            joined += self.parts[start]
        return joined if len(joined) == self._end else None


def _network(frame: Frame) -> tuple[int | None, tuple[int, ...]]:
    """Where IP begins in a frame, None when it carries something else; and where it was captured."""
    link, data = frame.link, frame.data
    point: tuple[int, ...] = (frame.interface, frame.direction)
    if link == _ETHERNET:
        return _behind_tags(data, 12), point
    if link in _RAW:
        return 0, point
    if link in _NULL:
        return 4, point
    if link == _COOKED:
        return _behind_tags(data, 14), (frame.interface, unpack_from(">H", data)[0])
    if link == _COOKED2:
        kind, device = unpack_from(">H2xI", data)
        point = (frame.interface, device, data[10])
        if kind in _TAGS:
            return _behind_tags(data, 22), point
        return (20 if kind in _IP_TYPES else None), point
    raise ConfigError(f"link type {link} of a capture is not known; Ethernet, Linux cooked, raw IP and loopback are")


def _behind_tags(data: bytes, at: int) -> int | None:
    """Behind the EtherType at `at` and VLAN tags, if that is IP."""
    kind = unpack_from(">H", data, at)[0]
    while kind in _TAGS:
        at += 4
        kind = unpack_from(">H", data, at)[0]
    return at + 2 if kind in _IP_TYPES else None


def read_capture(path: Path) -> Iterator[Datagram]:
    """Every UDP datagram of a capture in order; other frames are passed over. ConfigError for a broken file."""
    return iter(Capture(path))
