"""UDP sockets for multicast, and the batches that make them fast.

One system call carries many packets: a sender hands the kernel up to 46 equal segments at once (UDP_SEGMENT), a receiver gets
them back coalesced (UDP_GRO). Kernels or paths that refuse either are served packet by packet; receivers see no difference.
"""

import errno
import fcntl
import socket
import struct
from collections import deque
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from typing import TypeAlias

from protocols.errors import UsageError

__all__ = [
    "SEGMENTS",
    "SocketAddress",
    "SendQueue",
    "address_of",
    "socket_address_of",
    "open_receiver",
    "open_transmitter",
    "receive_coalesced",
]

SocketAddress: TypeAlias = tuple[str, int]

SEGMENTS = 46
"""Most packets in one batch; 46 packets of 1424 bytes still fit into the largest UDP datagram."""

_MAX_PAYLOAD = 65507
_UDP_SEGMENT, _UDP_GRO = 103, 104
_SO_RXQ_OVFL = 40
_IP_MULTICAST_ALL = 49
_SIOCGIFADDR = 0x8915
_ANCILLARY = socket.CMSG_SPACE(4) * 2
_INT = struct.Struct("i")
_SHORT = struct.Struct("H")
_UNSUPPORTED = {errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP, errno.ENOPROTOOPT}


@lru_cache(maxsize=256)
def socket_address_of(name: str) -> SocketAddress:
    """ "239.1.2.3:6003" as ("239.1.2.3", 6003); UsageError when it is neither."""
    host, _, port = name.rpartition(":")
    try:
        address = str(IPv4Address(host))
    except AddressValueError:
        raise UsageError(f"group: {name!r} is not an IPv4 address and a port, like 239.1.2.3:6003") from None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"group: the port of {name!r} is not a number from 1 to 65535")
    return address, int(port)


def address_of(interface: str | None, towards: str = "239.255.255.250") -> str:
    """The IPv4 address of a device name or address; None asks the routing table for the way `towards`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        if interface is None:
            return _source_address(sock, towards)
        try:
            return str(IPv4Address(interface))
        except AddressValueError:
            pass
        request = struct.pack("256s", interface.encode()[:15])
        try:
            return socket.inet_ntoa(fcntl.ioctl(sock, _SIOCGIFADDR, request)[20:24])
        except OSError:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise UsageError(f"iface: {interface!r} is no device with an IPv4 address; devices here: {known}") from None


def _source_address(sock: socket.socket, towards: str) -> str:
    try:
        sock.connect((towards, 9))
    except OSError as error:
        raise UsageError(f"iface: no route to {towards} ({error.strerror}); name a device or address") from None
    return str(sock.getsockname()[0])


def _socket(buffers: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):
        try:
            # The forced variants pass the system's limit, and only root may use them.
            sock.setsockopt(socket.SOL_SOCKET, forced, buffers)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, option, buffers)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)
    try:
        sock.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return sock


def _bind(sock: socket.socket, where: SocketAddress) -> None:
    try:
        sock.bind(where)
    except OSError as error:
        sock.close()
        raise UsageError(f"can't receive at {where[0]}:{where[1]}: {error.strerror}") from None


def open_transmitter(address: str, ttl: int, loopback: bool, buffers: int) -> socket.socket:
    """A socket on a port of its own at `address`, which is also the interface its multicast leaves by.

    `loopback`: other programs of this machine hear it too. `buffers` is the size of both kernel buffers in bytes.
    """
    sock = _socket(buffers)
    _bind(sock, (address, 0))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, int(loopback))
    return sock


def open_receiver(where: SocketAddress, address: str, buffers: int) -> socket.socket:
    """A socket that hears only what is sent to `where`; a multicast address is joined on the interface with `address`."""
    sock = _socket(buffers)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _bind(sock, where)
    if IPv4Address(where[0]).is_multicast:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        try:
            request = socket.inet_aton(where[0]) + socket.inet_aton(address)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        except OSError as error:
            sock.close()
            raise UsageError(f"can't join {where[0]} at {address}: {error.strerror}") from None
    return sock


def receive_coalesced(sock: socket.socket) -> tuple[bytes, int, SocketAddress, int]:
    """Receive once: the bytes of one or several packets, the length of each but the last, the source, and the kernel's drops.

    The drops are the total of this socket so far, 0 when unknown. Raises BlockingIOError when nothing is there.
    """
    data, ancillary, _, source = sock.recvmsg(65535, _ANCILLARY)
    segment, drops = len(data), 0
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_UDP and kind == _UDP_GRO:
            segment = _INT.unpack_from(value)[0]
        elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
            drops = _INT.unpack_from(value)[0]
    return data, segment, source, drops


class SendQueue:
    """Packets on their way into one socket: gathered into batches, kept while the kernel is full.

    `burst` is the most packets in one system call; 1 sends each alone. `blocked` is true from the moment the kernel takes no
    more until `retry` has emptied the box; `errors` counts packets the kernel refused for good.
    """

    __slots__ = ("_batch", "_burst", "_max_segments", "_queue", "_size", "_sock", "_to", "blocked", "errors")

    def __init__(self, sock: socket.socket, burst: int = SEGMENTS) -> None:
        self._sock = sock
        self._burst = burst
        self._batch: list[bytes] = []
        self._to: SocketAddress = ("", 0)
        self._size = 0
        self._max_segments = 0
        self._queue: deque[tuple[list[bytes], SocketAddress]] = deque()
        self.blocked = False
        self.errors = 0

    def push(self, data: bytes, to: SocketAddress) -> None:
        """Take one packet; a batch that can't grow any more is sent."""
        size = len(data)
        batch = self._batch
        if batch:
            if size == self._size and to == self._to:
                batch.append(data)
                if len(batch) >= self._max_segments:
                    self.flush()
                return
            if size < self._size and to == self._to:
                # Only the last segment of a batch may be shorter.
                batch.append(data)
                self.flush()
                return
            self.flush()
        self._batch = [data]
        self._to = to
        self._size = size
        self._max_segments = min(self._burst, _MAX_PAYLOAD // size) if size else 1
        if self._max_segments <= 1:
            self.flush()

    def flush(self) -> None:
        """Send what is there, in order, unless the kernel is full."""
        if self._batch:
            self._queue.append((self._batch, self._to))
            self._batch = []
        if not self.blocked:
            self.retry()

    def retry(self) -> None:
        """Send what is there, in order, as far as the kernel takes it."""
        try:
            while self._queue:
                self._transmit(*self._queue[0])
                self._queue.popleft()
        except BlockingIOError:
            self.blocked = True
        else:
            self.blocked = False

    def _transmit(self, batch: list[bytes], to: SocketAddress) -> None:
        if len(batch) > 1 and self._burst > 1:
            segment = [(socket.IPPROTO_UDP, _UDP_SEGMENT, _SHORT.pack(len(batch[0])))]
            try:
                self._sock.sendmsg(batch, segment, 0, to)
                return
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    self.errors += len(batch)
                    return
                # This kernel or path can't segment: decided once, for good.
                self._burst = 1
        while batch:
            try:
                self._sock.sendto(batch[0], to)
            except BlockingIOError:
                raise
            except OSError:
                self.errors += 1
            batch.pop(0)
