"""`mcastlab recv`: receive files from a multicast group on a real network."""

import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import (
    HIGHEST_NODE,
    Brief,
    Group,
    Iface,
    Json,
    KeyFile,
    NodeId,
    check_node,
    norm_config,
    seconds,
)
from experiments.output.printer import View
from experiments.output.transfer_reporter import UNKNOWN_DIGEST, TransferReporter, TransferStatus, file_row, summary
from experiments.running.authentication import node_codec, refusals, refusals_told
from experiments.running.folder import Folder, Stored
from experiments.running.hashing import digest_of
from experiments.running.live import Live, live
from experiments.running.names import safe_name
from experiments.running.program import Node, ReceiverProgram
from protocols import machine
from protocols.acknowledgement import AwaitedReceiver
from protocols.events import InfoReceived, ObjectAborted, ObjectReceived, ObjectsAborted
from protocols.machine import Event, Offer, Sink
from protocols.norm.host_receiver import NormHostReceiver
from protocols.norm.receiver import NormReceiver
from protocols.registry import protocol
from protocols.rng import key_of
from topologies.units import format_duration, format_fraction, format_size

__all__ = ["own_node", "recv"]

LONGEST_END = 10.0
"""Seconds for which a receiver that has all files waits for the end of the transmission, so that it can confirm them."""
LONGEST_WAIT = 1.0
"""The same when the sender goes on with other files."""
POLL = 0.01


def recv(
    *,
    group: Group,
    directory: Annotated[Path, typer.Option("--dir", help="Folder for the files; created if missing.", metavar="DIR")],
    iface: Iface = None,
    node: NodeId = None,
    key_file: KeyFile = None,
    count: Annotated[int | None, typer.Option(help="End after this number of files.", min=1, metavar="N")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="End after so many seconds.  (default: never)", metavar="S", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of the same name.")] = False,
    brief: Brief = False,
    as_json: Json = False,
) -> int:
    """Receive files from a multicast group by NORM into a folder, until --count, --timeout or Ctrl-C.

    A file has a temporary name until it is complete. A number is appended to a name that exists, unless --force is given.
    Exit code 0: all requested files were received; 1: not; 130: interrupted.
    """
    View.of(brief=brief, as_json=as_json)
    check_node(node)
    longest = seconds("--timeout", timeout)
    norm = replace(protocol("norm"), make_receiver=NormHostReceiver)
    config = norm_config(key_file=str(key_file or ""))
    with live(node_codec(norm, config)(), group, iface, 1, secrets.randbits(64)) as session:
        stored: list[Stored] = []
        folder = Folder(directory, force=force, on_stored=stored.append)
        # A sender that only repeats its end is asked for its last object if a killed receiver may have missed that.
        config = replace(config, join="end" if folder.resumed else "middle")
        place = Node(norm, config, node or own_node(session), machine.Group(group))
        return _Receiving(session, place, folder, stored, count=count, brief=brief, as_json=as_json).run(longest)


def own_node(session: Live) -> int:
    """Return a node id for a program on this interface, other than those of other programs there."""
    # The process id gives several programs on one machine different node ids.
    return key_of(session.address_number, os.getpid()) % HIGHEST_NODE + 1


class _Receiving:
    def __init__(
        self,
        session: Live,
        node: Node,
        folder: Folder,
        stored: list[Stored],
        *,
        count: int | None,
        brief: bool,
        as_json: bool,
    ) -> None:
        self.session = session
        self.count = count
        self.stored = stored
        self.folder = folder
        self.refused = 0
        self.finished_at: float | None = None
        """When the last file asked for was received."""
        self.declined = False
        """Whether another file was offered since."""
        self.names: dict[tuple[int, int], str] = {}
        """(sender, object id) -> name of an unfinished file, as far as known."""
        self.program = ReceiverProgram(node, self._sink, count, self._on_event)
        self.says = TransferReporter("receiving", as_json, self._measure, brief=brief)

    def run(self, timeout: float) -> int:
        try:
            with self.says:
                self._tell_removed()
                self.session.every(0.2, self._tick)
                ending = self.session.play(self.program, timeout)
                unfinished = len(self.folder.unfinished)
                self.folder.remove_unfinished()
                self.session.wait(lambda: not self.stored or self.stored[-1].digest.done())
        finally:
            self.folder.stop_hashing()
            self.folder.close()
        lost = self.refused + self.program.aborted
        ok = not unfinished and not lost and len(self.stored) >= (self.count or 1)
        if self.count is not None:
            ok = len(self.stored) >= self.count
        self._conclude(ok, ending.seconds, lost)
        return 130 if ending.interrupted else int(not ok)

    def _on_event(self, event: Event) -> None:
        self.says.event(event, self.session.host.now)
        if isinstance(event, InfoReceived):
            self.names[event.sender, event.object_id] = safe_name(event.info, "")
        elif isinstance(event, ObjectReceived):
            self.names.pop((event.sender, event.object_id), None)
            self._tell(self.stored[-1])
        elif isinstance(event, ObjectAborted):
            self._tell_lost(event.sender, event.object_id, event.reason.removeprefix("sink: "))
        elif isinstance(event, ObjectsAborted):
            self._tell_all_lost(event)
        self._settle()
        if self.program.finished() and self.finished_at is None:
            self.finished_at = self.session.host.now
            self._end()

    def _sink(self, offer: Offer) -> Sink | None:
        if self.finished_at is None:
            return self.folder.sink(offer)
        self.declined = True
        return None

    def _end(self) -> None:
        """End as soon as no sender may ask whether the files have arrived."""
        machine, now = self.program.machine, self.session.host.now
        assert self.finished_at is not None
        longest = LONGEST_WAIT if self.declined else LONGEST_END
        if now < self.finished_at + longest and isinstance(machine, AwaitedReceiver) and machine.is_awaited(now):
            self.session.loop.call_later(POLL, self._end)
        else:
            self.session.stop()

    def _tick(self) -> None:
        self.says.tick()
        self._settle()
        self.folder.rest()

    def _settle(self) -> None:
        """Tell what the folder has refused, and tell the machine what the folder has given up."""
        while self.folder.refused:
            refused = self.folder.refused.popleft()
            offer, self.refused = refused.offer, self.refused + 1
            if self.says.as_json:
                about = {"sender": offer.sender, "object_id": offer.object_id, "size": offer.size}
                self.says.object("object_refused", **about, reason=refused.reason)
            self._tell_lost(offer.sender, offer.object_id, refused.reason)
        while self.folder.given_up:
            refused = self.folder.given_up.popleft()
            assert isinstance(self.program.machine, NormReceiver)
            give_up = self.program.machine.abandon
            self.session.host.call(give_up, refused.offer.sender, refused.offer.object_id, refused.reason)

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

    def _tell_removed(self) -> None:
        if self.folder.removed:
            self.says.problem(f"removed {self.folder.removed} unfinished files of a receiver that was killed")
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

    def _counts(self) -> dict[str, int]:
        return self.program.machine.counts() if self.program.machine else {}

    def _loss(self, counts: dict[str, int]) -> float:
        lost = counts.get("data_lost", 0)
        return lost / (lost + counts.get("data_received", 0)) if lost else 0.0

    def _measure(self) -> TransferStatus:
        counts, unfinished = self._counts(), list(self.folder.unfinished)
        done = self.program.octets + sum(sink.written for sink in unfinished)
        total = self.program.octets + sum(sink.size for sink in unfinished)
        return TransferStatus(done, total, self._loss(counts), counts.get("nacks_sent", 0))

    def _conclude(self, ok: bool, elapsed: float, lost: int) -> None:
        counts, program = self._counts(), self.program
        rows = [file_row(item.name, item.size, digest_of(item.digest)) for item in self.stored]
        seconds = elapsed
        if program.first_at is not None and program.last_at is not None:
            seconds = program.last_at - program.first_at
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
        )
        if self.says.as_json:
            self.says.object("summary", **last, **refusals(self.session.host.faults))
            return
        if told := refusals_told(self.session.host.faults):
            self.says.detail(told)
        for row in rows:
            self.says.detail(f"{row['sha256'] or UNKNOWN_DIGEST}  {row['name']}")
        wanted = f" of {self.count}" if self.count else ""
        missing = f", {lost} lost" if lost else ""
        refused = f"; {errors} packets refused by the kernel ({reason})" if errors else ""
        size, goodput = format_size(last["bytes"]), f"{last['goodput_mbit_s']:.2f} Mbit/s"
        self.says.line(
            f"received {len(rows)}{wanted} files{missing}, {size} in {format_duration(round(seconds, 3))} ({goodput});"
            f" loss {format_fraction(round(loss, 4))}, {last['nacks_sent']} NACKs{refused}"
        )
