"""Connections of the Distributor on a real network, for programs that use asyncio."""

from typing import Any

from emu.udp_options import LARGEST_TTL, UdpOptions
from experiments.scenario.plain_values import mapping_of
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.session.connection import MOST_WAITING, DistributorConnection
from experiments.session.membership import Membership
from mcastlab._arguments import a_place, a_text, a_whole
from protocols.distributor.management import GROUP as MANAGEMENT

__all__ = ["distributor"]


def distributor(
    group: str,
    iface: str | None = None,
    *,
    application: str = "mcastlab",
    ttl: int = 1,
    waiting: int = MOST_WAITING,
    management: str | None = MANAGEMENT,
    **parameters: Any,
) -> DistributorConnection:
    """Return a connection to a group: `async with mcastlab.distributor("239.1.2.3:5656", "eth0") as connection`.

    `group` is a multicast address and a port, `iface` a device or its IPv4 address (default: the system's multicast route),
    `application` the name that other nodes hear, `waiting` how many updates of a subscription may wait for the program. On the
    group `management` (None: not) the program announces itself to consoles and monitors, and answers them on a TCP port.
    `parameters` are those of the protocol (docs/distributor.md), as numbers in seconds, bytes and bits per second or with
    units: `rate="50Mbit", holdback="10ms"`. UsageError names the argument or the
    parameter that is wrong.
    """
    choice = ProtocolChoice.parse({"name": "distributor", **mapping_of(parameters, "protocol")})
    network = UdpOptions(a_whole("ttl", ttl, 0, LARGEST_TTL))
    place = Membership(choice.spec, choice.config, *a_place(group, iface), None, network)
    told = None if management is None else a_text("management", management)
    return DistributorConnection(place, a_text("application", application), waiting, told)
