"""Sessions on a real network, for programs that use asyncio."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from emu.udp_options import DEFAULTS, UdpOptions
from experiments.running.folder import Folder
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.session.boundaries import BOUNDARIES, Boundary
from experiments.session.membership import Membership
from experiments.session.session import MEMORY, Session
from protocols.errors import ConfigError, UsageError
from topologies.units import parse_size

__all__ = ["session"]


@asynccontextmanager
async def session(
    group: str,
    iface: str | None = None,
    node: int | None = None,
    *,
    send: bool = True,
    receive: bool = True,
    folder: Path | str | None = None,
    memory: int | str = MEMORY,
    boundary: Boundary = "message",
    network: UdpOptions = DEFAULTS,
    protocol: str = "norm",
    **parameters: Any,
) -> AsyncIterator[Session]:
    """Take part in a session on a real network: `async with mcastlab.session("239.1.2.3:6003", "eth0") as s`.

    `group` is a multicast address and a port, or the other host's in a session of two; `iface` a device or an own address
    (default: the system's route to the group), `node` the 32-bit node id (default: a new one for each session), `network`
    options of the IP layer: TTL, sources, ports. A node that need not `send` or `receive` saves the work. Received files are
    stored in `folder`; without it, and other objects always, they are kept in `memory` (bytes in all, or like "64MB") until
    the program takes them. `boundary` says where messages begin in streams: "message", "line" or "byte".

    `parameters` are those of the protocol (docs/norm.md), as numbers in seconds, bytes and bits per second or with units:
    `rate="50Mbit", grtt="10ms"`. UsageError names the parameter that is wrong.
    """
    if not (send or receive):
        raise UsageError("send, receive: False is not allowed for both; a session sends, receives or does both")
    if boundary not in BOUNDARIES:
        raise UsageError(f"boundary: value {boundary!r} is not allowed; one of {', '.join(BOUNDARIES)}")
    try:
        limit = int(parse_size(memory))
    except ConfigError as error:
        raise UsageError(f"memory: value {memory!r} is not allowed; a size, like 64MB") from error
    choice = ProtocolChoice.parse({"name": protocol, **parameters})
    place = Membership(choice.spec, choice.config, group, iface, node, network)
    stored = None if folder is None else Folder(Path(folder), force=False, on_stored=lambda file: None)
    try:
        async with Session(place, sends=send, receives=receive, folder=stored, memory=limit, boundary=boundary) as opened:
            yield opened
    finally:
        if stored is not None:
            stored.stop_hashing()
            stored.close()
