"""`mcastlab send`: send files to a multicast group on a real network."""

import os
import secrets
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import Group, Iface, Json, KeyFile, NodeId, check_node, norm_config, seconds
from experiments.output.transfer_reporter import TransferReporter, TransferStatus, file_row, summary
from experiments.running.authentication import node_codec, refusals, refusals_told
from experiments.running.files import FileSource, Hasher
from experiments.running.live import FINISHED, Live, live
from experiments.running.program import Job, Node, SenderProgram
from protocols import machine
from protocols.machine import Content, Event
from protocols.registry import protocol
from topologies.units import format_duration, format_rate, format_size

__all__ = ["send"]

UNKNOWN_DIGEST = "(not hashed in time)"


def send(
    *,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files to send, in this order.", show_default=False)],
    group: Group,
    iface: Iface = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    rate: Annotated[str, typer.Option(help="Transmission rate of UDP payload.", metavar="RATE")] = "10Mbit",
    segment: Annotated[str, typer.Option(help="Content bytes in a packet.", metavar="SIZE")] = "1400",
    block: Annotated[int, typer.Option(help="Source segments per FEC block.", metavar="N")] = 64,
    parity: Annotated[
        int | None, typer.Option(help="Parity segments per block.  (default: 16; 0 with --fec 0)", metavar="N")
    ] = None,
    auto_parity: Annotated[int, typer.Option(help="Parity segments per block sent without a request.", metavar="N")] = 0,
    fec: Annotated[int, typer.Option(help="FEC encoding id.", metavar="5|129|0")] = 5,
    grtt: Annotated[str, typer.Option(help="Initial estimate of the group round-trip time.", metavar="TIME")] = "50ms",
    backoff: Annotated[int, typer.Option(help="Back-off factor K of the receivers.", metavar="K")] = 4,
    gsize: Annotated[int, typer.Option(help="Estimate of the group size.", metavar="N")] = 1000,
    robust: Annotated[int, typer.Option(help="Robust factor: repetitions of the final FLUSH.", metavar="N")] = 20,
    ttl: Annotated[int, typer.Option(help="IP time to live of multicast packets.", min=0, max=255, metavar="N")] = 1,
    timeout: Annotated[
        float | None, typer.Option(help="Give up after so many seconds.  (default: never)", metavar="S", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Send files to a multicast group by NORM, until no receiver requests repairs.

    Exit code 0: all files were sent and flushed; 1: a file could not be sent, or --timeout expired; 2: bad input.
    """
    config = norm_config(
        rate=rate,
        segment=segment,
        block=block,
        parity=parity if parity is not None else 0 if fec == 0 else 16,
        auto_parity=auto_parity,
        fec=fec,
        grtt=grtt,
        backoff=backoff,
        gsize=gsize,
        robust=robust,
        key_file=str(key_file or ""),
    )
    check_node(node)
    longest = seconds("--timeout", timeout)
    sources = [FileSource(path) for path in files]
    norm = protocol("norm")
    with live(node_codec(norm, config)(), group, iface, ttl, secrets.randbits(64)) as session:
        instance = secrets.randbelow(0xFFFF) + 1
        place = Node(norm, config, node or session.address_number, machine.Group(group), instance)
        return _Sending(session, place, sources, as_json).run(longest)


class _Sending:
    def __init__(self, session: Live, node: Node, sources: list[FileSource], as_json: bool) -> None:
        self.session = session
        self.config = node.config
        self.sources = sources
        jobs = [Job(0.0, Content(source, os.fsencode(source.path.name))) for source in sources]
        self.program = SenderProgram(node, jobs, self._on_event)
        self.says = TransferReporter("sending", as_json, self._measure)

    def run(self, timeout: float) -> int:
        begin, hasher = time.monotonic(), Hasher()
        digests = [hasher.hash(os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)) for source in self.sources]
        with self.says:
            self.session.every(0.2, self.says.tick)
            ending = self.session.play(self.program, timeout)
        if ending.word != FINISHED:
            hasher.stop()
        found = hasher.results(digests, timeout - (time.monotonic() - begin))
        hasher.close()
        rows = [file_row(source.path.name, source.size, digest) for source, digest in zip(self.sources, found, strict=True)]
        ok = self.program.finished() and not self.program.failures
        self._conclude(ok, ending.word, rows, ending.seconds)
        return 130 if ending.interrupted else int(not ok)

    def _on_event(self, event: Event) -> None:
        self.says.event(event, self.session.host.now)
        if self.program.finished():
            self.session.stop()

    def _counts(self) -> dict[str, int]:
        return self.program.machine.counts() if self.program.machine else {}

    def _measure(self) -> TransferStatus:
        counts = self._counts()
        total = sum(source.size for source in self.sources)
        return TransferStatus(
            min(total, counts.get("data_sent", 0) * self.config.segment), total, 0.0, counts.get("nacks_received", 0)
        )

    def _conclude(self, ok: bool, word: str, rows: list[dict[str, Any]], seconds: float) -> None:
        counts = self._counts()
        last = summary(ok=ok, files=rows, seconds=seconds, loss=0.0, sent=counts, cpu=time.process_time())
        if self.says.as_json:
            self.says.object("summary", **last, **refusals(self.session.host.faults))
            return
        if told := refusals_told(self.session.host.faults):
            self.says.line(told)
        for row in rows:
            self.says.line(f"{row['sha256'] or UNKNOWN_DIGEST}  {row['name']}  {format_size(row['size'])}")
        for failure in self.program.failures:
            self.says.line(f"failed: {failure}")
        what = f"{last['objects']} files, {format_size(last['bytes'])}"
        how = f"{format_duration(round(seconds, 3))} at {format_rate(self.config.rate)}"
        heard = f"{last['nacks_received']} NACKs, {last['repairs']} repairs"
        self.says.line(f"{'sent' if ok else word}: {what} in {how}; {heard}")
