"""Options of the IP layer for datagrams (ip(7), ipv6(7), RFC 3678): hop limits, traffic class, fragments, memberships."""

import errno
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

from emu.addresses import SocketAddress, device_of, family_of, ip_of
from protocols.errors import UsageError, shown

__all__ = [
    "DEFAULTS",
    "LARGEST_TTL",
    "UdpOptions",
    "allow_loopback",
    "ignore_groups_of_others",
    "is_mark",
    "join_group",
    "read_marks",
    "set_options",
]

_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _IPV6_DONTFRAG = 10, 23, 62
_NEVER_DF, _ALWAYS_DF = 0, 2
"""IP_PMTUDISC_DONT: routers may fragment; IP_PMTUDISC_DO: no node may, and a packet longer than the path MTU is refused."""
_IP_MULTICAST_ALL, _IPV6_MULTICAST_ALL = 49, 29
_IP_ADD_SOURCE_MEMBERSHIP, _MCAST_JOIN_GROUP, _MCAST_JOIN_SOURCE_GROUP = 39, 42, 46
_CE, _ECT = 3, 2
"""The ECN field of a traffic class: congestion experienced, and the mask of the field; ECT(0), a packet that may be marked."""
LARGEST_TTL = 255
_LARGEST = {"ttl": LARGEST_TTL, "unicast_ttl": LARGEST_TTL, "tos": 0xFF, "tx_port": 0xFFFF}
_FLAGS = ("df", "loopback", "reuse", "tx_only", "ecn")
_SOCKADDR = 128
"""Bytes of a struct sockaddr_storage."""


@dataclass(frozen=True, slots=True)
class UdpOptions:
    """Options of the IP layer for the sockets of a host. UsageError for a value that no socket takes.

    `ttl` is the hop limit of multicasts, `unicast_ttl` that of unicasts, None the system's; `tos` the 8 bits of the traffic
    class. With `df` no packet may be fragmented, without it any; None leaves it to the system (on Linux a sender fragments
    what is longer than the path MTU). `loopback`: whether other programs of this machine receive the
    multicasts. `sources`: join groups for packets of these addresses only (source-specific multicast, RFC 4607). `tx_port` is
    the UDP port that packets of port 0 leave from, 0 one that the system chooses. Without `reuse` no other program of this
    machine can receive at the same address and port. With `tx_only` groups are not joined. With `ecn` packets are sent as
    ECN-capable (RFC 3168), whatever the ECN bits of `tos`, and received packets that a router has marked are recognised.
    """

    ttl: int = 1
    unicast_ttl: int | None = None
    tos: int = 0
    df: bool | None = None
    loopback: bool = True
    sources: tuple[str, ...] = ()
    tx_port: int = 0
    reuse: bool = True
    tx_only: bool = False
    ecn: bool = False

    def __post_init__(self) -> None:
        for name, most in _LARGEST.items():
            value = getattr(self, name)
            is_whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (is_whole and 0 <= value <= most) and not (name == "unicast_ttl" and value is None):
                raise UsageError(f"{name}: value {shown(value)} is not allowed; a whole number from 0 to {most}")
        for name in _FLAGS:
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "df" and value is None):
                raise UsageError(f"{name}: value {shown(value)} is not allowed; True or False")
        if not isinstance(self.sources, Iterable) or isinstance(self.sources, str):
            raise UsageError(f"sources: value {shown(self.sources)} is not allowed; a list of addresses")

    @property
    def traffic_class(self) -> int:
        """The 8 bits of the traffic class: DSCP, and ECT(0) with `ecn`."""
        return self.tos & ~_CE | _ECT if self.ecn else self.tos


DEFAULTS = UdpOptions()


def set_options(sock: socket.socket, options: UdpOptions, address: str) -> None:
    """Set the options of a socket that sends from `address`, to whose device its multicasts go."""
    if sock.family == socket.AF_INET6:
        level, device = socket.IPPROTO_IPV6, struct.pack("i", device_of(address))
        interface, ttl, loop, unicast_ttl, tos, discover = (
            socket.IPV6_MULTICAST_IF,
            socket.IPV6_MULTICAST_HOPS,
            socket.IPV6_MULTICAST_LOOP,
            socket.IPV6_UNICAST_HOPS,
            socket.IPV6_TCLASS,
            _IPV6_MTU_DISCOVER,
        )
    else:
        level, device = socket.IPPROTO_IP, socket.inet_aton(address)
        interface, ttl, loop, unicast_ttl, tos, discover = (
            socket.IP_MULTICAST_IF,
            socket.IP_MULTICAST_TTL,
            socket.IP_MULTICAST_LOOP,
            socket.IP_TTL,
            socket.IP_TOS,
            _IP_MTU_DISCOVER,
        )
    sock.setsockopt(level, interface, device)
    sock.setsockopt(level, ttl, options.ttl)
    sock.setsockopt(level, loop, int(options.loopback))
    if options.unicast_ttl is not None:
        # The system refuses 0 for unicasts, which would not leave the machine.
        sock.setsockopt(level, unicast_ttl, max(options.unicast_ttl, 1))
    if options.traffic_class:
        sock.setsockopt(level, tos, options.traffic_class)
    if options.ecn:
        read_marks(sock)
    if options.df is not None:
        sock.setsockopt(level, discover, _ALWAYS_DF if options.df else _NEVER_DF)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(level, _IPV6_DONTFRAG, int(options.df))


def read_marks(sock: socket.socket) -> None:
    """Have the kernel report the traffic class of each packet that arrives (`is_mark`)."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)


def is_mark(level: int, kind: int, value: bytes) -> bool:
    """Return whether ancillary data (recvmsg(2)) mean that a router has marked what arrived (congestion experienced)."""
    # One byte of IPv4, an int of IPv6.
    if (level, kind) in ((socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)):
        return int.from_bytes(value, sys.byteorder) & _CE == _CE
    return False


def allow_loopback(sock: socket.socket) -> None:
    """Have other sockets of this machine receive the socket's multicasts."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def ignore_groups_of_others(sock: socket.socket) -> None:
    """Have a socket receive nothing of groups that it has not joined itself."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)


def join_group(
    sock: socket.socket, group: SocketAddress, address: str, devices: Sequence[str] = (), sources: Sequence[str] = ()
) -> None:
    """Receive from a multicast group on the device of `address`, or on `devices`; of `sources` only, if there are any.

    Raises UsageError.
    """
    level = socket.IPPROTO_IPV6 if sock.family == socket.AF_INET6 else socket.IPPROTO_IP
    try:
        for option, request in _requests(group[0], address, devices, sources):
            sock.setsockopt(level, option, request)
    except OSError as error:
        why = "this system allows no more" if error.errno == errno.ENOBUFS else error.strerror
        of = f" for packets of {', '.join(sources)}" if sources else ""
        raise UsageError(f"can't join {group[0]} at {', '.join(devices) or address}{of}: {why}") from None


def _requests(group: str, address: str, devices: Sequence[str], sources: Sequence[str]) -> list[tuple[int, bytes]]:
    """Return the socket options that join a group, with their values."""
    if not devices and family_of(address) == socket.AF_INET:
        # By address, as an IPv4 device can have many.
        packed, own = socket.inet_aton(group), socket.inet_aton(address)
        if sources:
            return [(_IP_ADD_SOURCE_MEMBERSHIP, packed + own + socket.inet_aton(source)) for source in sources]
        return [(socket.IP_ADD_MEMBERSHIP, packed + own)]
    requests = []
    for number in [socket.if_nametoindex(device) for device in devices] or [device_of(address)]:
        joined = struct.pack("@I4x", number) + _sockaddr(group)
        requests += [(_MCAST_JOIN_SOURCE_GROUP, joined + _sockaddr(source)) for source in sources]
        if not sources:
            requests.append((_MCAST_JOIN_GROUP, joined))
    return requests


def _sockaddr(address: str) -> bytes:
    """Return a struct sockaddr_storage without a port."""
    family, packed = family_of(address), ip_of(address).packed
    start = struct.pack("=HHI", family, 0, 0) if family == socket.AF_INET6 else struct.pack("=HH", family, 0)
    return (start + packed).ljust(_SOCKADDR, b"\0")
