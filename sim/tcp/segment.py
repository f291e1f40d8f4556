"""Segments of TCP: the packets that the two ends of a simulated connection exchange."""

from typing import ClassVar, Final, TypeAlias

from mypy_extensions import mypyc_attr

from protocols.machine import Message

__all__ = [
    "FIN",
    "HEADER",
    "RST",
    "SYN",
    "TCP_HEADER",
    "AckSegment",
    "Content",
    "ControlSegment",
    "Key",
    "Segment",
    "SynSegment",
    "options_size",
]

FIN: Final = 1
SYN: Final = 2
RST: Final = 4

HEADER: Final = 32
"""Bytes of the TCP header with the option of time stamps (RFC 7323), which every segment has."""
TCP_HEADER: Final = HEADER - 8
"""The part of `HEADER` in the size of a packet: links add the 8 bytes of a UDP header themselves (`LinkSpec.overhead`).

So a segment with 1448 bytes of data occupies 1514 bytes: 14 Ethernet, 20 IPv4, 20 TCP, 12 time stamps, and the data.
"""
SYN_OPTIONS: Final = 8
"""More bytes of a SYN: largest segment, SACK permitted, window scale."""
_SACK_OPTION: Final = 4
_SACK_BLOCK: Final = 8

Key: TypeAlias = tuple[int, int, int, int]
"""The end of a connection: the place and TCP port of its host, the place and TCP port of the peer."""
Content: TypeAlias = "tuple[tuple[Message, int], ...] | bytes"
"""Payload of a segment: messages that end within it, each with its bytes on the stream; or, encoded, its bytes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Segment(Message):
    """A segment with data. Numbers count bytes of a stream without limit: SYN is number 0, and the first byte number 1."""

    kind: ClassVar[str] = "segment"
    __slots__ = (
        "ack",
        "again",
        "content",
        "echo",
        "edge",
        "end",
        "flags",
        "name",
        "number",
        "octets",
        "push",
        "sack",
        "stamp",
        "to",
    )

    def __init__(
        self,
        to: Key,
        flags: int,
        number: int,
        end: int,
        octets: int,
        content: Content,
        identity: int,
        ack: int,
        edge: int,
        sack: tuple[tuple[int, int], ...],
        stamp: int,
        echo: int,
        push: bool = False,
        again: bool = False,
    ) -> None:
        self.to = to
        """The end that it is for."""
        self.flags = flags
        self.number = number
        """Of its first byte."""
        self.octets = octets
        """Bytes of data."""
        self.end = end
        """Number of the first byte behind it; SYN and FIN count as one."""
        self.content = content
        self.name = identity
        """Its identity; `identity` is a property of every message."""
        self.ack = ack
        """Number of the byte expected next; 0 when it acknowledges nothing."""
        self.edge = edge
        """Number of the first byte that the sender has no room for. Ends keep this number and not a window, which is
        another object for each segment."""
        self.sack = sack
        """Ranges (first byte, first byte behind) received beyond `ack` (RFC 2018), the latest first."""
        self.stamp = stamp
        """Time stamp: milliseconds of the sender's clock."""
        self.echo = echo
        """The time stamp that is echoed."""
        self.push = push
        """Whether the last byte of what was written so far is in it."""
        self.again = again
        """Whether it is a retransmission."""

    @property
    def window(self) -> int:
        """Bytes the sender has room for, from `ack` on."""
        return self.edge - self.ack

    @property
    def identity(self) -> int | None:
        """Stable 64 bits: the connection's, and the number of the segment on it, the same for every transmission."""
        return self.name

    @property
    def repair(self) -> bool:
        """Whether it is a retransmission."""
        return self.again

    @property
    def brief(self) -> str:
        """Flags, the numbers of its bytes, and the number acknowledged, e.g. "1:1449 ack 1"."""
        names = [name for flag, name in ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST")) if self.flags & flag]
        data = [f"{self.number}:{self.end}"] if self.end > self.number else []
        gaps = [f"sack {first}:{last}" for first, last in self.sack]
        return " ".join([*names, *data, *([f"ack {self.ack}"] if self.ack else []), *gaps])


@mypyc_attr(allow_interpreted_subclasses=True)
class AckSegment(Segment):
    """A segment without data that only acknowledges, updates the window or probes."""

    kind = "segment_ack"
    is_feedback = True
    __slots__ = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class ControlSegment(Segment):
    """A segment that opens, ends or resets a connection: SYN, FIN, RST. A FIN may carry data."""

    kind = "segment_control"
    __slots__ = ()


@mypyc_attr(allow_interpreted_subclasses=True)
class SynSegment(ControlSegment):
    """A SYN, with the bytes of data that its sender takes in one segment."""

    __slots__ = ("mss",)
    mss: int


def options_size(segment: Segment) -> int:
    """Return the bytes of the options that not every segment has."""
    sack = _SACK_OPTION + _SACK_BLOCK * len(segment.sack) if segment.sack else 0
    return sack + (SYN_OPTIONS if segment.flags & SYN else 0)
