"""`mcastlab monitor`: a page with the statistics of sessions, emulations and whole domains, live."""

import json
import os
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import Json
from experiments.commands.watching import Ifaces, ManagementGroup, watcher_of
from experiments.monitor.watcher import Watcher
from experiments.output.extras import need
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.errors import UsageError

__all__ = ["monitor"]

SHORTEST = 16
"""Characters of a token, at least."""


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
    address, port = _address_of(listen)
    is_loopback = ip_address(address).is_loopback
    if not is_loopback and token_file is None:
        raise UsageError(f"--listen: value {listen!r} is not allowed without --token-file; others can reach this address")
    secret = None if token_file is None else _read_token(token_file)
    with _open(address, port) as server:
        port = server.getsockname()[1]
        shown = f"[{address}]" if ":" in address else address
        url = f"http://{shown}:{port}/"
        typer.echo(json.dumps({"event": "listening", "url": url}) if as_json else f"{url} (Ctrl-C ends)")
        _serve(server, watching, frozenset({address, "localhost"}) if is_loopback else frozenset(), secret)
    return 130


def _serve(server: socket.socket, watcher: Watcher, hosts: frozenset[str], secret: str | None) -> None:
    import uvicorn

    from experiments.monitor.web import application

    class Server(uvicorn.Server):
        """Ends the events of open pages when a signal comes; they would go on for ever."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            """See the class."""
            super().handle_exit(sig, frame)
            watcher.end()

    options = uvicorn.Config(
        application(watcher, hosts, secret),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
        server_header=False,
        limit_concurrency=256,
    )
    Server(options).run(sockets=[server])


def _address_of(text: str) -> tuple[str, int]:
    """Return address and port of "ADDR:PORT", or of a port alone on 127.0.0.1."""
    address, _, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]") or "127.0.0.1"
    try:
        ip_address(address)
        if not (port.isascii() and port.isdecimal() and int(port) <= 0xFFFF):
            raise ValueError(port)
    except ValueError as error:
        raise UsageError(f"--listen: value {text!r} is not allowed; an IP address and a port, as in 127.0.0.1:8888") from error
    return address, int(port)


def _open(address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise UsageError(f"--listen: {address}:{port} can't be used ({os.strerror(error.errno or 0)})") from error


def _read_token(file: Path) -> str:
    secret = file.read_text(encoding="utf-8", errors="replace").strip()
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError(f"--token-file: {file}: is not allowed; one word of at least {SHORTEST} ASCII characters")
    return secret
