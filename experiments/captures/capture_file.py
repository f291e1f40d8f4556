"""Read frames from pcap and pcapng files without a capture library."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct, unpack_from
from struct import error as StructError

from protocols.errors import ConfigError, UsageError
from topologies.input_file import open_input

__all__ = ["CaptureFile", "Frame", "is_capture"]

# Magic number -> byte order and fractions of a second.
_PCAP = {
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_PCAP_HEADER = 24
# Magic number of compressed files -> the program that decompresses them.
_COMPRESSED = {b"\x1f\x8b": "gunzip", b"\xfd7zXZ": "unxz", b"\x28\xb5\x2f\xfd": "unzstd", b"BZh": "bunzip2"}
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_COMMENT, _FLAGS, _RESOLUTION, _OFFSET = 1, 2, 9, 14
_LARGEST = 1 << 24


@dataclass(frozen=True, slots=True)
class Frame:
    """A captured frame; `data` may be shorter than the original `length`. `number` counts from 1, as in Wireshark."""

    number: int
    time: float
    link: int
    interface: int
    data: bytes
    length: int
    comment: str = ""
    direction: int = 0
    """1 inbound, 2 outbound, 0 if the file does not record it."""


@dataclass(slots=True)
class _Interface:
    """An interface of a pcapng section: its link type, timestamp resolution and offset in seconds."""

    link: int
    resolution: float = 1e-6
    offset: int = 0


def is_capture(head: bytes) -> bool:
    """Return whether these first bytes of a file are a pcap or pcapng magic number."""
    return head[:4] in _PCAP or head[:4] == _PCAPNG


class CaptureFile:
    """A capture on disk; after `frames` is exhausted, `flaw` reports a truncated end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flaw = ""
        """Description of the truncated end of the file; empty if it is complete."""

    def frames(self) -> Iterator[Frame]:
        """Yield every frame in file order.

        Raises UsageError for an unreadable file, ConfigError for one that is not a valid capture.
        """
        self.flaw = ""
        with _mapped(self.path) as data:
            if not is_capture(data[:4]):
                tool = next((tool for magic, tool in _COMPRESSED.items() if data[: len(magic)] == magic), "")
                hint = f", and compressed; {tool} makes one that can be read" if tool else ""
                raise ConfigError(f"{self.path}: is not a pcap or pcapng file{hint}")
            try:
                yield from self._pcapng(data) if data[:4] == _PCAPNG else self._pcap(data)
            except (StructError, IndexError) as problem:
                raise ConfigError(f"{self.path}: is a broken capture ({problem})") from problem

    def _pcap(self, data: mmap) -> Iterator[Frame]:
        order, fraction = _PCAP[data[:4]]
        if len(data) < _PCAP_HEADER:
            raise ConfigError(f"{self.path}: is a broken capture (it ends inside its header of {_PCAP_HEADER} bytes)")
        link = unpack_from(order + "I", data, 20)[0] & 0xFFFF
        head, at, end, number = Struct(order + "IIII"), _PCAP_HEADER, len(data), 0
        while at + 16 <= end:
            seconds, part, captured, length = head.unpack_from(data, at)
            if captured > _LARGEST:
                raise IndexError(f"packet {number + 1} of {captured} bytes")
            if at + 16 + captured > end:
                break
            number += 1
            at += 16
            yield Frame(number, seconds + part * fraction, link, 0, data[at : at + captured], length)
            at += captured
        if at != end:
            self.flaw = f"the file ends inside packet {number + 1}"

    def _pcapng(self, data: mmap) -> Iterator[Frame]:
        order, at, end, number = "<", 0, len(data), 0
        interfaces: list[_Interface] = []
        first = 0
        while at + 12 <= end:
            kind, length = unpack_from(order + "II", data, at)
            if kind == _SECTION:
                order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
                length = unpack_from(order + "I", data, at + 4)[0]
                first += len(interfaces)
                interfaces = []
            if length < 12 or length > _LARGEST:
                raise IndexError(f"a block of {length} bytes")
            if at + length > end:
                break
            if kind == _INTERFACE:
                interfaces.append(_interface(data, at, length, order))
            elif kind in (_ENHANCED, _SIMPLE):
                number += 1
                read = _enhanced if kind == _ENHANCED else _simple
                yield read(data, at, length, order, interfaces, first, number)
            at += length
        if at != end:
            self.flaw = f"the file ends inside a block, after packet {number}"


@contextmanager
def _mapped(path: Path) -> Iterator[mmap]:
    try:
        with open(open_input(path), "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise ConfigError(f"{path}: is empty")
            with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                yield data
    except OSError as problem:
        raise UsageError(f"{path}: can't be read ({problem.strerror})") from problem
    except ValueError as problem:
        raise UsageError(f"{path}: can't be read ({problem})") from problem


def _interface(data: mmap, at: int, length: int, order: str) -> _Interface:
    found = _Interface(unpack_from(order + "H", data, at + 8)[0])
    for code, value in _options(data, at + 16, at + length - 4, order):
        if code == _RESOLUTION and value:
            found.resolution = 2.0 ** -(value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** -value[0]
        elif code == _OFFSET and len(value) == 8:
            found.offset = unpack_from(order + "q", value)[0]
    return found


def _options(data: mmap, at: int, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= end:
        code, length = unpack_from(order + "HH", data, at)
        if not code:
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + length + (-length % 4)


def _enhanced(data: mmap, at: int, length: int, order: str, interfaces: list[_Interface], first: int, number: int) -> Frame:
    which, high, low, captured, original = unpack_from(order + "IIIII", data, at + 8)
    interface, start = interfaces[which], at + 28
    if captured > length - 32:
        raise IndexError(f"packet {number} of {captured} bytes in a block of {length}")
    comment, direction = "", 0
    for code, value in _options(data, start + captured + (-captured % 4), at + length - 4, order):
        if code == _COMMENT:
            comment = value.decode("utf-8", "replace")
        elif code == _FLAGS and len(value) == 4:
            direction = unpack_from(order + "I", value)[0] & 3
    time = (high << 32 | low) * interface.resolution + interface.offset
    return Frame(number, time, interface.link, first + which, data[start : start + captured], original, comment, direction)


def _simple(data: mmap, at: int, length: int, order: str, interfaces: list[_Interface], first: int, number: int) -> Frame:
    original = unpack_from(order + "I", data, at + 8)[0]
    captured = min(original, length - 16)
    return Frame(number, 0.0, interfaces[0].link, first, data[at + 12 : at + 12 + captured], original)
