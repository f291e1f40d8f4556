"""Ethernet frames, and a user-space link without devices and with a manual clock."""

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from emu.userspace_link import FrameForwarder, LinkDirection
from protocols.machine import Codec
from tests.emu.number_protocol import NumberCodec
from topologies.spec import LinkSpec

__all__ = ["ARP", "KEY", "MACS", "ManualLink", "frame_of", "frames_of"]

KEY = 0x1234567890ABCDEF
MACS = b"\x01\x00\x5e\x48\x01\x01" + b"\x02\x00\x0a\x00\x00\x01"
ARP = MACS + b"\x08\x06" + bytes(46)


def frame_of(payload: bytes, vlan: int | None = None) -> bytes:
    """Return a UDP datagram in one frame, with a VLAN tag if given."""
    (frame,) = frames_of(payload, 1500)
    return frame if vlan is None else frame[:12] + b"\x81\x00" + struct.pack("!H", vlan) + frame[12:]


def frames_of(payload: bytes, mtu: int, number: int = 7) -> list[bytes]:
    """Return a UDP datagram in as many frames as it needs; `number` is its IPv4 identification."""
    datagram = struct.pack("!HHHH", 5000, 7001, len(payload) + 8, 0) + payload
    size = (mtu - 20) // 8 * 8
    parts = [datagram[at : at + size] for at in range(0, len(datagram), size)] if len(datagram) > mtu - 20 else [datagram]
    frames = []
    for index, part in enumerate(parts):
        more = 0x2000 if index < len(parts) - 1 else 0
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), number, more | index * size // 8, 1, 17, 0)
        frames.append(MACS + b"\x08\x00" + head + bytes((10, 0, 0, 1, 239, 200, 1, 1)) + part)
    return frames


class ManualLink:
    """One direction of a user-space link with a manual clock. Frames pass through sockets instead of TAP devices."""

    def __init__(self, spec: LinkSpec, codec: Codec | None = None, *, begun: bool = True, member: int = 0) -> None:
        kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
        self.near, source = socket.socketpair(socket.AF_UNIX, kind)
        self.far, target = socket.socketpair(socket.AF_UNIX, kind)
        self.descriptors = [source, target]
        self.now = 100.0
        self._out: list[bytes] = []
        direction = LinkDirection("a-b", source.fileno(), target.fileno(), spec, KEY, member)
        self.forwarder = FrameForwarder([direction], codec or NumberCodec(), lambda: self.now)
        if begun:
            self.forwarder.begin()

    def send(self, frames: Sequence[bytes]) -> None:
        """Send frames to the near end at the current time."""
        for frame in frames:
            self.near.send(frame)
            self.step()

    def step(self) -> None:
        """Do what is due now."""
        self.forwarder.step(self.forwarder.sources, self.now)
        self._drain()

    def advance(self, seconds: float) -> None:
        """Advance the clock, waking the link when it is due."""
        end = self.now + seconds
        while self.forwarder.deadline <= end:
            self.now = max(self.now, self.forwarder.deadline)
            self.step()
        self.now = end

    def received(self) -> list[bytes]:
        """Return the frames that have left since the last call."""
        self._drain()
        found, self._out = self._out, []
        return found

    def _drain(self) -> None:
        # Sockets hold fewer frames than devices, so they are emptied at once.
        with suppress(BlockingIOError):
            while self.far.fileno() >= 0:
                self._out.append(self.far.recv(4096))

    def close(self) -> None:
        """Close all sockets."""
        for sock in (self.near, self.far, *self.descriptors):
            sock.close()
