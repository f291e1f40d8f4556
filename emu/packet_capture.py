"""Capture packets of emulated links and nodes to pcapng, by packet sockets (packet(7)) in one process for all capture points.

Timestamps are the kernel's, on the clock of the run. While a capture runs, hosts must send packets one by one: a packet socket
sees a batch (UDP_SEGMENT) as one packet.
"""

import errno
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, BinaryIO, TypeAlias

from emu.namespaces import in_network_namespace
from emu.network import EmulatedNetwork
from protocols.errors import UnsupportedError, UsageError
from topologies.pcapng import INBOUND, OUTBOUND, PcapngWriter

__all__ = ["PacketCapture", "CapturePoint"]

_ETH_P_ALL = 3
_SO_TIMESTAMPNS, _SO_RCVBUFFORCE, _SOL_PACKET, _PACKET_STATISTICS = 35, 33, 263, 6
_TIME = struct.Struct("=qq")
_BUFFER = 32 << 20
_MAX_FRAME = 1 << 16
_MAX_BATCH = 20_000
_ANCILLARY = socket.CMSG_SPACE(_TIME.size)
_REORDER_DELAY = 10_000_000
"""Nanoseconds after which no earlier packet is expected: packets of several sockets arrive out of order of their timestamps."""


@dataclass(frozen=True, slots=True)
class CapturePoint:
    """A capture point: one node, or the two ends of a link.

    `file` is open and unbuffered, so that it ends with a whole block whenever the run is killed.
    """

    name: str
    nodes: tuple[str, ...]
    file: BinaryIO


@dataclass(slots=True)
class _PacketSocket:
    """A packet socket on one device. `direction` is that of all packets it keeps; 0 keeps both directions."""

    socket: socket.socket
    point: int
    interface: int
    direction: int


_Packet: TypeAlias = tuple[int, _PacketSocket, int, bytes]


class PacketCapture:
    """Capture from construction on, write what arrives after `begin`, stop with `end`."""

    def __init__(self, points: Sequence[CapturePoint], network: EmulatedNetwork) -> None:
        self._points = points
        writers, sources = list[PcapngWriter](), list[_PacketSocket]()
        for number, point in enumerate(points):
            with _naming_full_disk(point.file):
                writers.append(PcapngWriter(point.file))
                sources += _open_sockets(number, point.nodes, writers[-1], network)
        self._control, remote = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            _run_process(sources, points, writers, remote)
        remote.close()
        for source in sources:
            source.socket.close()

    def begin(self, epoch: float) -> None:
        """Begin the run: `epoch` is its time 0 on the monotonic clock, in seconds; earlier packets are not written."""
        self._control.sendall(_TIME.pack(round(epoch * 1e9), 0))

    def end(self) -> dict[str, dict[str, int]]:
        """Stop, and return for each point how many packets were written, `unseen`, and `unwritten`.

        Packets are unseen if full socket buffers dropped them, and unwritten from the first on for which the disk had no room.
        Raises UnsupportedError if the capture process has died.
        """
        self._control.shutdown(socket.SHUT_WR)
        reply = b"".join(iter(lambda: self._control.recv(_MAX_FRAME), b""))
        os.waitpid(self._pid, 0)
        if not reply:
            raise UnsupportedError("the capture process died")
        counts: list[dict[str, int]] = json.loads(reply)
        return {point.name: count for point, count in zip(self._points, counts, strict=True)}


@contextmanager
def _naming_full_disk(file: BinaryIO) -> Iterator[None]:
    """Raise UsageError if the disk has no room for the head of a file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UsageError(f"{file.name}: can't be written ({error.strerror})") from None


def _open_sockets(number: int, nodes: tuple[str, ...], writer: PcapngWriter, network: EmulatedNetwork) -> list[_PacketSocket]:
    """Open the sockets of a capture point: for a node one for each of its devices, for a link one at each end."""
    if len(nodes) == 1:
        found = []
        for neighbour, device, pid in network.devices(nodes[0]):
            interface = writer.interface(f"{nodes[0]}-{neighbour}", f"{device} of Mininet")
            found.append(_PacketSocket(_open(device, pid), number, interface, 0))
        return found
    interface = writer.interface("-".join(nodes), "both directions")
    ends = zip(network.ends(*nodes), (OUTBOUND, INBOUND), strict=True)
    return [_PacketSocket(_open(*end), number, interface, direction) for end, direction in ends]


def _open(device: str, pid: int | None) -> socket.socket:
    with in_network_namespace(pid or os.getpid()):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.bind((device, _ETH_P_ALL))
        return sock


def _run_process(
    sources: Sequence[_PacketSocket], points: Sequence[CapturePoint], writers: Sequence[PcapngWriter], control: socket.socket
) -> None:
    """Run the capture process: wait for the epoch, write until the control socket closes, send the counts."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        head = control.recv(_TIME.size)
        if head:
            _CaptureWriter(sources, points, writers, _wall_clock(_TIME.unpack(head)[0])).run(control)
    finally:
        os._exit(0)


def _wall_clock(monotonic: int) -> int:
    """Convert a time of the monotonic clock to the wall clock of the kernel's timestamps, both in nanoseconds."""
    return min(time.time_ns() - time.monotonic_ns() for _ in range(5)) + monotonic


class _CaptureWriter:
    """Write the packets of all sockets in order of time."""

    def __init__(
        self, sources: Sequence[_PacketSocket], points: Sequence[CapturePoint], writers: Sequence[PcapngWriter], epoch_ns: int
    ) -> None:
        self._sources, self._files, self._writers, self._epoch_ns = sources, [point.file for point in points], writers, epoch_ns
        self._counts: list[dict[str, Any]] = [{"packets": 0, "unseen": 0, "unwritten": 0} for _ in writers]
        self._pending: list[_Packet] = []

    def run(self, control: socket.socket) -> None:
        """Read and write until the other end of the control socket shuts down."""
        with selectors.DefaultSelector() as selector:
            for source in self._sources:
                selector.register(source.socket, selectors.EVENT_READ, source)
            selector.register(control, selectors.EVENT_READ)
            running = True
            while running:
                ready = [key.data for key, _ in selector.select(_REORDER_DELAY * 1e-9 if self._pending else None)]
                running = None not in ready
                complete_until = time.time_ns() - self._epoch_ns - _REORDER_DELAY
                self._pending += [packet for source in ready if source is not None for packet in self._read(source)]
                self._write(complete_until)
        self._pending += [packet for source in self._sources for packet in self._read(source)]
        self._write(None)
        for source in self._sources:
            statistics = source.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
            self._counts[source.point]["unseen"] += int.from_bytes(statistics[4:], sys.byteorder)
        control.sendall(json.dumps(self._counts).encode())

    def _read(self, source: _PacketSocket) -> Iterator[_Packet]:
        """Yield waiting packets as (nanoseconds of the run, socket, direction, frame)."""
        for _ in range(_MAX_BATCH):
            try:
                frame, ancillary, _, address = source.socket.recvmsg(_MAX_FRAME, _ANCILLARY)
            except BlockingIOError:
                return
            outgoing = address[2] == socket.PACKET_OUTGOING
            seconds, nanoseconds = _TIME.unpack(ancillary[0][2])
            when = seconds * 1_000_000_000 + nanoseconds - self._epoch_ns
            if when >= 0 and (outgoing or not source.direction):
                yield when, source, source.direction or (OUTBOUND if outgoing else INBOUND), frame

    def _write(self, until: int | None) -> None:
        """Write pending packets from before `until` (None: all) in order of time."""
        pending = self._pending
        pending.sort(key=itemgetter(0))
        count = len(pending) if until is None else bisect_left(pending, until, key=itemgetter(0))
        for when, source, direction, frame in pending[:count]:
            counts = self._counts[source.point]
            if not counts["unwritten"] and self._write_packet(source, when, direction, frame):
                counts["packets"] += 1
            else:
                counts["unwritten"] += 1
        del pending[:count]

    def _write_packet(self, source: _PacketSocket, when: int, direction: int, frame: bytes) -> bool:
        """Write a packet; return whether the disk had room. A part of a block is taken back."""
        file = self._files[source.point]
        end = file.tell()
        try:
            length = self._writers[source.point].packet(source.interface, when * 1e-9, frame, direction)
            if file.tell() == end + length:
                return True
        except OSError:
            pass
        file.truncate(end)
        return False
