"""`mcastlab broker`: the broker of protocols/broker on a real network."""

import asyncio
import json
import secrets
from typing import Annotated

import typer

from emu.addresses import SocketAddress, socket_address_of, text_of
from emu.host import UdpHost
from experiments.commands.help import Command, Group
from experiments.commands.options import Json, Metrics, Stats, option_errors, time_limit
from experiments.commands.serving import print_summary
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.scenario.protocol_choice import ProtocolChoice
from protocols.broker import PROTOCOL
from protocols.broker.broker import Broker
from protocols.errors import UnsupportedError, UsageError
from protocols.machine import Group as MulticastGroup
from protocols.rng import Rng
from protocols.roles import RoleContext

__all__ = ["broker", "serve"]

LISTEN = "127.0.0.1:61613"
"""The usual port of STOMP, on this machine alone: STOMP has no encryption, and this broker takes every client."""
NO_GROUP = MulticastGroup("0.0.0.0:0")
COUNTERS = ("messages_relayed", "copies_sent", "messages_expired", "clients", "clients_refused", "clients_stalled")

broker = typer.Typer(
    cls=Group, add_completion=False, no_args_is_help=True, help="Run a broker of topics that speaks STOMP 1.2."
)


@broker.callback()
def _broker() -> None:
    """Run a broker of topics that speaks STOMP 1.2."""


@broker.command(cls=Command)
def serve(
    *,
    listen: Annotated[
        str, typer.Option(help="Where clients connect; anybody who can reach it may publish.", metavar="ADDR:PORT")
    ] = LISTEN,
    queue: Annotated[
        int, typer.Option(help="Messages waiting for one subscriber, from which on publishers wait.", metavar="N")
    ] = 64,
    window: Annotated[
        int, typer.Option(help="Messages of a publisher that wait, from which on nothing more is read of it.", metavar="N")
    ] = 64,
    clients: Annotated[int, typer.Option(help="Connections at most.", metavar="N")] = 4000,
    timeout: Annotated[
        str | None, typer.Option(help="End after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Serve publishers and subscribers of topics (/topic/NAME) by STOMP 1.2, until --timeout or Ctrl-C.

    Exit code 0: it served; 2: bad input; 3: it can't listen there; 130: interrupted.
    """
    longest = time_limit("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    where = socket_address_of(listen, "--listen")
    with option_errors("protocol"):
        config = ProtocolChoice.of("broker", {"queue": queue, "window": window, "clients": clients}).config
    with live() as runner:
        host = _host(runner, where)
        try:
            machine = Broker(host, RoleContext(config, 1, NO_GROUP))
            try:
                host.run(machine, lambda event: None)
            except UsageError as error:
                raise UnsupportedError(f"--listen: {error}") from error
            _tell_beginning(where, as_json)
            ending = runner.play(_serve(runner, host, wanted, as_json), longest)
        finally:
            host.close()
    print_summary(machine, COUNTERS, ending.seconds, as_json)
    return 130 if ending.interrupted else 0


def _host(runner: Live, where: SocketAddress) -> UdpHost:
    """Return a host at the address. UnsupportedError if the port is in use, or it is no address of this machine."""
    rng = Rng(secrets.randbits(64))
    try:
        return UdpHost(runner.loop, PROTOCOL.codec(), interface=where[0], port=where[1], rng=rng, framing=PROTOCOL.framing)
    except UsageError as error:
        # The host opens further ports of its own, whose numbers would say nothing.
        why = str(error).rpartition(": ")[2]
        raise UnsupportedError(f"--listen: {text_of(where)} can't be used: {why}") from error


async def _serve(runner: Live, host: UdpHost, wanted: WantedStatistics, as_json: bool) -> None:
    """Show the statistics that are wanted, until the command ends."""
    with wanted.told(runner, host, PROTOCOL.measures, as_json=as_json):
        await asyncio.Event().wait()


def _tell_beginning(where: SocketAddress, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"event": "listening", "at": text_of(where)}))
    else:
        typer.echo(f"listening at {text_of(where)}", err=True)
