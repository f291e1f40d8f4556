"""The role `tunnel`: how a scenario makes a tunnel of a node."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from protocols.admin.node import Node, place_of
from protocols.admin.registration import Registration
from protocols.errors import ConfigError
from protocols.machine import Codec, Group, Machine, Ports
from protocols.norm.messages import Fti
from protocols.norm.wire.sizes import AUTH_SIZE, header_size
from protocols.roles import Role, RoleContext
from protocols.tunnel.authentication import KeyedTunnelCodec
from protocols.tunnel.config import TunnelOptions
from protocols.tunnel.registered import RegisteredTunnel
from protocols.tunnel.tunnel import Tunnel
from protocols.tunnel.wire import HEADER, LARGEST, MAC_SIZE, TunnelCodec

__all__ = ["ROLE", "make_codec", "room_for_segments"]


def room_for_segments(headers: int, options: TunnelOptions) -> int:
    """Return the largest `segment` whose packets, with `headers` bytes before it, fit a datagram of a tunnel."""
    return LARGEST - HEADER - (MAC_SIZE if options.key_file else 0) - headers


def make_codec(inner: Codec | None, keys: Mapping[int, bytes], clock: Callable[[], float], *, enrolled: bool = True) -> Codec:
    """Make the codec of a tunnel: one that authenticates, if there are keys, and with `enrolled` one for a registry, too."""
    codec = TunnelCodec(inner, enrolled=enrolled)
    return KeyedTunnelCodec(codec, keys, clock) if keys else codec


def _make(ports: Ports, context: RoleContext) -> Machine:
    options: TunnelOptions = context.options or TunnelOptions()
    authenticated = bool(getattr(context.config, "key_file", ""))
    group = Group(context.group.name, options.lan)

    def make_tunnel(own: Ports) -> Tunnel:
        return Tunnel(own, context.node, group, options, is_authenticated=authenticated)

    for registry in context.addresses["admin"]:
        address, port = place_of(context.address)
        registration = Registration(address, options.site or context.node, port, group.name, address)
        return RegisteredTunnel(ports, make_tunnel, registry, registration)
    tunnel = make_tunnel(ports)
    others = (address for address in context.addresses["tunnel"] if address != context.address)
    tunnel.update_peers([_static(number, place_of(address), group) for number, address in enumerate(others, 1)])
    return tunnel


def _static(number: int, place: tuple[str, int], group: Group) -> Node:
    """Return a tunnel of which only the address is known."""
    return Node(number, place[0], 0, *place, group.name)


def _check(options: TunnelOptions, config: Any, networks: Sequence[str]) -> None:
    """ConfigError for a router without `lan`, and for segments that are too long for datagrams."""
    if networks and not options.lan:
        raise ConfigError(f"lan: value '' is not allowed; a router has several networks: one of {', '.join(networks)}")
    headers = header_size(Fti(config.fec, 1, config.segment, config.block, config.parity))
    headers += AUTH_SIZE if config.key_file else 0
    most = room_for_segments(headers, options)
    if config.segment > most:
        raise ConfigError(
            f"role: value 'tunnel' is not allowed; datagrams have at most {LARGEST} bytes, so protocol.segment, which is "
            f"{config.segment}, may be at most {most}"
        )


ROLE = Role(_make, needs=("tunnel", "admin"), options=TunnelOptions, codec=make_codec, check=_check, divides=True)
