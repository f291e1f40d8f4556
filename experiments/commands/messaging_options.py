"""Options of `mcastlab pub` and `sub`, and the connection or the bus they describe."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from pydantic import TypeAdapter, ValidationError

from emu.udp_options import UdpOptions
from experiments.commands.options import duration, option_errors
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.session.connection import DistributorConnection
from experiments.session.membership import Membership
from experiments.session.message_bus import MessageBus
from experiments.session.node_file import NodeFile as NodeSettings
from experiments.session.node_file import read_node
from experiments.workload.publish import MessageRate
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.errors import UsageError

__all__ = [
    "Application",
    "Count",
    "Hops",
    "Management",
    "MessagingProtocol",
    "NodeFile",
    "OptionalGroup",
    "bus",
    "check_names",
    "check_unused",
    "chosen",
    "connection",
    "per_second",
]

MessagingProtocol: TypeAlias = Annotated[
    Literal["fjm2", "distributor"], typer.Option(help="Protocol that carries the messages.", metavar="fjm2|distributor")
]
OptionalGroup: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--group", help="Multicast address and port.  (default: that of --config)", metavar="ADDR:PORT", show_default=False
    ),
]
NodeFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration of the node; options override it.", metavar="NODE.YAML", show_default=False),
]
Hops: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--hops", help="IP time to live of multicast packets.  (default: 1)", min=0, max=255, metavar="N", show_default=False
    ),
]
Management: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"Distributor: group on which this program announces itself; 'off': it does not.  (default: {MANAGEMENT})",
        metavar="ADDR:PORT",
        show_default=False,
    ),
]
Application: TypeAlias = Annotated[
    str | None, typer.Option(help="Distributor: name that other nodes are told.", metavar="NAME", show_default=False)
]

Count: TypeAlias = Annotated[
    int | None, typer.Option(help="End after this number of messages.", min=1, metavar="N", show_default=False)
]


def check_unused(protocol: str, options: Mapping[str, object]) -> None:
    """Raise UsageError for an option that was given and that the protocol does not have."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name}: is not an option of protocol {protocol}")


def check_names(option: str, check: Callable[[str], object], names: Iterable[str]) -> None:
    """Check subjects or patterns. UsageError names the option or argument that they were given by."""
    for name in names:
        try:
            check(name)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from error


def chosen(protocol: str, **given: str | None) -> ProtocolChoice:
    """Return the protocol with parameters from options as the user wrote them. ConfigError names the option."""
    with option_errors("protocol", rate="bandwidth"):
        return ProtocolChoice.of(protocol, {key: value for key, value in given.items() if value is not None})


def connection(
    choice: ProtocolChoice,
    group: str | None,
    iface: str | None,
    application: str,
    management: str | None,
    hops: int | None = None,
) -> DistributorConnection:
    """Make a connection from options. UsageError names the option."""
    told = MANAGEMENT if management is None else management
    try:
        place = Membership(choice.spec, choice.config, _group(group), iface, None, UdpOptions(1 if hops is None else hops))
        place.place(receives=True)
        return DistributorConnection(place, application, management=None if told == "off" else told)
    except UsageError as error:
        raise UsageError(f"--{error}") from error


def _group(group: str | None) -> str:
    if group is None:
        raise UsageError("group: is missing; a multicast address and a port")
    return group


def bus(
    protocol: str, role: str, path: Path | None, group: str | None, iface: str | None, hops: int | None, **given: str | None
) -> MessageBus:
    """Make a bus in a role from a node file and options, which override it. Errors name the option or file and key."""
    node = NodeSettings() if path is None else read_node(path)
    if node.protocol.name != protocol:
        raise UsageError(f"{path}: protocol.name: value {node.protocol.name!r} is not allowed; {protocol}")
    options = chosen(protocol, **given)
    changed = {name: getattr(options.config, name) for name, value in given.items() if value is not None}
    config, network = replace(node.protocol.config, **changed), UdpOptions(node.hops if hops is None else hops)
    try:
        place = Membership(options.spec, config, _group(group or node.group), iface or node.iface, None, network)
        place.place(receives=True)
    except UsageError as error:
        of_file = [key for key, given_here in (("group", group), ("iface", iface)) if given_here is None and getattr(node, key)]
        raise UsageError(f"{path}: {error}" if str(error).partition(":")[0] in of_file else f"--{error}") from error
    return MessageBus(place, node.waiting, role)


def per_second(rate: str | None, gap: str | None) -> float | None:
    """Return the rate of messages that --rate or --gap says, per second; None for as fast as possible."""
    if rate is not None and gap is not None:
        raise UsageError("--gap: is not allowed beside --rate; one of both")
    if gap is not None:
        time = duration("--gap", gap)
        return 1 / time if time else None
    if rate is None:
        return None
    try:
        return TypeAdapter(MessageRate).validate_python(rate)
    except ValidationError:
        raise UsageError(f"--rate: value {rate!r} is not allowed; messages per second, like 500/s") from None
