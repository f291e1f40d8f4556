"""`mcastlab admin`: the registry by which the tunnels of all sites find each other, with a web page."""

import asyncio
import json
import secrets
import socket
from pathlib import Path
from typing import Annotated

import typer

from emu.disk import OpenDisk, disk_opener
from emu.host import UdpHost
from emu.udp_options import UdpOptions
from emu.web.listening import hosts_of, listen_at, open_server, url_of
from experiments.commands.options import Json, option_errors
from experiments.commands.serving import print_summary
from experiments.output.extras import need
from experiments.output.prometheus import exposition
from experiments.output.safe_text import printable
from experiments.running.live import Live, live
from experiments.scenario.user_settings import read_settings
from protocols.admin.config import AdminOptions
from protocols.admin.events import NodeChanged, NodeLeft, NodeRegistered
from protocols.admin.registry import MEASURES
from protocols.admin.wire import AdminCodec
from protocols.errors import StorageError, UnsupportedError, UsageError
from protocols.events import Event
from protocols.rng import Rng
from protocols.snapshot import measures_by_name
from topologies.disk_model import DiskModel

__all__ = ["admin"]

EXAMPLE = "127.0.0.1:8080"
COUNTERS = ("registrations", "renewals", "nodes_left", "nodes_silent", "lists_sent", "lists_current", "advertisements_sent")


def admin(
    *,
    listen: Annotated[str, typer.Option(help="Address and port of the registry and its page.", metavar="ADDR:PORT")] = EXAMPLE,
    udp: Annotated[
        int | None,
        typer.Option(help="UDP port that advertisements come from.  (default: a free one)", metavar="PORT", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that requests need; needed off loopback.", metavar="FILE", show_default=False),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="File that keeps the list.  (default: it is forgotten)", metavar="FILE", show_default=False),
    ] = None,
    period: Annotated[str, typer.Option(help="Time between two advertisements.", metavar="TIME")] = "1s",
    lease: Annotated[
        str, typer.Option(help="Time after which a tunnel that does not renew is forgotten.", metavar="TIME")
    ] = "10s",
    as_json: Json = False,
) -> int:
    """Run the registry of tunnels, until Ctrl-C: they register, renew and ask by HTTP, and are advertised changes by UDP.

    At / there is a page with all tunnels, at /metrics their numbers for Prometheus, at /openapi.json the interface.

    Exit code 2: bad input; 3: it can't listen there, or a library is missing; 130: ended by Ctrl-C.
    """
    need("admin", "fastapi", "uvicorn", "httpx", "prometheus_client")
    options = _options(period, lease, state)
    place, secret = listen_at(listen, token_file, EXAMPLE)
    if udp is not None and not 0 < udp <= 0xFFFF:
        raise UsageError(f"--udp: value {udp} is not allowed; a port from 1 to 65535")
    with live() as runner, open_server(place, UnsupportedError) as server:
        host = _host(runner, place[0], udp or 0, state)
        try:
            return _run(runner, host, server, options, secret, as_json)
        except StorageError as error:
            raise UsageError(f"--state: {error}") from error
        finally:
            host.close()


def _options(period: str, lease: str, state: Path | None) -> AdminOptions:
    with option_errors("admin"):
        found: AdminOptions = read_settings(AdminOptions, {"period": period, "lease": lease}, "admin", ())
    return AdminOptions(found.period, found.lease, int(state is not None))


def _host(runner: Live, address: str, udp: int, state: Path | None) -> UdpHost:
    """Return the host of the registry."""
    rng, udp_options = Rng(secrets.randbits(64)), UdpOptions(tx_port=udp)
    disk: OpenDisk | None = None if state is None else disk_opener(state, "registry", DiskModel())
    try:
        return UdpHost(runner.loop, AdminCodec(), interface=address, port=0, rng=rng, options=udp_options, open_disk=disk)
    except UsageError as error:
        if udp:
            raise UnsupportedError(f"--udp: {error}") from error
        raise UsageError(f"--listen: {error}") from error


def _run(runner: Live, host: UdpHost, server: socket.socket, options: AdminOptions, secret: str | None, as_json: bool) -> int:
    from emu.admin.service import RegistryService
    from emu.web.serving import tolerant

    service = RegistryService(host, host.address, options, told=lambda event: _tell(event, as_json))
    registry, measures = service.registry, measures_by_name(MEASURES)
    service.start()

    async def serve() -> None:
        metrics = lambda: exposition(registry.snapshot(host.now), measures, registry.table.most)  # noqa: E731
        async with service.serving(server, metrics, hosts_of(server.getsockname()[0]), secret):
            _tell_beginning(url_of(server), as_json)
            await asyncio.Event().wait()

    with tolerant(runner.loop):
        ending = runner.play(serve())
    print_summary(registry, COUNTERS, ending.seconds, as_json)
    return 130


def _tell_beginning(url: str, as_json: bool) -> None:
    typer.echo(json.dumps({"event": "listening", "url": url}) if as_json else f"{url} (Ctrl-C ends)")


def _tell(event: Event, as_json: bool) -> None:
    """Print a line about a node that comes, goes, is paused or goes on."""
    if not isinstance(event, (NodeRegistered, NodeLeft, NodeChanged)):
        return
    node = event.node
    word: str
    if isinstance(event, NodeLeft):
        word = event.why
    elif isinstance(event, NodeRegistered):
        word = "registered"
    else:
        word = "paused" if node.paused else "resumed"
    if as_json:
        told = {"id": node.id, "name": node.name, "site": node.site, "address": node.address, "port": node.port}
        typer.echo(json.dumps({"event": word, **told}))
    else:
        typer.echo(printable(f"{node.name} ({node.address}:{node.port}): {word}"), err=True)
