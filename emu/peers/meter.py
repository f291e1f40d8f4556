"""Count what a foreign program sends and receives, from packets on the host's device, as machines count their own."""

import asyncio
import ctypes
import socket
import sys
from collections import Counter
from collections.abc import Iterator

from protocols.errors import WireError
from protocols.machine import Codec, Message
from protocols.traffic import Traffic

__all__ = ["Meter"]

_ETH_P_ALL = 3
_SO_RCVBUFFORCE, _SO_ATTACH_FILTER = 33, 26
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_BUFFER = 8 << 20
_MAX_BATCH = 200
_HALF_RANGE, _RANGE = 1 << 15, 1 << 16
# Classic BPF: pass whole frames that are outgoing and carry IPv4 UDP, and no others.
_OUTGOING_UDP = (
    *((0x30, 0, 0, 0xFFFFF004), (0x15, 0, 5, socket.PACKET_OUTGOING), (0x28, 0, 0, 12), (0x15, 0, 3, 0x0800)),
    *((0x30, 0, 0, 23), (0x15, 0, 1, socket.IPPROTO_UDP), (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0)),
)


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("code", ctypes.c_void_p)]


class Meter:
    """Counts every UDP packet that leaves by a device, and every one the host receives; by kind of message if there is a codec.

    A packet socket sees packets before ingress filters lose them, so received packets are read from a raw IP socket. Senders
    must not use batches anywhere in the network: a batch is seen as one packet.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, device: str, codec: Codec | None) -> None:
        self.traffic = Traffic()
        self.counts: Counter[str] = Counter()
        """Counters as of this project's machines: `data_sent`, `repairs_sent`, `nacks_sent`, `nacks_received`."""
        self.malformed = self._unseen = 0
        self._codec = codec
        self._sequences: dict[bytes, _SequenceRange] = {}
        self._outgoing = _open_outgoing(device)
        self._incoming = _open_incoming()
        loop.add_reader(self._outgoing, self._on_outgoing)
        loop.add_reader(self._incoming, self._on_incoming)

    @property
    def losses(self) -> dict[str, int]:
        """Packets with a sequence number that were received, and those missing between a sender's first and highest number."""
        sequences = self._sequences.values()
        return {"data_received": sum(one.received for one in sequences), "data_lost": sum(one.missing for one in sequences)}

    def report(self) -> dict[str, dict[str, int] | dict[str, dict[str, int]]]:
        """Return traffic and faults for a node's report; `unseen` packets were dropped by a full socket buffer."""
        traffic = {"packets": self.traffic.packets, "octets": self.traffic.octets}
        return {"traffic": traffic, "faults": {"malformed": self.malformed, "unseen": self._unseen}}

    def counters(self) -> dict[str, int]:
        """Return all counters so far, for progress reports."""
        totals = {"packets": sum(self.traffic.packets.values()), "octets": sum(self.traffic.octets.values())}
        return {**self.counts, **self.losses, **totals}

    def _on_outgoing(self) -> None:
        for frame in _read(self._outgoing):
            payload = _payload(frame, 14)
            if self._codec is None:
                _count(self.traffic, "datagram", len(payload))
            elif (message := self._decode(payload)) is not None:
                self._count_outgoing(message, len(payload))

    def _on_incoming(self) -> None:
        for packet in _read(self._incoming):
            if self._codec is not None and (message := self._decode(_payload(packet, 0))) is not None:
                start = (packet[0] & 15) * 4
                self._count_incoming(message, packet[12:16] + packet[start : start + 2])

    def _decode(self, payload: bytes) -> Message | None:
        assert self._codec is not None
        try:
            return self._codec.decode(payload)
        except WireError:
            self.malformed += 1
            return None

    def _count_outgoing(self, message: Message, size: int) -> None:
        self.traffic.count(message, size)
        if message.kind == "data":
            self.counts["repairs_sent" if message.repair or getattr(message, "is_parity", False) else "data_sent"] += 1
        elif message.kind == "nack":
            self.counts["nacks_sent"] += 1

    def _count_incoming(self, message: Message, source: bytes) -> None:
        if message.kind == "nack":
            self.counts["nacks_received"] += 1
        elif not message.is_feedback and (sequence := getattr(message, "sequence", None)) is not None:
            numbers = self._sequences.get(source)
            if numbers is None:
                self._sequences[source] = _SequenceRange(sequence)
            else:
                numbers.add(sequence)

    def close(self) -> None:
        """Count what waits, and close the sockets."""
        self._on_outgoing()
        self._on_incoming()
        statistics = self._outgoing.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._unseen = int.from_bytes(statistics[4:], sys.byteorder)
        self._outgoing.close()
        self._incoming.close()


class _SequenceRange:
    """The 16-bit sequence numbers of one sender, from the first to the highest received."""

    def __init__(self, first: int) -> None:
        self._first = self._highest = first
        self.received = 1

    @property
    def missing(self) -> int:
        """Numbers in the range that were not received; at least 0, since duplicates count as received."""
        return max(0, self._highest - self._first + 1 - self.received)

    def add(self, sequence: int) -> None:
        """Add a received number."""
        step = (sequence - self._highest) % _RANGE
        if step < _HALF_RANGE:
            self._highest += step
        self.received += 1


def _count(traffic: Traffic, kind: str, size: int) -> None:
    traffic.packets[kind] = traffic.packets.get(kind, 0) + 1
    traffic.octets[kind] = traffic.octets.get(kind, 0) + size


def _payload(packet: bytes, start: int) -> bytes:
    """Return the UDP payload of a packet whose IPv4 header begins at offset `start`."""
    udp = start + (packet[start] & 15) * 4
    return packet[udp + 8 : udp + int.from_bytes(packet[udp + 4 : udp + 6], "big")]


def _read(sock: socket.socket) -> Iterator[bytes]:
    for _ in range(_MAX_BATCH):
        try:
            yield sock.recv(65535)
        except BlockingIOError:
            return


def _open_incoming() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    _set_buffer(sock)
    return sock


def _open_outgoing(device: str) -> socket.socket:
    # Bound after the filter is attached, so that nothing is received unfiltered.
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    _set_buffer(sock)
    code = (_Instruction * len(_OUTGOING_UDP))(*(_Instruction(*one) for one in _OUTGOING_UDP))
    program = _Program(len(_OUTGOING_UDP), ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
    sock.bind((device, _ETH_P_ALL))
    return sock


def _set_buffer(sock: socket.socket) -> None:
    sock.setblocking(False)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
