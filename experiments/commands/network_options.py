"""Options of commands on a real network: the group, the device, and what the IP layer does with packets."""

from dataclasses import replace
from typing import Annotated, TypeAlias

import typer

from emu.udp_options import UdpOptions
from protocols.errors import UsageError

__all__ = ["Df", "Group", "Iface", "Loopback", "Reuse", "Sources", "Tos", "Ttl", "TxPort", "receiving", "transmitting"]

Group: TypeAlias = Annotated[
    str,
    typer.Option(
        "--group", help="Multicast address, or the other host's in a session of two, and port; IPv6 in [].", metavar="ADDR:PORT"
    ),
]
Iface: TypeAlias = Annotated[
    str | None, typer.Option("--iface", help="Device or own address.  (default: the system's route)", metavar="IF")
]
Ttl: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--ttl",
        help="Hop limit of packets (IP time to live).  (default: 1; between two hosts the system's)",
        min=0,
        max=255,
        metavar="N",
        show_default=False,
    ),
]
Tos: TypeAlias = Annotated[
    str, typer.Option("--tos", help="Traffic class of packets (DSCP and ECN), like 184 or 0xb8.", metavar="0..255")
]
Df: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--df/--no-df",
        help="Have no packet fragmented, or allow routers to do it.  (default: the system's way)",
        show_default=False,
    ),
]
Loopback: TypeAlias = Annotated[
    bool, typer.Option("--loopback/--no-loopback", help="Let programs on this machine receive the multicast.")
]
TxPort: TypeAlias = Annotated[
    int,
    typer.Option(
        "--tx-port",
        help="UDP port that packets leave from.  (default: any)",
        min=0,
        max=65535,
        metavar="PORT",
        show_default=False,
    ),
]
Sources: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Receive from this sender only (source-specific multicast); can be repeated.",
        metavar="ADDR",
        show_default=False,
    ),
]
Reuse: TypeAlias = Annotated[
    bool, typer.Option("--reuse/--no-reuse", help="Share the group's port with other programs on this machine.")
]


def transmitting(*, ttl: int | None, tos: str, df: bool | None, loopback: bool, tx_port: int) -> UdpOptions:
    """Return the IP and UDP options of a sender. Raises UsageError that names the option."""
    return replace(_options(ttl, tos), df=df, loopback=loopback, tx_port=tx_port)


def receiving(sources: list[str] | None, *, ttl: int | None, tos: str, reuse: bool) -> UdpOptions:
    """Return the IP and UDP options of a receiver. Raises UsageError that names the option."""
    return replace(_options(ttl, tos), sources=tuple(sources or ()), reuse=reuse)


def _options(ttl: int | None, tos: str) -> UdpOptions:
    return UdpOptions(ttl=1 if ttl is None else ttl, unicast_ttl=ttl, tos=_traffic_class(tos))


def _traffic_class(text: str) -> int:
    """Return the value of --tos, decimal or hexadecimal. Raises UsageError."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value <= 255:
        raise UsageError(f"--tos: value {text!r} is not allowed; a number from 0 to 255, like 184 or 0xb8")
    return value
