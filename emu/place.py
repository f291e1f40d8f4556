"""Where a session takes place: the group or the host that it is with, the own address, and what follows from both."""

import ipaddress
import socket
from dataclasses import dataclass, replace

from emu.addresses import (
    address_of,
    family_of,
    ip_of,
    is_multicast,
    is_source_specific,
    socket_address,
    socket_address_of,
)
from emu.udp_options import UdpOptions
from protocols.errors import UsageError, shown

__all__ = ["Place", "place_of"]

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Place:
    """A session's group, or the other host of a session of two (`is_unicast`), and the own end of it.

    `group` is the name that machines know, "239.1.2.3:6003" or "[ff05::1:2:3]:6003"; `address` the own address, with its
    device if it is link-local; `port` the own UDP port for unicasts.
    """

    group: str
    address: str
    port: int
    options: UdpOptions
    is_unicast: bool

    @property
    def has_unicast_feedback(self) -> bool:
        """Whether receivers have to send their feedback to the sender, as they can't reach each other by the group."""
        return self.is_unicast or bool(self.options.sources)


def place_of(group: str, interface: str | None, options: UdpOptions, *, receives: bool = False) -> Place:
    """Return where a session with `group` takes place, on a device or an own address (None: by the system's route).

    In a session of two each end names the other, and both use the same port, which no other program of the machine can then
    use. `receives`: for a program that has to receive what is sent to the group. Raises UsageError for what can't be.
    """
    where = socket_address_of(group)
    target = group.rpartition(":")[0].strip("[]")
    ip = ip_of(target)
    if ip.is_unspecified or ip == _BROADCAST:
        raise UsageError(f"group: value {shown(group)} is not allowed; the address of a group or of a host, and a port")
    _check_sources(target, options.sources)
    address = address_of(interface, target)
    if not _is_own(address):
        raise UsageError(f"iface: value {shown(interface)} is not allowed; a device or an address of this machine")
    if is_multicast(target):
        if receives and is_source_specific(target) and not options.sources:
            raise UsageError(f"group: {target} is for source-specific multicast (RFC 4607); name the sender as source")
        return Place(group, address, where[1], options, is_unicast=False)
    if address.partition("%")[0] == where[0]:
        raise UsageError(f"group: {target} is this end's own address; in a session of two hosts each names the other")
    return Place(group, address, where[1], replace(options, reuse=False), is_unicast=True)


def _is_own(address: str) -> bool:
    """Return whether this machine can send from an address, to groups as well."""
    if ip_of(address).is_unspecified or is_multicast(address):
        return False
    try:
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as sock:
            sock.bind(socket_address(address, 0))
            if sock.family == socket.AF_INET:
                # A broadcast address can be bound.
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    except OSError:
        return False
    return True


def _check_sources(target: str, sources: tuple[str, ...]) -> None:
    """Raise UsageError unless the sources are addresses of hosts that can send to the group."""
    if sources and not is_multicast(target):
        raise UsageError(f"source: {target} is no multicast group; a session of two hosts has one sender")
    version = ip_of(target).version
    for source in sources:
        try:
            ip = ip_of(source)
            if ip.version == version and not ip.is_multicast and not ip.is_unspecified:
                continue
        except ValueError:
            pass
        raise UsageError(f"source: value {shown(source)} is not allowed; the IPv{version} address of a sender")
