"""UDP sockets for multicast, with batches (udp(7)): one system call sends or receives many packets.

A sender gives the kernel up to 46 equal segments at once (UDP_SEGMENT), a receiver gets them coalesced (UDP_GRO). Where kernel
or path supports neither, packets are sent one by one; receivers see no difference.
"""

import errno
import socket
import struct
from collections import deque
from collections.abc import Sequence

from emu.addresses import SocketAddress, device_of, family_of, ip_of, is_link_local, is_multicast, socket_address, text_of
from emu.udp_options import DEFAULTS, UdpOptions, ignore_groups_of_others, is_mark, join_group, read_marks, set_options
from protocols.errors import UsageError

__all__ = [
    "BUFFERS",
    "SEGMENTS",
    "SendQueue",
    "bind_receiver",
    "open_receiver",
    "open_transmitter",
    "granted_buffers",
    "receive_coalesced",
]

SEGMENTS = 46
"""Most packets in one batch; 46 packets of 1424 bytes fit into the largest UDP datagram."""

BUFFERS = 16 << 20
"""Bytes that a host asks for in each buffer of a socket."""

_MAX_PAYLOAD = 65507
_UDP_SEGMENT, _UDP_GRO = 103, 104
_SO_RXQ_OVFL = 40
_IP_PKTINFO = 8
_ANCILLARY = socket.CMSG_SPACE(4) * 3
_INT = struct.Struct("i")
_SHORT = struct.Struct("H")
_PKTINFO = struct.Struct("=i4s4s")
"""struct in_pktinfo (ip(7)): the device to send by, the address to send from, and one that is for receivers."""
_UNSUPPORTED = {errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP, errno.ENOPROTOOPT}


def granted_buffers(wanted: int) -> int:
    """Return how many of `wanted` bytes this system grants to each buffer of a socket, the smaller of both."""
    with _socket(socket.AF_INET, wanted) as sock:
        # The kernel doubles the value for its own needs (socket(7)).
        return min(sock.getsockopt(socket.SOL_SOCKET, option) // 2 for option in (socket.SO_RCVBUF, socket.SO_SNDBUF))


def _socket(family: socket.AddressFamily, buffers: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):
        try:
            # The ...FORCE options exceed the system's limit and need CAP_NET_ADMIN.
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
        raise UsageError(f"can't receive at {text_of(where)}: {error.strerror}") from None


def open_transmitter(address: str, options: UdpOptions, buffers: int, port: int = 0) -> socket.socket:
    """Open a socket on a port of `address` (0: a free one), from whose device its multicast is sent.

    `buffers` is the size of both kernel buffers in bytes.
    """
    sock = _socket(family_of(address), buffers)
    _bind(sock, socket_address(address, port))
    set_options(sock, options, address)
    return sock


def open_receiver(
    where: SocketAddress, address: str, buffers: int, devices: Sequence[str] = (), options: UdpOptions = DEFAULTS
) -> socket.socket:
    """Open a socket that receives only what is sent to `where`; a multicast address is joined on the device of `address`.

    With `devices` it is joined on these instead. Raises UsageError if it can't be opened, bound or joined.
    """
    sock = bind_receiver(where, address, buffers, options)
    if is_multicast(where[0]):
        try:
            join_group(sock, where, address, devices, options.sources)
        except UsageError:
            sock.close()
            raise
    return sock


def bind_receiver(where: SocketAddress, address: str, buffers: int, options: UdpOptions = DEFAULTS) -> socket.socket:
    """Open a socket as `open_receiver` does; one for a multicast address receives nothing until it joins (`join_group`).

    Raises UsageError if it can't be opened or bound.
    """
    try:
        sock = _socket(family_of(where[0]), buffers)
    except OSError as error:
        raise UsageError(f"can't receive at {text_of(where)}: {error.strerror}") from None
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(options.reuse))
    if options.ecn:
        read_marks(sock)
    if is_multicast(where[0]):
        ignore_groups_of_others(sock)
    if len(where) == 4 and not where[3] and is_link_local(where[0]):
        where = (where[0], where[1], 0, device_of(address))
    _bind(sock, where)
    return sock


def receive_coalesced(sock: socket.socket) -> tuple[bytes, int, SocketAddress, int, bool]:
    """Receive once: return the bytes of one or several packets, the length of all but the last, the source, drops and mark.

    The drops are the socket's total so far (SO_RXQ_OVFL), 0 when unknown. The mark is whether a router has marked these
    packets (ECN), which the kernel reports on sockets with the option `ecn`. Raises BlockingIOError when nothing waits.
    """
    data, ancillary, _, source = sock.recvmsg(65535, _ANCILLARY)
    segment, drops, marked = len(data), 0, False
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_UDP and kind == _UDP_GRO:
            segment = _INT.unpack_from(value)[0]
        elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
            drops = _INT.unpack_from(value)[0]
        elif is_mark(level, kind, value):
            marked = True
    return data, segment, source, drops, marked


class SendQueue:
    """Packets for one socket: gathered into batches, kept while the kernel's buffer is full.

    `burst` is the most packets in one system call; 1 sends each alone. `blocked` is true from the moment the kernel takes no
    more until `retry` has emptied the queue. `errors` counts packets the kernel refused, `refused` those since it took one;
    `reason` is the kernel's last error.
    """

    __slots__ = (
        "_batch",
        "_burst",
        "_by_device",
        "_device",
        "_dscp",
        "_max_segments",
        "_queue",
        "_size",
        "_sock",
        "_to",
        "blocked",
        "errors",
        "reason",
        "refused",
    )

    def __init__(self, sock: socket.socket, burst: int = SEGMENTS) -> None:
        self._sock = sock
        self._burst = burst
        self._batch: list[bytes] = []
        # Ancillary data by the number of the device.
        self._by_device: dict[int, list[tuple[int, int, bytes]]] = {}
        self._device = 0
        self._dscp: int | None = None
        self._to: SocketAddress = ("", 0)
        self._size = 0
        self._max_segments = 0
        self._queue: deque[tuple[list[bytes], SocketAddress, int, int | None]] = deque()
        self.blocked = False
        self.errors = self.refused = 0
        self.reason = ""

    @property
    def takes_batches(self) -> bool:
        """Whether several packets are sent by one system call."""
        return self._burst > 1

    def push(self, data: bytes, to: SocketAddress, device: int = 0, dscp: int | None = None) -> None:
        """Add a packet; send the batch if no packet can be added to it.

        It leaves by the device of this number; 0: by the one that the socket or the system chooses. Without `dscp` it has the
        traffic class of the socket.
        """
        if device != self._device or dscp != self._dscp:
            self.flush()
            self._device, self._dscp = device, dscp
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

    def push_all(self, packets: list[bytes], to: SocketAddress, device: int = 0, dscp: int | None = None) -> int:
        """Add packets like `push`, those of one length at once; return their bytes."""
        sizes = list(map(len, packets))
        # Only the last of a run is shorter.
        whole = len(sizes) - 1 if sizes[-1] < sizes[0] else len(sizes)
        is_even, at = sizes.count(sizes[0]) == whole, 0
        while at < len(packets):
            self.push(packets[at], to, device, dscp)
            at += 1
            if is_even and self._batch and at < whole:
                more = packets[at : min(at + self._max_segments - len(self._batch), whole)]
                self._batch += more
                at += len(more)
                if len(self._batch) >= self._max_segments:
                    self.flush()
        return sum(sizes)

    def flush(self) -> None:
        """Send what is queued, in order, unless the kernel's buffer is full."""
        if self._batch:
            self._queue.append((self._batch, self._to, self._device, self._dscp))
            self._batch = []
        if not self.blocked:
            self.retry()

    def retry(self) -> None:
        """Send what is queued, in order, until the kernel's buffer is full."""
        try:
            while self._queue:
                self._transmit(*self._queue[0])
                self._queue.popleft()
        except BlockingIOError:
            self.blocked = True
        else:
            self.blocked = False

    def _transmit(self, batch: list[bytes], to: SocketAddress, device: int, dscp: int | None) -> None:
        by = self._by(device) if device else []
        if dscp is not None:
            by = [*by, self._class(dscp)]
        if len(batch) > 1 and self._burst > 1:
            segment = [(socket.IPPROTO_UDP, _UDP_SEGMENT, _SHORT.pack(len(batch[0])))]
            try:
                self._sock.sendmsg(batch, [*segment, *by], 0, to)
                self.refused = 0
                return
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    self._refuse(len(batch), error)
                    return
                # This kernel or path does not support segmentation: send singly from now on.
                self._burst = 1
        while batch:
            try:
                if by:
                    self._sock.sendmsg(batch[:1], by, 0, to)
                else:
                    self._sock.sendto(batch[0], to)
            except BlockingIOError:
                raise
            except OSError as error:
                self._refuse(1, error)
            else:
                self.refused = 0
            batch.pop(0)

    def _by(self, device: int) -> list[tuple[int, int, bytes]]:
        """Return the ancillary data of what is sent by a device."""
        found = self._by_device.get(device)
        if found is None:
            own = ip_of(self._sock.getsockname()[0]).packed
            found = self._by_device[device] = (
                [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, own + _INT.pack(device))]
                if len(own) > 4
                else [(socket.IPPROTO_IP, _IP_PKTINFO, _PKTINFO.pack(device, own, bytes(4)))]
            )
        return found

    def _class(self, dscp: int) -> tuple[int, int, bytes]:
        """Return the ancillary data of a class of service; the bits of ECN are those of the socket."""
        is_ipv6 = self._sock.family == socket.AF_INET6
        level, kind = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if is_ipv6 else (socket.IPPROTO_IP, socket.IP_TOS)
        return level, kind, _INT.pack(dscp << 2 | self._sock.getsockopt(level, kind) & 3)

    def _refuse(self, packets: int, error: OSError) -> None:
        """Count packets that the kernel did not take."""
        self.errors += packets
        self.refused += packets
        self.reason = error.strerror or str(error)
