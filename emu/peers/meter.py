"""Counts what a foreign program sends and hears, on the wire: so it is measured like one of ours."""

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
_AT_ONCE = 200
_HALF, _WHOLE = 1 << 15, 1 << 16
# Classic BPF: what leaves, is IPv4 and carries UDP; whole frames of that and no others.
_LEAVING_UDP = (
    *((0x30, 0, 0, 0xFFFFF004), (0x15, 0, 5, socket.PACKET_OUTGOING), (0x28, 0, 0, 12), (0x15, 0, 3, 0x0800)),
    *((0x30, 0, 0, 23), (0x15, 0, 1, socket.IPPROTO_UDP), (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0)),
)


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("code", ctypes.c_void_p)]


class Meter:
    """Sees every UDP packet that leaves by a device, and every one that comes to this host. With a codec messages are told
    apart by kind, without they are datagrams.

    A packet socket would see what comes before the filters that lose packets, so a raw IP socket hears that. Senders must not
    hand the kernel several packets at once anywhere in the network: they would be seen as one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, device: str, codec: Codec | None) -> None:
        self.traffic = Traffic()
        self.counts: Counter[str] = Counter()
        """What our own machines count: `data_sent`, `repairs_sent`, `nacks_sent`, `nacks_received`."""
        self.malformed = self._unseen = 0
        self._codec = codec
        self._heard: dict[bytes, _Stretch] = {}
        self._leaving = _open_leaving(device)
        self._coming = _open_coming()
        loop.add_reader(self._leaving, self._leave)
        loop.add_reader(self._coming, self._come)

    @property
    def losses(self) -> dict[str, int]:
        """Packets with a sequence number that came, and those that are missing between the first and the last of a sender."""
        heard = self._heard.values()
        return {"data_received": sum(one.came for one in heard), "data_lost": sum(one.missing for one in heard)}

    def told(self) -> dict[str, dict[str, int] | dict[str, dict[str, int]]]:
        """For the report of a node: traffic, and faults; `unseen` packets had no room in the kernel and are in no count."""
        traffic = {"packets": self.traffic.packets, "octets": self.traffic.octets}
        return {"traffic": traffic, "faults": {"malformed": self.malformed, "unseen": self._unseen}}

    def census(self) -> dict[str, int]:
        """For who looks on: everything that was counted so far."""
        totals = {"packets": sum(self.traffic.packets.values()), "octets": sum(self.traffic.octets.values())}
        return {**self.counts, **self.losses, **totals}

    def _leave(self) -> None:
        for frame in _taken(self._leaving):
            payload = _payload(frame, 14)
            if self._codec is None:
                _count(self.traffic, "datagram", len(payload))
            elif (message := self._understood(payload)) is not None:
                self._sent(message, len(payload))

    def _come(self) -> None:
        for packet in _taken(self._coming):
            if self._codec is not None and (message := self._understood(_payload(packet, 0))) is not None:
                start = (packet[0] & 15) * 4
                self._came(message, packet[12:16] + packet[start : start + 2])

    def _understood(self, payload: bytes) -> Message | None:
        assert self._codec is not None
        try:
            return self._codec.decode(payload)
        except WireError:
            self.malformed += 1
            return None

    def _sent(self, message: Message, size: int) -> None:
        self.traffic.count(message, size)
        if message.kind == "data":
            self.counts["repairs_sent" if message.repair or getattr(message, "is_parity", False) else "data_sent"] += 1
        elif message.kind == "nack":
            self.counts["nacks_sent"] += 1

    def _came(self, message: Message, source: bytes) -> None:
        if message.kind == "nack":
            self.counts["nacks_received"] += 1
        elif not message.is_feedback and (sequence := getattr(message, "sequence", None)) is not None:
            stretch = self._heard.get(source)
            if stretch is None:
                self._heard[source] = _Stretch(sequence)
            else:
                stretch.add(sequence)

    def close(self) -> None:
        """See no more."""
        self._leave()
        self._come()
        statistics = self._leaving.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._unseen = int.from_bytes(statistics[4:], sys.byteorder)
        self._leaving.close()
        self._coming.close()


class _Stretch:
    """The sequence numbers (16 bits) of one sender from the first to the highest that came."""

    def __init__(self, first: int) -> None:
        self._first = self._highest = first
        self.came = 1

    @property
    def missing(self) -> int:
        """Numbers in between that did not come; duplicates can't make it negative."""
        return max(0, self._highest - self._first + 1 - self.came)

    def add(self, sequence: int) -> None:
        """One more."""
        step = (sequence - self._highest) % _WHOLE
        if step < _HALF:
            self._highest += step
        self.came += 1


def _count(traffic: Traffic, kind: str, size: int) -> None:
    traffic.packets[kind] = traffic.packets.get(kind, 0) + 1
    traffic.octets[kind] = traffic.octets.get(kind, 0) + size


def _payload(packet: bytes, start: int) -> bytes:
    """The UDP payload of a packet whose IPv4 header begins at `start`."""
    udp = start + (packet[start] & 15) * 4
    return packet[udp + 8 : udp + int.from_bytes(packet[udp + 4 : udp + 6], "big")]


def _taken(sock: socket.socket) -> Iterator[bytes]:
    for _ in range(_AT_ONCE):
        try:
            yield sock.recv(65535)
        except BlockingIOError:
            return


def _open_coming() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    _widen(sock)
    return sock


def _open_leaving(device: str) -> socket.socket:
    # Bound only after the filter is there, so that nothing else comes before.
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    _widen(sock)
    code = (_Instruction * len(_LEAVING_UDP))(*(_Instruction(*one) for one in _LEAVING_UDP))
    program = _Program(len(_LEAVING_UDP), ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(program))
    sock.bind((device, _ETH_P_ALL))
    return sock


def _widen(sock: socket.socket) -> None:
    sock.setblocking(False)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
