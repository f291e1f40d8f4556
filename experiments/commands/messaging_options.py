"""Options of `mcastlab pub` and `sub`, and the connection they describe."""

from typing import Annotated, Any, Literal, TypeAlias

import typer

from emu.udp_options import UdpOptions
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.session.connection import DistributorConnection
from experiments.session.membership import Membership
from protocols.errors import ConfigError, UsageError

__all__ = ["Application", "Management", "MessagingProtocol", "connection", "parameters"]

MessagingProtocol: TypeAlias = Annotated[
    Literal["distributor"], typer.Option(help="Protocol that carries the updates.", metavar="NAME")
]
Management: TypeAlias = Annotated[
    str, typer.Option(help="Group on which this program announces itself to consoles; 'off': it does not.", metavar="ADDR:PORT")
]
Application: TypeAlias = Annotated[str, typer.Option(help="Name that other nodes are told.", metavar="NAME")]


def parameters(protocol: str, **given: str | None) -> Any:
    """Make the config of a protocol from options as the user wrote them. ConfigError names the option."""
    try:
        return ProtocolChoice.of(protocol, {key: value for key, value in given.items() if value is not None}).config
    except ConfigError as error:
        key, _, why = str(error).removeprefix("protocol.").partition(": ")
        name = {"rate": "bandwidth"}.get(key, key)
        raise ConfigError(f"--{name.replace('_', '-')}: {why}") from error


def connection(
    protocol: str, config: Any, group: str, iface: str | None, application: str, management: str, ttl: int = 1
) -> DistributorConnection:
    """Make a connection from options. UsageError names the option."""
    from protocols.registry import protocol as named

    try:
        place = Membership(named(protocol), config, group, iface, None, UdpOptions(ttl))
    except UsageError as error:
        raise UsageError(f"--{error}") from error
    if management == "off":
        return DistributorConnection(place, application, management=None)
    try:
        Membership(named(protocol), config, management)
    except UsageError as error:
        raise UsageError(f"--management: {str(error).removeprefix('group: ')}") from error
    return DistributorConnection(place, application, management=management)
