"""`mcastlab stream`: standard input to the standard output of all receivers, as a NORM stream."""

import json
import sys
from typing import Annotated, Literal

import typer

from experiments.commands.help import Command, Group
from experiments.commands.network_options import (
    Df,
    Iface,
    Loopback,
    Reuse,
    Sources,
    Tos,
    Ttl,
    TxPort,
    receiving,
    transmitting,
)
from experiments.commands.network_options import Group as GroupOption
from experiments.commands.options import (
    FeedbackMode,
    Json,
    KeyFile,
    Metrics,
    NodeId,
    Stats,
    membership,
    norm_config,
    size_in_bytes,
    time_limit,
)
from experiments.output.counted import counted
from experiments.running.live import FINISHED, Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.standard_streams import PipeReader, PipeWriter
from experiments.session.boundaries import Boundary
from experiments.session.membership import Membership
from experiments.session.outgoing_stream import OutgoingStream
from experiments.session.session import Session
from experiments.session.stream_copy import StreamsOutput, copy_input
from protocols.errors import TransferError, UsageError
from protocols.stream import Flush
from topologies.units import format_duration, format_size

__all__ = ["recv", "send", "stream_command"]

By = Annotated[
    Literal["line", "message", "byte"],
    typer.Option(
        "--by", help="Where messages begin: at lines; at a 4-byte length before each; nowhere.", metavar="line|message|byte"
    ),
]
Timeout = Annotated[
    str | None, typer.Option(help="Give up after this time.  (default: never)", metavar="TIME", show_default=False)
]

stream_command = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    help="Send standard input to the standard output of all receivers, by NORM.",
)


@stream_command.command(cls=Command)
def send(
    *,
    group: GroupOption,
    iface: Iface = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    by: By = "line",
    rate: Annotated[str, typer.Option(help="Transmission rate of UDP payload.", metavar="RATE")] = "10Mbit",
    segment: Annotated[str, typer.Option(help="Content bytes in a packet.", metavar="SIZE")] = "1400",
    block: Annotated[int, typer.Option(help="Source segments per FEC block.", metavar="N")] = 16,
    parity: Annotated[int, typer.Option(help="Parity segments per block.", metavar="N")] = 4,
    buffer: Annotated[str, typer.Option(help="Bytes kept for repairs.", metavar="SIZE")] = "1MiB",
    flush: Annotated[
        Literal["none", "passive", "active"],
        typer.Option(
            help="Bytes that do not fill a packet wait; are sent; are sent, and asked for if they are lost.",
            metavar="none|passive|active",
        ),
    ] = "passive",
    push: Annotated[bool, typer.Option("--push", help="Drop the oldest bytes instead of making the input wait.")] = False,
    grtt: Annotated[str, typer.Option(help="Initial estimate of the group round-trip time.", metavar="TIME")] = "50ms",
    ttl: Ttl = None,
    tos: Tos = "0",
    df: Df = None,
    loopback: Loopback = True,
    tx_port: TxPort = 0,
    timeout: Timeout = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Send standard input as a stream, until its end.

    Receivers do not confirm what they have. Exit code 0: all was sent and flushed; 1: not; 2: bad input; 130: interrupted.
    """
    config = norm_config(
        rate=rate, segment=segment, block=block, parity=parity, grtt=grtt, key_file=str(key_file or ""), repair_share=0.33
    )
    longest = time_limit("--timeout", timeout)
    network = transmitting(ttl=ttl, tos=tos, df=df, loopback=loopback, tx_port=tx_port)
    place = membership(config, group, iface, node, receives=False, network=network)
    sending = _Sending(place, by, size_in_bytes("--buffer", buffer, least=1), push=push, flush=flush)
    wanted = WantedStatistics.of(stats, metrics)
    with live() as runner:
        ending = runner.play(_told(runner, sending, wanted, as_json), longest)
    if sending.refusal is not None:
        raise sending.refusal
    ok = ending.word == FINISHED and not sending.failure
    word = "sent, reception not confirmed" if ok else sending.failure or ending.word
    out, nacks = sending.stream, sending.session.counts().get("nacks_received", 0)
    octets, messages = (out.octets, out.messages) if out else (0, 0)
    _conclude(as_json, sending.failure, ok, word, ending.seconds, octets, messages=messages, nacks_received=nacks)
    return 130 if ending.interrupted else int(not ok)


class _Sending:
    def __init__(self, place: Membership, by: Boundary, buffer: int, *, push: bool, flush: Flush) -> None:
        self.session = Session(place, receives=False, boundary=by)
        self.stream: OutgoingStream | None = None
        self.failure = ""
        self.refusal: UsageError | None = None
        self._by: Boundary = by
        self._buffer, self._push, self._flush = buffer, push, flush

    async def run(self) -> None:
        reader = PipeReader(sys.stdin.fileno())
        self.stream = await self.session.open_stream(self._buffer, push=self._push, flush=self._flush)
        try:
            try:
                await copy_input(reader.read, self.stream, self._by)
            except UsageError as error:
                # The messages before are sent all the same.
                self.refusal = error
            await self.stream.close()
            await self.session.sent()
        except TransferError as error:
            self.failure = str(error)
        except OSError as error:
            self.failure = f"standard input: {error.strerror}"


@stream_command.command(cls=Command)
def recv(
    *,
    group: GroupOption,
    iface: Iface = None,
    source: Sources = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    feedback: FeedbackMode = "multicast",
    by: By = "line",
    count: Annotated[int | None, typer.Option(help="End after this number of streams.", min=1, metavar="N")] = None,
    timeout: Timeout = None,
    ttl: Ttl = None,
    tos: Tos = "0",
    reuse: Reuse = True,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Write received streams to standard output, until --count, --timeout or Ctrl-C; the summary goes to standard error.

    By line and by message, output begins with a whole one, and goes on with one where bytes were lost for good. Exit code 0:
    the wanted streams ended and nothing of them was lost; 1: not; 2: bad input; 130: interrupted.
    """
    config = norm_config(key_file=str(key_file or ""), feedback=feedback)
    longest = time_limit("--timeout", timeout)
    network = receiving(source, ttl=ttl, tos=tos, reuse=reuse)
    place = membership(config, group, iface, node, receives=True, network=network)
    copying = _Receiving(place, by, count)
    wanted = WantedStatistics.of(stats, metrics)
    with live() as runner:
        ending = runner.play(_told(runner, copying, wanted, as_json), longest)
    found = copying.output
    ok = not copying.failure and not found.gaps and found.ended >= (count or 1)
    word = "received" if ok else counted(found.gaps, "gap") if found.gaps else ending.word
    word = copying.failure or word
    _conclude(as_json, copying.failure, ok, word, ending.seconds, found.octets, streams=found.ended, gaps=found.gaps)
    return 130 if ending.interrupted else int(not ok)


class _Receiving:
    def __init__(self, place: Membership, by: Boundary, count: int | None) -> None:
        self._count = count
        self.session = Session(place, sends=False, memory=0, boundary=by)
        self.output = StreamsOutput(PipeWriter(sys.stdout.fileno()).write)
        self.failure = ""

    async def run(self) -> None:
        try:
            await self.output.run(self.session, self._count)
        except* BrokenPipeError:
            raise
        except* OSError as errors:
            self.failure = f"standard output: {_first(errors).strerror}"


async def _told(runner: Live, program: _Sending | _Receiving, wanted: WantedStatistics, as_json: bool) -> None:
    """Run a program in its session; statistics go to standard error, since standard output may be the stream."""
    async with program.session as session:
        with wanted.told(runner, session.host, session.measures, as_json=as_json, out=sys.stderr):
            await program.run()


def _first(group: BaseExceptionGroup[OSError]) -> OSError:
    """Return one of the errors of a group."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


_NOUNS = {"messages": "message", "nacks_received": "NACK", "streams": "stream", "gaps": "gap"}
"""Nouns for the counters that the last line of a command lists, by name of the counter."""


def _conclude(as_json: bool, failure: str, ok: bool, word: str, elapsed: float, octets: int, **more: int) -> None:
    """Print the summary to standard error, since standard output may be the stream."""
    last = {"event": "summary", "ok": ok, "failure": failure or None, "bytes": octets, "seconds": elapsed, **more}
    last["goodput_mbit_s"] = octets * 8e-6 / elapsed if elapsed else 0.0
    text = ", ".join(counted(value, _NOUNS[key]) for key, value in more.items())
    line = f"{word}: {format_size(octets)}, {text}, in {format_duration(round(elapsed, 3))}"
    typer.echo(json.dumps(last) if as_json else line, err=True)
