"""Ethernet frames, and links in user space without devices and without a clock, for tests."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from emu.userspace_link import FrameForwarder, LinkDirection
from protocols.machine import Codec
from tests.emu.number_protocol import NumberCodec
from topologies.spec import LinkSpec

__all__ = ["ARP", "KEY", "ManualLink", "frame_of", "frames_of"]

KEY = 0x1234567890ABCDEF
MACS = b"\x01\x00\x5e\x48\x01\x01" + b"\x02\x00\x0a\x00\x00\x01"
ARP = MACS + b"\x08\x06" + bytes(46)


def frame_of(payload: bytes, vlan: int | None = None) -> bytes:
    """A UDP datagram that fits into one frame."""
    (frame,) = frames_of(payload, 1500)
    return frame if vlan is None else frame[:12] + b"\x81\x00" + struct.pack("!H", vlan) + frame[12:]


def frames_of(payload: bytes, mtu: int, number: int = 7) -> list[bytes]:
    """The same in as many frames as it takes; `number` tells fragments of one datagram from those of others."""
    datagram = struct.pack("!HHHH", 5000, 7001, len(payload) + 8, 0) + payload
    room = (mtu - 20) // 8 * 8
    parts = [datagram[at : at + room] for at in range(0, len(datagram), room)] if len(datagram) > mtu - 20 else [datagram]
    frames = []
    for place, part in enumerate(parts):
        more = 0x2000 if place < len(parts) - 1 else 0
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), number, more | place * room // 8, 1, 17, 0)
        frames.append(MACS + b"\x08\x00" + head + bytes((10, 0, 0, 1, 239, 200, 1, 1)) + part)
    return frames


class ManualLink:
    """One direction of a link in user space, with a clock that is turned by hand. Frames go through sockets instead of TAPs."""

    def __init__(self, spec: LinkSpec, codec: Codec | None = None, *, begun: bool = True, member: int = 0) -> None:
        kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
        self.near, source = socket.socketpair(socket.AF_UNIX, kind)
        self.far, target = socket.socketpair(socket.AF_UNIX, kind)
        self.held = [source, target]
        self.now = 100.0
        self._out: list[bytes] = []
        direction = LinkDirection("a-b", source.fileno(), target.fileno(), spec, KEY, member)
        self.forwarder = FrameForwarder([direction], codec or NumberCodec(), lambda: self.now)
        if begun:
            self.forwarder.begin()

    def send(self, frames: Sequence[bytes]) -> None:
        """Frames come to the near end, now; the link looks at once."""
        for frame in frames:
            self.near.send(frame)
            self.step()

    def step(self) -> None:
        """What is to be done now is done."""
        self.forwarder.step(self.forwarder.sources, self.now)
        self._drain()

    def wait(self, seconds: float) -> None:
        """Time goes by, and the link wakes whenever it wants to."""
        end = self.now + seconds
        while self.forwarder.deadline <= end:
            self.now = max(self.now, self.forwarder.deadline)
            self.step()
        self.now = end

    def heard(self) -> list[bytes]:
        """The frames that came out since this was last asked."""
        self._drain()
        found, self._out = self._out, []
        return found

    def _drain(self) -> None:
        # Sockets hold less than devices, so they are emptied at once.
        with suppress(BlockingIOError):
            while self.far.fileno() >= 0:
                self._out.append(self.far.recv(4096))

    def close(self) -> None:
        """Close everything."""
        for sock in (self.near, self.far, *self.held):
            sock.close()
