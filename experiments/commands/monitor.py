"""`mcastlab monitor`: a page with the statistics of sessions, emulations and whole domains, live."""

import json
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from emu.web.listening import hosts_of, listen_at, open_server, url_of
from experiments.commands.options import Json
from experiments.commands.watching import Ifaces, ManagementGroup, watcher_of
from experiments.monitor.watcher import Watcher
from experiments.output.extras import need
from protocols.distributor.management import GROUP as MANAGEMENT

__all__ = ["monitor"]

MOST_CONNECTIONS = 256


def monitor(
    *,
    listen: Annotated[str, typer.Option(help="Address and port of the page.", metavar="ADDR:PORT")] = "127.0.0.1:8888",
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that requests need; needed off loopback.", metavar="FILE", show_default=False),
    ] = None,
    management: ManagementGroup = MANAGEMENT,
    iface: Ifaces = None,
    as_json: Json = False,
) -> int:
    """Show sessions, emulations and whole Distributor domains as a page, live, until Ctrl-C.

    Sessions of this user on this machine (send, recv, stream, pub, sub), emulations that run with --live, and all processes of
    the management group are found by themselves. Beside the page there are /api/domain and /api/sessions (JSON) and /metrics
    (for Prometheus). Exit code 2: bad input; 3: a library is missing; 130: ended by Ctrl-C.
    """
    need("monitor", "fastapi", "uvicorn", "prometheus_client")
    watching = watcher_of(management, iface)
    place, secret = listen_at(listen, token_file, "127.0.0.1:8888")
    with open_server(place) as server:
        url = url_of(server)
        typer.echo(json.dumps({"event": "listening", "url": url}) if as_json else f"{url} (Ctrl-C ends)")
        _serve(server, watching, hosts_of(place[0]), secret)
    return 130


def _serve(server: socket.socket, watcher: Watcher, hosts: frozenset[str], secret: str | None) -> None:
    import uvicorn

    from emu.web.serving import options_of
    from experiments.monitor.web import application

    class Server(uvicorn.Server):
        """Ends the events of open pages when a signal comes; they would go on for ever."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            """See the class."""
            super().handle_exit(sig, frame)
            watcher.end()

    Server(options_of(application(watcher, hosts, secret), MOST_CONNECTIONS)).run(sockets=[server])
