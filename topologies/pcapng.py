"""Writer of pcapng files (draft-ietf-opsawg-pcapng) with several interfaces, nanosecond times and packet comments."""

import struct
from typing import BinaryIO

__all__ = ["INBOUND", "OUTBOUND", "PcapngWriter"]

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_ETHERNET = 1
_COMMENT, _IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL, _EPB_FLAGS, _SHB_APPLICATION = 1, 2, 3, 9, 2, 4
_LONGEST = 65_535
INBOUND, OUTBOUND = 1, 2
"""Direction of a packet from the point of view of its interface (epb_flags)."""


class PcapngWriter:
    """Writes one section to an open binary file. Times are seconds since 1970, rounded to nanoseconds."""

    def __init__(self, file: BinaryIO, application: str = "mcastlab") -> None:
        self._file = file
        self._interfaces = 0
        head = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1)
        self._block(_SECTION, head + _options([(_SHB_APPLICATION, application.encode())]))

    def interface(self, name: str, description: str = "") -> int:
        """Add an Ethernet interface; returns its number for `packet`."""
        options = [(_IF_NAME, name.encode()), (_IF_DESCRIPTION, description.encode()), (_IF_TSRESOL, b"\x09")]
        self._block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + _options(options))
        self._interfaces += 1
        return self._interfaces - 1

    def packet(self, interface: int, when: float, frame: bytes, direction: int = 0, comment: str = "") -> int:
        """Write a frame without FCS, captured at `when` seconds; `direction` is INBOUND, OUTBOUND or 0 for unknown.

        Returns the bytes of the block, of which a file that is not buffered may have written only a part.
        """
        time = round(when * 1e9)
        head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
        flags = struct.pack("<I", direction) if direction else b""
        return self._block(_PACKET, head + _padded(frame) + _options([(_COMMENT, comment.encode()), (_EPB_FLAGS, flags)]))

    def _block(self, kind: int, body: bytes) -> int:
        total = len(body) + 12
        length = struct.pack("<I", total)
        self._file.write(struct.pack("<I", kind) + length + body + length)
        return total


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _options(options: list[tuple[int, bytes]]) -> bytes:
    """Encode the options that have a value, and the end of options."""
    given = [(code, value[:_LONGEST]) for code, value in options if value]
    if not given:
        return b""
    return b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in given) + bytes(4)
