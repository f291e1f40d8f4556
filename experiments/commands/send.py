"""`mcastlab send`: send files to a multicast group on a real network."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.network_options import Df, Group, Iface, Loopback, Tos, Ttl, TxPort, transmitting
from experiments.commands.options import (
    Brief,
    Congestion,
    FairTo,
    Json,
    KeyFile,
    Metrics,
    NodeId,
    Stats,
    membership,
    norm_config,
    time_limit,
)
from experiments.commands.send_folder import send_folder
from experiments.output.counted import counted
from experiments.output.printer import View
from experiments.output.transfer_reporter import UNKNOWN_DIGEST, TransferReporter, TransferStatus, file_row, summary
from experiments.running.authentication import refusals, refusals_told
from experiments.running.files import FileSource
from experiments.running.hashing import Hasher
from experiments.running.live import FINISHED, Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.open_files import OpenFiles
from experiments.session.membership import Membership, check_node
from experiments.session.session import Session
from experiments.session.transmission import Transmission
from protocols.acknowledgement import AckRequest
from protocols.errors import ConfigError, TransferError, UsageError
from protocols.events import NodeAcknowledged, NodeUnacknowledged, ObjectAborted
from protocols.machine import Content, Event
from protocols.norm.config import NormConfig
from protocols.norm.tx_object import check_content
from topologies.units import format_duration, format_rate, format_size

__all__ = ["bytes_sent", "send"]

REPAIR_SHARE = 0.33
"""Share of the rate that repairs take while new content waits: who forges requests can't stop the rest."""
UNCONFIRMED = "sent, reception not confirmed"
GAVE_UP = "gave up"
AT_ONCE = 1024
"""Files that are queued at once, the next of them when few still wait: there are 65536 object ids."""
PATIENCE = 2.0
"""Seconds for which the kernel may refuse every packet."""


def send(
    *,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Files to send, in this order.", show_default=False)
    ] = None,
    group: Group,
    iface: Iface = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    rate: Annotated[str, typer.Option(help="Transmission rate of UDP payload.", metavar="RATE")] = "10Mbit",
    congestion: Congestion = "none",
    fair_to: FairTo = "reno",
    rate_min: Annotated[
        str | None,
        typer.Option(
            help="Lowest rate with --congestion.  (default: a segment per second)", metavar="RATE", show_default=False
        ),
    ] = None,
    rate_max: Annotated[
        str | None, typer.Option(help="Highest rate with --congestion, not --rate.", metavar="RATE", show_default=False)
    ] = None,
    segment: Annotated[str, typer.Option(help="Content bytes in a packet.", metavar="SIZE")] = "1400",
    block: Annotated[int, typer.Option(help="Source segments per FEC block.", metavar="N")] = 64,
    parity: Annotated[
        int | None, typer.Option(help="Parity segments per block.  (default: 16; 0 with --fec 0)", metavar="N")
    ] = None,
    auto_parity: Annotated[int, typer.Option(help="Parity segments per block sent without a request.", metavar="N")] = 0,
    fec: Annotated[int, typer.Option(help="FEC encoding id.", metavar="5|129|2|0")] = 5,
    fec_m: Annotated[int, typer.Option(help="Bits of a symbol element with --fec 2.", metavar="8|16")] = 8,
    grtt: Annotated[str, typer.Option(help="Initial estimate of the group round-trip time.", metavar="TIME")] = "50ms",
    backoff: Annotated[int, typer.Option(help="Back-off factor K of the receivers.", metavar="K")] = 4,
    gsize: Annotated[int, typer.Option(help="Estimate of the group size.", metavar="N")] = 1000,
    robust: Annotated[int, typer.Option(help="Robust factor: repetitions of the final FLUSH.", metavar="N")] = 20,
    ttl: Ttl = None,
    tos: Tos = "0",
    df: Df = None,
    loopback: Loopback = True,
    tx_port: TxPort = 0,
    ack: Annotated[bool, typer.Option("--ack", help="Ask all receivers to confirm that they have everything.")] = False,
    expect: Annotated[
        int | None,
        typer.Option(help="Number of receivers that have to confirm; implies --ack.", min=1, metavar="N", show_default=False),
    ] = None,
    acker: Annotated[
        list[int] | None, typer.Option(help="Node id of a receiver that has to confirm; repeatable.", metavar="NODE")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Give up after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    watch: Annotated[
        Path | None,
        typer.Option("--watch", help="Send what appears in a folder, each file once.", metavar="DIR", show_default=False),
    ] = None,
    then: Annotated[
        str, typer.Option("--then", help="With --watch: run this after each file, its path is $1.", metavar="COMMAND")
    ] = "",
    state: Annotated[
        Path | None,
        typer.Option("--state", help="With --watch: what was sent.  (default: DIR/.mcastlab-sent.json)", metavar="FILE"),
    ] = None,
    stats: Stats = None,
    metrics: Metrics = None,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Send files to a multicast group by NORM, until no receiver requests repairs; or what appears in a folder, for ever.

    Exit code 0: all files were sent and flushed; 1: a file could not be sent or was changed meanwhile, no packet went out,
    --timeout expired, or who has to confirm did not (--ack: everybody that was heard, and at least one); 2: bad input.
    """
    config = norm_config(
        rate=rate,
        rate_min=rate_min,
        rate_max=rate_max,
        congestion=congestion,
        fair_to=fair_to,
        segment=segment,
        block=block,
        parity=parity if parity is not None else 0 if fec == 0 else 16,
        auto_parity=auto_parity,
        fec=fec,
        fec_m=fec_m,
        grtt=grtt,
        backoff=backoff,
        gsize=gsize,
        robust=robust,
        repair_share=REPAIR_SHARE,
        key_file=str(key_file or ""),
    )
    View.of(brief=brief, as_json=as_json)
    network = transmitting(ttl=ttl, tos=tos, df=df, loopback=loopback, tx_port=tx_port)
    place = membership(config, group, iface, node, receives=False, network=network)
    longest = time_limit("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    acks = _acks(ack, expect, acker or [])
    if watch is not None:
        if files:
            raise UsageError(f"FILE: value {str(files[0])!r} is not allowed; none with --watch")
        return send_folder(place, watch, state, then, acks, wanted, longest, brief=brief, as_json=as_json)
    sources = _sources(files or [], "--then" if then else "--state" if state else "", config)
    with live() as runner:
        return _Sending(runner, place, sources, acks, wanted, brief=brief, as_json=as_json).run(longest)


def _content_of(source: FileSource) -> Content:
    """Return a file as an object whose information is its name."""
    return Content(source, os.fsencode(source.path.name))


def _sources(files: list[Path], watching: str, config: NormConfig) -> list[FileSource]:
    """Return the content of files; `watching` names an option that is allowed only when a folder is watched.

    UsageError for a file that NORM can't carry with these parameters, before any is sent.
    """
    if not files:
        raise UsageError("FILE: is missing; at least one, or --watch DIR")
    if watching:
        raise UsageError(f"{watching}: is not allowed; only with --watch")
    opened = OpenFiles()
    sources = [FileSource(path, opened) for path in files]
    for source in sources:
        try:
            check_content(config, _content_of(source))
        except UsageError as error:
            option = "--" if isinstance(error, ConfigError) else ""
            raise UsageError(f"{source.path}: {option}{error}") from error
    return sources


def _acks(ack: bool, expect: int | None, ackers: list[int]) -> AckRequest | None:
    """Return the request for ACKs; None without one."""
    for each in ackers:
        check_node(each, "--acker")
    if not (ack or expect or ackers):
        return None
    return AckRequest(tuple(ackers), bool(ack or expect), expect or 0, replaces_flush=True)


def bytes_sent(sizes: Sequence[int], segment: int, data: int) -> int:
    """Estimate how many bytes of files of these sizes are in the first `data` segments: small files do not fill theirs."""
    segments = sum(-(-size // segment) for size in sizes)
    return sum(sizes) * min(data, segments) // max(1, segments)


class _Sending:
    def __init__(
        self,
        runner: Live,
        place: Membership,
        sources: list[FileSource],
        acks: AckRequest | None,
        wanted: WantedStatistics,
        *,
        brief: bool,
        as_json: bool,
    ) -> None:
        self.runner = runner
        self.acks = acks
        self.acknowledged: list[int] = []
        self.missing: list[int] = []
        self.wanted = wanted
        self.config = place.config
        self.sources = sources
        self.failed: dict[int, str] = {}
        """Index of a file -> why it was not sent."""
        self.has_failures = False
        """Whether the sender has reported failures since the last look at all files."""
        self.refused_since: float | None = None
        self.session = Session(place, receives=False, told=self._on_event)
        self.sent: list[Transmission] = []
        self.digests: Future[list[str | None]] = Future()
        """SHA-256 of each file."""
        self.says = TransferReporter("sending", as_json, self._measure, brief=brief, bar=wanted.interval is None)

    def run(self, timeout: float) -> int:
        begin, hasher = time.monotonic(), Hasher()
        with self.says:
            ending = self.runner.play(self._send(hasher), timeout)
            if ending.word == FINISHED:
                self.runner.wait(self.digests.done, timeout - (time.monotonic() - begin))
            hasher.stop()
            hasher.close()
            found = self.digests.result() if self.digests.done() else [None] * len(self.sources)
            self._note_failures()
            self._check_sources()
        rows = [file_row(source.path.name, source.size, digest) for source, digest in zip(self.sources, found, strict=True)]
        ok = ending.word == FINISHED and not self.failed and not self.session.host.refusal[0] and self._is_confirmed()
        self._conclude(ok, ending.word, rows, ending.seconds)
        return 130 if ending.interrupted else int(not ok)

    async def _send(self, hasher: Hasher) -> None:
        """Send and hash the files; each that fails is noted, and the others are sent."""
        async with self.session as session:
            self._queue(0)
            told = self.wanted.told(self.runner, session.host, session.measures, as_json=self.says.as_json)
            with told as self.says.statistics:
                self.digests = hasher.hash_all(source.open for source in self.sources)
                self.runner.every(0.2, self._tick)
                for first in range(AT_ONCE, len(self.sources), AT_ONCE):
                    await session.room()
                    self._queue(first)
                if self.acks is not None:
                    with suppress(TransferError):
                        await session.sent(self.sent[-1], by=self.acks)
                with suppress(TransferError):
                    await session.sent()

    def _queue(self, first: int) -> None:
        """Queue the files from number `first` on, so many at once that the sender has further ones, and no two have one id."""
        for source in self.sources[first : first + AT_ONCE]:
            self.sent.append(self.session.submit(_content_of(source), str(source.path), source.close))

    def _on_event(self, event: Event) -> None:
        self.says.event(event, self.session.host.now)
        if isinstance(event, NodeAcknowledged):
            self.acknowledged.append(event.node)
        elif isinstance(event, NodeUnacknowledged):
            self.missing.append(event.node)
        elif isinstance(event, ObjectAborted):
            self.has_failures = True

    def _is_confirmed(self) -> bool:
        """Return whether every receiver whose confirmation is required has confirmed."""
        if self.acks is None:
            return True
        return not self.missing and len(self.acknowledged) >= max(1, self.acks.expected)

    def _is_sent(self, number: int) -> bool:
        """Return whether every segment of a file was sent once."""
        return number not in self.failed and number < len(self.sent) and self.sent[number].state in ("sent", "done")

    def _fail(self, number: int, why: str) -> None:
        if number not in self.failed:
            self.failed[number] = why
            self.says.problem(f"failed: {self.sources[number].path}: {why}")

    def _note_failures(self) -> None:
        """Note all files that have failed meanwhile: one look for many, since thousands may fail at once."""
        if self.has_failures:
            self.has_failures = False
            for number, item in enumerate(self.sent):
                if item.state == "failed":
                    self._fail(number, item.reason)

    def _check_sources(self) -> None:
        """Note which files have changed since they were first looked at; what was sent of them may be a mixture."""
        for number, source in enumerate(self.sources):
            try:
                source.check()
            except OSError as error:
                self._fail(number, str(error))

    def _tick(self) -> None:
        """Draw the progress, and give up when the kernel takes no packets any more."""
        self._note_failures()
        self.says.tick()
        now, (packets, reason) = self.session.host.now, self.session.host.refusal
        if not packets:
            self.refused_since = None
        elif self.refused_since is None:
            self.refused_since = now
            self.says.problem(f"the kernel refuses to send: {reason}")
        elif now - self.refused_since >= PATIENCE:
            self.runner.stop(GAVE_UP)

    def _measure(self) -> TransferStatus:
        counts = self.session.counts()
        sizes = [source.size for source in self.sources]
        done = bytes_sent(sizes, self.config.segment, counts.get("data_sent", 0))
        return TransferStatus(done, sum(sizes), 0.0, counts.get("nacks_received", 0))

    def _result(self, ok: bool) -> str:
        """Return what became of a transmission that came to its end."""
        if self.failed:
            return f"{len(self.failed)} failed"
        if self.acks is None:
            return UNCONFIRMED if ok else GAVE_UP
        known = f"confirmed by {len(self.acknowledged)}"
        wanted = max(self.acks.expected, len(self.acknowledged) + len(self.missing), 1)
        return f"{known if self._is_confirmed() else f'{known} of {wanted}'} receiver{'s' if wanted > 1 else ''}"

    def _conclude(self, ok: bool, word: str, rows: list[dict[str, Any]], seconds: float) -> None:
        counts, errors, reason = self.session.counts(), self.session.host.faults["send_errors"], self.session.host.refusal[1]
        feedback = counts.get("nacks_received", 0) + counts.get("acks_received", 0)
        last = summary(
            ok=ok,
            files=rows,
            whole=[row for number, row in enumerate(rows) if self._is_sent(number)],
            seconds=seconds,
            loss=0.0,
            sent=counts,
            cpu=time.process_time(),
            refused=(errors, reason),
            confirmed=None if self.acks is None else sorted(self.acknowledged),
            unconfirmed=None if self.acks is None else sorted(self.missing),
            feedback_received=feedback,
            failures={self.sources[number].path.name: why for number, why in sorted(self.failed.items())},
        )
        if self.says.as_json:
            self.says.object("summary", **last, **refusals(self.session.host.faults))
            return
        if told := refusals_told(self.session.host.faults):
            self.says.detail(told)
        for row in rows:
            self.says.detail(f"{row['sha256'] or UNKNOWN_DIGEST}  {row['name']}  {format_size(row['size'])}")
        for node in sorted(self.missing):
            self.says.line(f"not confirmed by node {node}")
        result = self._result(ok) if word == FINISHED else word
        what = f"{counted(last['objects'], 'file')}, {format_size(last['bytes'])}"
        if last["objects"] < len(rows):
            status = self._measure()
            done = status.done if word != FINISHED else last["bytes"]
            what = f"{counted(last['objects'], 'file', len(rows))}, {format_size(done)} of {format_size(status.total)}"
        controlled = self.config.congestion != "none"
        pace = "with congestion control" if controlled else f"at {format_rate(self.config.rate)}"
        how = f"{format_duration(round(seconds, 3))} {pace}"
        heard = f"{counted(last['nacks_received'], 'NACK')}, {counted(last['repairs'], 'repair')}"
        heard += "" if feedback else "; no receiver answered"
        refused = f"; {counted(errors, 'packet')} refused by the kernel ({reason})" if errors else ""
        self.says.line(f"{result}: {what} in {how}; {heard}{refused}")
