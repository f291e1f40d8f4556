"""`mcastlab stream`: standard input to the standard output of all receivers, as a NORM stream."""

import json
import secrets
import sys
from typing import Annotated, Any, Literal

import typer

from experiments.commands.help import Command, Group
from experiments.commands.options import Group as GroupOption
from experiments.commands.options import Iface, Json, KeyFile, Metrics, NodeId, Stats, check_node, norm_config, seconds
from experiments.commands.recv import own_node
from experiments.running.authentication import node_codec
from experiments.running.live import live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.program import Node
from experiments.running.standard_streams import PipeReader, PipeWriter
from experiments.running.stream_programs import StreamReceivingProgram, StreamSendingProgram
from protocols import machine
from protocols.errors import UsageError
from protocols.registry import protocol
from protocols.stream import StreamSettings
from topologies.units import format_duration, format_size, parse_size

__all__ = ["recv", "send", "stream_command"]

By = Annotated[
    Literal["line", "message", "byte"],
    typer.Option(
        "--by", help="Where messages begin: at lines; at a 4-byte length before each; nowhere.", metavar="line|message|byte"
    ),
]
Timeout = Annotated[
    float | None, typer.Option(help="Give up after so many seconds.  (default: never)", metavar="S", show_default=False)
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
    push: Annotated[bool, typer.Option("--push", help="Drop the oldest bytes instead of making the input wait.")] = False,
    grtt: Annotated[str, typer.Option(help="Initial estimate of the group round-trip time.", metavar="TIME")] = "50ms",
    ttl: Annotated[int, typer.Option(help="IP time to live of multicast packets.", min=0, max=255, metavar="N")] = 1,
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
    check_node(node)
    longest = seconds("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    settings = StreamSettings(_size("--buffer", buffer), b"", push)
    norm = protocol("norm")
    with live(node_codec(norm, config)(), group, iface, ttl, secrets.randbits(64)) as session:
        place = Node(norm, config, node or session.address_number, machine.Group(group), secrets.randbelow(0xFFFF) + 1)
        program = StreamSendingProgram(
            place, by, settings, lambda take: PipeReader(session.loop, sys.stdin.fileno(), take), session.stop
        )
        with wanted.told(session, norm.measures, as_json=as_json, out=sys.stderr):
            ending = session.play(program, longest)
        counts = program.machine.counts() if program.machine else {}
    ok = program.finished()
    word = "sent, reception not confirmed" if ok else program.failure or ending.word
    nacks = counts.get("nacks_received", 0)
    _conclude(as_json, ok, word, ending.seconds, program.octets, messages=program.messages, nacks_received=nacks)
    return 130 if ending.interrupted else int(not ok)


@stream_command.command(cls=Command)
def recv(
    *,
    group: GroupOption,
    iface: Iface = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    by: By = "line",
    count: Annotated[int | None, typer.Option(help="End after this number of streams.", min=1, metavar="N")] = None,
    timeout: Timeout = None,
    stats: Stats = None,
    metrics: Metrics = None,
    as_json: Json = False,
) -> int:
    """Write received streams to standard output, until --count, --timeout or Ctrl-C; the summary goes to standard error.

    By line and by message, output begins with a whole one, and goes on with one where bytes were lost for good. Exit code 0:
    the wanted streams ended and nothing of them was lost; 1: not; 2: bad input; 130: interrupted.
    """
    config = norm_config(key_file=str(key_file or ""))
    check_node(node)
    longest = seconds("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    norm, failed = protocol("norm"), []
    with live(node_codec(norm, config)(), group, iface, 1, secrets.randbits(64)) as session:

        def fail(error: OSError) -> None:
            failed.append(error.strerror or str(error))
            session.stop()

        place = Node(norm, config, node or own_node(session), machine.Group(group))
        program = StreamReceivingProgram(place, by, count, session.stop)
        program.out = PipeWriter(session.loop, sys.stdout.fileno(), program.resume, fail)
        with wanted.told(session, norm.measures, as_json=as_json, out=sys.stderr):
            ending = session.play(program, longest)
    ok = not failed and not program.gaps and program.ended >= (count or 1)
    word = "received" if ok else f"{program.gaps} gaps" if program.gaps else ending.word
    if failed:
        word = f"standard output: {failed[0]}"
    _conclude(as_json, ok, word, ending.seconds, program.octets, streams=program.ended, gaps=program.gaps)
    return 130 if ending.interrupted else int(not ok)


def _size(option: str, value: str) -> int:
    """Return a size in bytes; UsageError names the option."""
    try:
        return int(parse_size(value))
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error


def _conclude(as_json: bool, ok: bool, word: str, elapsed: float, octets: int, **more: Any) -> None:
    """Print the summary to standard error, since standard output may be the stream."""
    last = {"event": "summary", "ok": ok, "bytes": octets, "seconds": elapsed, **more}
    last["goodput_mbit_s"] = octets * 8e-6 / elapsed if elapsed else 0.0
    text = ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in more.items())
    line = f"{word}: {format_size(octets)}, {text}, in {format_duration(round(elapsed, 3))}"
    typer.echo(json.dumps(last) if as_json else line, err=True)
