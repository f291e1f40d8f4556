"""`mcastlab recv`: receive files from a multicast group on a real network."""

import os
import secrets
import time
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import HIGHEST_NODE, Group, Iface, Json, KeyFile, NodeId, check_node, norm_config, seconds
from experiments.output.transfer_reporter import TransferReporter, TransferStatus, file_row, summary
from experiments.running.authentication import node_codec, refusals, refusals_told
from experiments.running.files import Folder, Stored
from experiments.running.live import Live, live
from experiments.running.program import Node, ReceiverProgram
from protocols import machine
from protocols.events import ObjectAborted, ObjectReceived
from protocols.machine import Event
from protocols.registry import protocol
from protocols.rng import key_of
from topologies.units import format_duration, format_fraction, format_size

__all__ = ["recv"]


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
    as_json: Json = False,
) -> int:
    """Receive files from a multicast group by NORM into a folder, until --count, --timeout or Ctrl-C.

    A file has a temporary name until it is complete. A number is appended to a name that exists, unless --force is given.
    Exit code 0: all requested files were received; 1: not; 130: interrupted.
    """
    check_node(node)
    longest = seconds("--timeout", timeout)
    norm, config = protocol("norm"), norm_config(key_file=str(key_file or ""))
    with live(node_codec(norm, config)(), group, iface, 1, secrets.randbits(64)) as session:
        own = node or _own_node(session)
        place = Node(norm, config, own, machine.Group(group))
        return _Receiving(session, place, directory, force=force, count=count, as_json=as_json).run(longest)


def _own_node(session: Live) -> int:
    # The process id gives several programs on one machine different node ids.
    return key_of(session.address_number, os.getpid()) % HIGHEST_NODE + 1


class _Receiving:
    def __init__(self, session: Live, node: Node, directory: Path, *, force: bool, count: int | None, as_json: bool) -> None:
        self.session = session
        self.count = count
        self.stored: list[Stored] = []
        self.opened = 0
        self.folder = Folder(directory, force=force, on_stored=self.stored.append)
        self.program = ReceiverProgram(node, self.folder.sink, count, self._on_event)
        self.says = TransferReporter("receiving", as_json, self._measure)

    def run(self, timeout: float) -> int:
        try:
            with self.says:
                self.session.every(0.2, self.says.tick)
                ending = self.session.play(self.program, timeout)
        finally:
            unfinished = len(self.folder.unfinished)
            self.folder.close()
        ok = not unfinished and not self.program.aborted and len(self.stored) >= (self.count or 1)
        if self.count is not None:
            ok = len(self.stored) >= self.count
        self._conclude(ok, ending.seconds)
        return 130 if ending.interrupted else int(not ok)

    def _on_event(self, event: Event) -> None:
        self.says.event(event, self.session.host.now)
        if isinstance(event, ObjectReceived):
            self._tell(self.stored[-1])
        if isinstance(event, ObjectAborted):
            self.says.line(f"lost: object {event.object_id} of sender {event.sender} ({event.reason})")
        if self.program.finished():
            self.session.stop()

    def _tell(self, stored: Stored) -> None:
        renamed = stored.name != stored.asked
        if self.says.as_json:
            named = {"name": stored.name, "asked": stored.asked, "renamed": renamed, "size": stored.size}
            self.says.object("file_stored", sender=stored.sender, object_id=stored.object_id, **named)
        else:
            note = f" ({stored.asked} was taken)" if renamed else ""
            self.says.line(f"{stored.name}{note}  {format_size(stored.size)}")

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

    def _conclude(self, ok: bool, elapsed: float) -> None:
        counts, program = self._counts(), self.program
        rows = [file_row(item.name, item.size, item.digest.result()) for item in self.stored]
        seconds = elapsed
        if program.first_at is not None and program.last_at is not None:
            seconds = program.last_at - program.first_at
        loss = self._loss(counts)
        last = summary(ok=ok, files=rows, seconds=seconds, loss=loss, sent=counts, cpu=time.process_time())
        if self.says.as_json:
            self.says.object("summary", **last, **refusals(self.session.host.faults))
            return
        if told := refusals_told(self.session.host.faults):
            self.says.line(told)
        for row in rows:
            self.says.line(f"{row['sha256']}  {row['name']}")
        wanted = f" of {self.count}" if self.count else ""
        self.says.line(
            f"received {len(rows)}{wanted} files, {format_size(last['bytes'])} in {format_duration(round(seconds, 3))}"
            f" ({last['goodput_mbit_s']:.2f} Mbit/s); loss {format_fraction(round(loss, 4))}, {last['nacks_sent']} NACKs"
        )
