"""`mcastlab recv`: receive files from a multicast group on a real network."""

import time
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.network_options import Group, Iface, Reuse, Sources, Tos, Ttl, receiving
from experiments.commands.options import (
    Brief,
    Congestion,
    FairTo,
    FeedbackMode,
    Json,
    KeyFile,
    Metrics,
    NodeId,
    Stats,
    membership,
    norm_config,
    time_limit,
)
from experiments.output.counted import counted
from experiments.output.printer import View
from experiments.output.transfer_reporter import UNKNOWN_DIGEST, TransferReporter, TransferStatus, file_row, summary
from experiments.running.authentication import refusals, refusals_told
from experiments.running.folder import Folder, Stored
from experiments.running.hashing import digest_of
from experiments.running.live import Live, live
from experiments.running.live_statistics import WantedStatistics
from experiments.running.names import safe_name
from experiments.session.events import ContentReceived, ObjectRefused
from experiments.session.membership import Membership
from experiments.session.session import Session
from protocols.events import InfoReceived, ObjectAborted, ObjectReceived, ObjectsAborted
from protocols.machine import Event
from protocols.norm.host_receiver import NormHostReceiver
from topologies.units import format_duration, format_fraction, format_size

__all__ = ["recv"]

LONGEST_WAIT = 1.0
"""Seconds for which a receiver that has all files waits for a sender that goes on with other files."""
POLL = 0.01
"""Seconds between two checks whether it may end."""


def recv(
    *,
    group: Group,
    directory: Annotated[Path, typer.Option("--dir", help="Folder for the files; created if missing.", metavar="DIR")],
    iface: Iface = None,
    source: Sources = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    congestion: Congestion = "none",
    fair_to: FairTo = "reno",
    feedback: FeedbackMode = "multicast",
    count: Annotated[int | None, typer.Option(help="End after this number of files.", min=1, metavar="N")] = None,
    timeout: Annotated[
        str | None, typer.Option(help="End after this time.  (default: never)", metavar="TIME", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
    ttl: Ttl = None,
    tos: Tos = "0",
    reuse: Reuse = True,
    stats: Stats = None,
    metrics: Metrics = None,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Receive files from a multicast group by NORM into a folder, until --count, --timeout or Ctrl-C.

    A file has a temporary name until it is complete. A number is appended to a name that exists, unless --force is given.
    Exit code 0: all requested files were received; 1: not; 130: interrupted.
    """
    View.of(brief=brief, as_json=as_json)
    longest = time_limit("--timeout", timeout)
    wanted = WantedStatistics.of(stats, metrics)
    network = receiving(source, ttl=ttl, tos=tos, reuse=reuse)
    config = norm_config(key_file=str(key_file or ""), congestion=congestion, fair_to=fair_to, feedback=feedback)
    place = membership(config, group, iface, node, receives=True, network=network)
    stored: list[Stored] = []
    folder = Folder(directory, force=force, on_stored=stored.append, option="--dir")
    # A sender that only repeats its end is asked for its last object if a killed receiver may have missed that.
    config = replace(place.config, join="end" if folder.resumed else "middle")
    place = replace(place, protocol=replace(place.protocol, make_receiver=NormHostReceiver), config=config)
    with live() as runner:
        running = _Receiving(runner, place, folder, stored, wanted, count=count, brief=brief, as_json=as_json)
        return running.run(longest)


class _Receiving:
    def __init__(
        self,
        runner: Live,
        place: Membership,
        folder: Folder,
        stored: list[Stored],
        wanted: WantedStatistics,
        *,
        count: int | None,
        brief: bool,
        as_json: bool,
    ) -> None:
        self.runner = runner
        self.wanted = wanted
        self.count = count
        self.stored = stored
        self.folder = folder
        self.names: dict[tuple[int, int], str] = {}
        """(sender, object id) -> name of an unfinished file, as far as known."""
        self.session = Session(place, sends=False, folder=folder, files_only=False, streams=False, told=self._on_event)
        self.says = TransferReporter("receiving", as_json, self._measure, brief=brief, bar=wanted.interval is None)

    def run(self, timeout: float) -> int:
        try:
            with self.says:
                self._tell_removed()
                ending = self.runner.play(self._receive(), timeout)
                unfinished = self._tell_incomplete()
                self.folder.remove_unfinished()
                self.runner.wait(lambda: not self.stored or self.stored[-1].digest.done())
        finally:
            self.folder.stop_hashing()
            self.folder.close()
        lost = self.session.received.lost
        ok = not unfinished and not lost and len(self.stored) >= (self.count or 1)
        if self.count is not None:
            ok = len(self.stored) >= self.count
        self._conclude(ok, ending.seconds, lost, unfinished)
        return 130 if ending.interrupted else int(not ok)

    async def _receive(self) -> None:
        """Receive until the runner is stopped."""
        async with self.session as session:
            with self.wanted.told(
                self.runner, session.host, session.measures, as_json=self.says.as_json
            ) as self.says.statistics:
                self.runner.every(0.2, self.says.tick)
                await session.closed()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ContentReceived):
            self._tell_received(event)
            return
        if isinstance(event, ObjectRefused):
            self._tell_refused(event)
            return
        self.says.event(event, self.session.host.now)
        if isinstance(event, InfoReceived):
            self.names[event.sender, event.object_id] = safe_name(event.info, "")
        elif isinstance(event, ObjectAborted):
            self._tell_lost(event.sender, event.object_id, event.reason.removeprefix("sink: "))
        elif isinstance(event, ObjectsAborted):
            self._tell_all_lost(event)

    def _tell_received(self, event: ContentReceived) -> None:
        self.says.event(ObjectReceived(event.sender, event.object_id, event.size, event.info), self.session.host.now)
        self.names.pop((event.sender, event.object_id), None)
        if event.path is not None:
            self._tell(self.stored[-1])
        if self.session.received.objects == self.count:
            self.session.received.is_complete = True
            self._end(self.session.host.now)

    def _end(self, since: float) -> None:
        """End as soon as no sender may request an ACK any more; all files are complete `since` this time."""
        longest = LONGEST_WAIT if self.session.received.declined else inf
        if self.session.host.now < since + longest and self.session.is_awaited(since):
            self.runner.loop.call_later(POLL, self._end, since)
        else:
            self.runner.stop()

    def _tell_refused(self, event: ObjectRefused) -> None:
        if self.says.as_json:
            about = {"sender": event.sender, "object_id": event.object_id, "size": event.size}
            self.says.object("object_refused", **about, reason=event.reason)
        self._tell_lost(event.sender, event.object_id, event.reason)

    def _tell_lost(self, sender: int, object_id: int, reason: str) -> None:
        name = self.names.pop((sender, object_id), "")
        what = f"{name} (object {object_id} of sender {sender})" if name else f"object {object_id} of sender {sender}"
        self.says.problem(f"lost: {what}: {reason}")

    def _tell_all_lost(self, event: ObjectsAborted) -> None:
        ids = [(event.first + step) & 0xFFFF for step in range(event.count)]
        if self.names:
            for object_id in ids:
                self.names.pop((event.sender, object_id), None)
        self.says.problem(f"lost: objects {ids[0]} to {ids[-1]} of sender {event.sender}: {event.reason}")

    def _tell_incomplete(self) -> int:
        """Name the files that are not complete at the end, and return their number."""
        unfinished = len(self.folder.unfinished)
        for (sender, object_id), name in self.names.items() if unfinished else ():
            self.says.problem(f"incomplete: {name} (object {object_id} of sender {sender})")
        return unfinished

    def _tell_removed(self) -> None:
        if self.folder.removed:
            self.says.problem(
                f"removed {counted(self.folder.removed, 'file', more='unfinished')} of a receiver that was killed"
            )
            if self.says.as_json:
                self.says.object("unfinished_removed", files=self.folder.removed)

    def _tell(self, stored: Stored) -> None:
        renamed = stored.name != stored.asked
        if self.says.as_json:
            named = {"name": stored.name, "asked": stored.asked, "renamed": renamed, "size": stored.size}
            self.says.object("file_stored", sender=stored.sender, object_id=stored.object_id, **named)
        else:
            note = f" ({stored.asked} was taken)" if renamed else ""
            self.says.detail(f"{stored.name}{note}  {format_size(stored.size)}")

    def _loss(self, counts: dict[str, int]) -> float:
        lost = counts.get("data_lost", 0)
        return lost / (lost + counts.get("data_received", 0)) if lost else 0.0

    def _measure(self) -> TransferStatus:
        counts, unfinished = self.session.counts(), list(self.folder.unfinished)
        octets = self.session.received.octets
        done = octets + sum(sink.written for sink in unfinished)
        total = octets + sum(sink.size for sink in unfinished)
        return TransferStatus(done, total, self._loss(counts), counts.get("nacks_sent", 0))

    def _conclude(self, ok: bool, elapsed: float, lost: int, unfinished: int) -> None:
        counts, received = self.session.counts(), self.session.received
        rows = [file_row(item.name, item.size, digest_of(item.digest)) for item in self.stored]
        seconds = elapsed
        if received.first_at is not None and received.last_at is not None:
            seconds = received.last_at - received.first_at
        loss, errors, reason = self._loss(counts), self.session.host.faults["send_errors"], self.session.host.refusal[1]
        last = summary(
            ok=ok,
            files=rows,
            seconds=seconds,
            loss=loss,
            sent=counts,
            cpu=time.process_time(),
            refused=(errors, reason),
            objects_lost=lost,
            objects_incomplete=unfinished,
        )
        if self.says.as_json:
            self.says.object("summary", **last, **refusals(self.session.host.faults))
            return
        if told := refusals_told(self.session.host.faults):
            self.says.detail(told)
        for row in rows:
            self.says.detail(f"{row['sha256'] or UNKNOWN_DIGEST}  {row['name']}")
        missing = (f", {lost} lost" if lost else "") + (f", {unfinished} incomplete" if unfinished else "")
        refused = f"; {counted(errors, 'packet')} refused by the kernel ({reason})" if errors else ""
        size, goodput = format_size(last["bytes"]), f"{last['goodput_mbit_s']:.2f} Mbit/s"
        files = counted(len(rows), "file", self.count)
        self.says.line(
            f"received {files}{missing}, {size} in {format_duration(round(seconds, 3))} ({goodput});"
            f" loss {format_fraction(round(loss, 4))}, {counted(last['nacks_sent'], 'NACK')}{refused}"
        )
