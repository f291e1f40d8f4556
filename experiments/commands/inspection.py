"""`mcastlab inspect`: analyse a capture of NORM traffic."""

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Brief, Columns, Json, KeyFile, Wide
from experiments.commands.text_file import write_text
from experiments.inspection.inspection import inspect_capture
from experiments.inspection.inspection_page import inspection_page
from experiments.inspection.inspection_tables import INSPECTED, show
from experiments.inspection.packet import packet_lines, packet_of
from experiments.output.printer import Printer, View
from experiments.output.working import working
from experiments.running.authentication import read_keys
from protocols.errors import UsageError
from protocols.norm.wire.authentication import Authenticator

__all__ = ["inspect_command"]

HIGHEST_PORT = 65_535


def inspect_command(
    *,
    capture: Annotated[Path, typer.Argument(metavar="CAPTURE", help="A pcap or pcapng file.", show_default=False)],
    port: Annotated[
        int | None, typer.Option(help="UDP port of the session.  (default: every port with NORM traffic)", metavar="P")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write an HTML page with all findings and a sequence diagram.", metavar="FILE")
    ] = None,
    packet: Annotated[
        int | None, typer.Option(help="Show only this packet, counted from 1, field by field.", metavar="N")
    ] = None,
    key_file: KeyFile = None,
    wide: Wide = False,
    columns: Columns = "",
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """List the senders and objects in a capture of NORM traffic, the losses, requests and repairs, and protocol violations.

    With --key-file, messages without a valid MAC are violations, and are left out of everything else.

    Exit code 0: no violations; 1: messages violate RFC 5740; 2: bad input.
    """
    view = View.of(wide=wide, columns=columns, brief=brief, as_json=as_json)
    view.check(INSPECTED)
    if port is not None and not 0 < port <= HIGHEST_PORT:
        raise UsageError(f"--port: value {port!r} is not allowed; a whole number from 1 to {HIGHEST_PORT}")
    if packet is not None:
        return _packet(capture, packet, port, as_json)
    authenticator = None if key_file is None else Authenticator(read_keys(key_file))
    with working(f"reading {capture}"):
        found = inspect_capture(capture, port, authenticator)
    if html is not None:
        write_text("--html", html, inspection_page(found))
        typer.echo(html, err=True)
    if as_json:
        typer.echo(json.dumps(found.plain()))
    else:
        show(Printer(view), found)
    return int(found.violated)


def _packet(capture: Path, number: int, port: int | None, as_json: bool) -> int:
    found = packet_of(capture, number, port)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        for line in packet_lines(found):
            typer.echo(line)
    return 0
