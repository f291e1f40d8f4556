"""IPv4 and IPv6 addresses of UDP sockets: their text, and which one a device has.

A socket address is what `socket` takes: (address, port), for IPv6 with flow label and number of the device as well. Text of an
IPv6 address and a port has brackets, and a link-local one names its device: "[ff02::7%eth0]:6003" (RFC 3986, RFC 4007).
"""

import fcntl
import ipaddress
import os
import socket
import struct
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from protocols.errors import UsageError

__all__ = [
    "SocketAddress",
    "address_of",
    "at_port",
    "device_of",
    "family_of",
    "ip_of",
    "is_link_local",
    "is_multicast",
    "is_source_specific",
    "socket_address",
    "socket_address_of",
    "text_of",
]

SocketAddress: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_SIOCGIFADDR = 0x8915
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
_TENTATIVE, _FAILED = 0x40, 0x08
"""Flags of an address that is being tested for duplicates, and of one that is one (if_addr.h)."""
_A_GROUP = "239.255.255.250"
_SOURCE_SPECIFIC = ipaddress.ip_network("232.0.0.0/8")


@lru_cache(maxsize=256)
def ip_of(text: str) -> Ip:
    """Parse an address, which may name its device. Raises ValueError."""
    return ipaddress.ip_address(text)


def family_of(address: str) -> socket.AddressFamily:
    """Return the address family of an address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def is_multicast(address: str) -> bool:
    """Return whether an address is that of a group."""
    return ip_of(address).is_multicast


def is_source_specific(address: str) -> bool:
    """Return whether an address is reserved for source-specific multicast: 232.0.0.0/8, ff3x::/32 (RFC 4607)."""
    ip = ip_of(address)
    if ip.version == 4:
        return ip in _SOURCE_SPECIFIC
    return ip.packed[0] == 0xFF and ip.packed[1] >> 4 == 3 and ip.packed[2:4] == b"\0\0"


def is_link_local(address: str) -> bool:
    """Return whether an IPv6 address, of a host or of a group, is valid on one link only."""
    packed = ip_of(address).packed
    return packed[1] & 15 <= 2 if packed[0] == 0xFF else ipaddress.IPv6Address(packed).is_link_local


def socket_address(address: str, port: int) -> SocketAddress:
    """Return an address, which may name its device, and a port as sockets take them. Raises OSError for an unknown device."""
    if family_of(address) == socket.AF_INET:
        return address, port
    bare, _, device = address.partition("%")
    if not device:
        return bare, port, 0, 0
    return bare, port, 0, int(device) if device.isdecimal() else socket.if_nametoindex(device)


def at_port(where: SocketAddress, port: int) -> SocketAddress:
    """Return the same address with another port."""
    return (where[0], port) if len(where) == 2 else (where[0], port, where[2], where[3])


def text_of(where: SocketAddress) -> str:
    """Return a socket address as text, with a colon before the port."""
    return f"{where[0]}:{where[1]}" if len(where) == 2 else f"[{where[0]}]:{where[1]}"


@lru_cache(maxsize=256)
def socket_address_of(name: str, key: str = "group") -> SocketAddress:
    """Parse "239.1.2.3:6003" or "[ff05::7]:6003" as sockets take it. UsageError, beginning with the key, for anything else."""
    host, _, port = name.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    address = host[1:-1] if bracketed else host
    try:
        if bracketed != (ip_of(address).version == 6):
            raise ValueError
    except ValueError:
        raise UsageError(f"{key}: {name!r} is not an address and a port, like 239.1.2.3:6003 or [ff05::1:2:3]:6003") from None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"{key}: the port of {name!r} is not a number from 1 to 65535")
    try:
        return socket_address(address, int(port))
    except OSError:
        raise UsageError(f"{key}: {name!r} names no device of this machine; devices here: {_devices()}") from None


def address_of(interface: str | None, towards: str | None = None) -> str:
    """Return the address of a device (or of an address) for packets to `towards`; None: that of the route there.

    It is of the family of `towards`, and names its device if it is link-local. Without `towards` a device's IPv4 address is
    meant, and the route to multicast groups. Raises UsageError if there is none.
    """
    try:
        if interface is not None and ip_of(interface):
            return _checked(interface, towards)
    except ValueError:
        pass
    towards = towards or _A_GROUP
    if family_of(towards) == socket.AF_INET6:
        return _address6_of(interface, towards)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        if interface is None:
            return str(_source_address(sock, (towards, 9))[0])
        request = struct.pack("256s", os.fsencode(interface)[:15])
        try:
            return socket.inet_ntoa(fcntl.ioctl(sock, _SIOCGIFADDR, request)[20:24])
        except OSError:
            raise UsageError(f"iface: {interface!r} is no device with an IPv4 address; devices here: {_devices()}") from None


def device_of(address: str) -> int:
    """Return the number of the device that has an IPv6 address. Raises UsageError."""
    scope = socket_address(address, 0)[-1]
    if scope:
        return int(scope)
    packed = ip_of(address).packed
    for raw, device, _, _ in _ipv6_addresses():
        if raw == packed:
            return device
    raise UsageError(f"iface: no device has the address {address}; devices here: {_devices()}")


def _checked(address: str, towards: str | None) -> str:
    """Return an own address that packets to `towards` can have as source. Raises UsageError if their families differ."""
    ip = ip_of(address)
    if towards is not None and ip.version != ip_of(towards).version:
        raise UsageError(f"iface: {address!r} is an IPv{ip.version} address, and {towards!r} is none; name a device")
    if ip.version == 6 and ip.is_link_local and "%" not in address:
        address = f"{address}%{socket.if_indextoname(device_of(address))}"
    return str(ip_of(address))


def _address6_of(interface: str | None, towards: str) -> str:
    """Return the IPv6 address of a device, of the narrowest scope that reaches `towards`."""
    bare, _, device = towards.partition("%")
    if interface and device and device != interface:
        raise UsageError(f"iface: {interface!r} is not the device that {towards!r} names")
    interface = interface or device or None
    if interface is None:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            found = _source_address(sock, (bare, 9, 0, 0))
            return found[0] if not found[-1] else f"{found[0]}%{socket.if_indextoname(int(found[-1]))}"
    own = [(raw, flags) for raw, _, name, flags in _ipv6_addresses() if name == interface]
    usable = [ipaddress.IPv6Address(raw) for raw, flags in own if not flags & (_TENTATIVE | _FAILED)]
    if not usable:
        why = "one that is still being tested for duplicates" if own else "none"
        raise UsageError(f"iface: {interface!r} is no device with an IPv6 address ({why}); devices here: {_devices()}")
    # A link-local group is left to link-local addresses; packets to others pass routers only from an address of wider scope.
    best = min(usable, key=lambda ip: (ip.is_link_local != is_link_local(bare), int(ip)))
    return f"{best}%{interface}" if best.is_link_local else str(best)


def _source_address(sock: socket.socket, towards: SocketAddress) -> SocketAddress:
    try:
        sock.connect(towards)
    except OSError as error:
        raise UsageError(f"iface: no route to {towards[0]} ({error.strerror}); name a device or address") from None
    found: SocketAddress = sock.getsockname()
    return found


def _ipv6_addresses() -> list[tuple[bytes, int, str, int]]:
    """Return all IPv6 addresses of this machine: address, number and name of the device, flags (proc(5), if_inet6)."""
    try:
        lines = _IPV6_ADDRESSES.read_text().splitlines()
    except FileNotFoundError:
        return []
    rows = [line.split() for line in lines]
    return [(bytes.fromhex(raw), int(device, 16), name, int(flags, 16)) for raw, device, _, _, flags, name in rows]


def _devices() -> str:
    return ", ".join(name for _, name in socket.if_nameindex())
