"""Ethernet frames as links see them: which UDP payload a frame carries, and datagrams that travel in several frames."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Datagram", "Frames", "Reassembly"]

Frames: TypeAlias = bytes | tuple[bytes, ...]
"""What one datagram travels in."""

_IPV4, _VLAN = b"\x08\x00", b"\x81\x00"
_UDP = 17
_UDP_HEADER = 8
_MOST_PARTIAL = 256
"""Datagrams that wait for their other fragments; some never come, where a link before lost them."""


class Datagram(NamedTuple):
    """A UDP payload and the frames it came in."""

    payload: bytes
    frames: Frames


class _Partial:
    """Fragments of one datagram."""

    __slots__ = ("frames", "total")

    def __init__(self) -> None:
        self.frames: dict[int, tuple[bytes, bytes]] = {}
        self.total = -1

    def add(self, frame: bytes, offset: int, body: bytes, last: bool) -> Datagram | None:
        self.frames[offset] = frame, body
        if last:
            self.total = offset + len(body)
        if sum(len(body) for _, body in self.frames.values()) != self.total:
            return None
        ordered = [self.frames[offset] for offset in sorted(self.frames)]
        return Datagram(b"".join(body for _, body in ordered)[_UDP_HEADER:], tuple(frame for frame, _ in ordered))


class Reassembly:
    """Finds the datagrams in the frames of one direction of a link."""

    __slots__ = ("_partial",)

    def __init__(self) -> None:
        self._partial: dict[bytes, _Partial] = {}

    def take(self, frame: bytes) -> Datagram | Sequence[bytes]:
        """The datagram that this frame completes; else the frames to pass on as they are, none while a datagram is partial."""
        kind = frame[12:14]
        at = 14
        if kind == _VLAN:
            kind, at = frame[16:18], 18
        if kind != _IPV4 or len(frame) < at + 20 or frame[at + 9] != _UDP:
            return (frame,)
        body = at + (frame[at] & 15) * 4
        if len(frame) < body + _UDP_HEADER:
            return (frame,)
        fragment = (frame[at + 6] & 0x3F) << 8 | frame[at + 7]
        if fragment:
            found = self._gather(frame, at, body, fragment)
            return () if found is None else found
        # Short frames are padded, so the length is the header's and not the frame's.
        return Datagram(frame[body + _UDP_HEADER : body + (frame[body + 4] << 8 | frame[body + 5])], frame)

    def _gather(self, frame: bytes, at: int, body: int, fragment: int) -> Datagram | None:
        """One more fragment: the datagram if it is whole now."""
        key = frame[at + 12 : at + 20] + frame[at + 4 : at + 6]
        partial = self._partial.setdefault(key, _Partial())
        end = at + (frame[at + 2] << 8 | frame[at + 3])
        datagram = partial.add(frame, (fragment & 0x1FFF) * 8, frame[body:end], not fragment & 0x2000)
        if datagram is not None:
            del self._partial[key]
        elif len(self._partial) > _MOST_PARTIAL:
            del self._partial[next(iter(self._partial))]
        return datagram
