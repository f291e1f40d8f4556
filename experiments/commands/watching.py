"""Options of `mcastlab console` and `monitor`, and what watches for them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import typer

from emu.addresses import address_of, ip_of, is_multicast, socket_address_of
from experiments.monitor.management import ManagementSource
from experiments.monitor.watcher import Watcher
from protocols.errors import UsageError

__all__ = ["Ifaces", "ManagementGroup", "watcher_of"]

ManagementGroup: TypeAlias = Annotated[
    str,
    typer.Option("--management", help="Group on which processes announce themselves; 'off': none.", metavar="ADDR:PORT"),
]
Ifaces: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--iface", help="Interface of that group; may be repeated.  (default: all)", metavar="NAME", show_default=False
    ),
]


def watcher_of(management: str, ifaces: Sequence[str] | None) -> Watcher:
    """Return what watches a management group on interfaces, and all sessions. UsageError names the option."""
    if management == "off":
        return Watcher()
    address = socket_address_of(management, "--management")[0]
    if ip_of(address).version != 4 or not is_multicast(address):
        raise UsageError(f"--management: value {management!r} is not allowed; an IPv4 multicast address and a port, or off")
    for iface in ifaces or ():
        try:
            address_of(iface)
        except UsageError as error:
            raise UsageError(f"--{error}") from error
    return Watcher(management=_opening(management, tuple(ifaces or ())))


def _opening(management: str, ifaces: Sequence[str]) -> Callable[[], ManagementSource]:
    return lambda: ManagementSource(asyncio.get_running_loop(), management, ifaces)
