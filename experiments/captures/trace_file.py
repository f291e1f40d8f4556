"""Read the trace of a run: packets with their receptions and losses, decisions, and events."""

import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from protocols.errors import UsageError
from sim.tracer import FORMAT
from topologies.input_file import open_input

__all__ = ["NAME", "LostCopy", "Trace", "TraceEvent", "TraceRow", "TracedPacket", "open_trace", "read_trace"]

TraceRow: TypeAlias = tuple[float, str, str, dict[str, Any]]
"""A line of a trace: time in seconds, node, name, and data."""

NAME = "trace.jsonl"
_LONGEST = 1_000_000
_NEEDED = {
    "packet_sent": {"packet", "kind", "to"},
    "packet_received": {"packet"},
    "packet_dropped": {"packet", "link", "reason"},
}
_RECEPTION = re.compile(r'\{"time":[^,]+,"node":"([^"\\]*)","name":"packet_received"')
"""The beginning of a reception as `sim.tracer` writes it; other spellings are read in full."""


@dataclass(slots=True)
class LostCopy:
    """A copy of a packet that was not delivered to `node` over a link."""

    time: float
    node: str
    link: str
    reason: str


@dataclass(slots=True)
class TracedPacket:
    """A sent packet, the time of each reception, and its lost copies."""

    number: int
    time: float
    node: str
    kind: str
    brief: str
    repair: bool
    to: str
    received: dict[str, float] = field(default_factory=dict)
    missed: list[LostCopy] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Kind and brief, as in `data 0.2.17`."""
        return f"{self.kind} {self.brief}".strip()


@dataclass(slots=True)
class TraceEvent:
    """A decision of a protocol machine, or an event delivered to the application."""

    time: float
    node: str
    name: str
    data: dict[str, Any]


@dataclass(slots=True)
class Trace:
    """A whole trace in order of time."""

    about: dict[str, Any]
    packets: dict[int, TracedPacket] = field(default_factory=dict)
    decisions: list[TraceEvent] = field(default_factory=list)
    end: float = 0.0

    @property
    def hosts(self) -> list[str]:
        """The traced hosts in topology order."""
        return [str(name) for name in self.about["hosts"]]

    @property
    def senders(self) -> list[str]:
        """The traced hosts that send content."""
        return [name for name in self.about.get("senders", ()) if name in self.about["hosts"]]

    def add(self, row: TraceRow) -> None:
        """Add a line; receptions and losses of packets whose sending is not in the trace are left out."""
        time, node, name, data = row
        self.end = time
        if name == "packet_sent":
            shown = str(data["kind"]), str(data.get("brief", "")), bool(data.get("repair", False)), str(data["to"])
            self.packets[data["packet"]] = TracedPacket(data["packet"], time, node, *shown)
        elif name in _NEEDED:
            packet = self.packets.get(data["packet"])
            if packet is None:
                return
            if name == "packet_received":
                packet.received[node] = time
            else:
                packet.missed.append(LostCopy(time, node, str(data["link"]), str(data["reason"])))
        elif name != "end":
            self.decisions.append(TraceEvent(time, node, name, data))


def read_trace(run: Path) -> Trace:
    """Read the trace in a run's folder or a file; UsageError if there is no valid trace."""
    with open_trace(run) as (about, rows):
        trace = Trace(about)
        for row in rows:
            trace.add(row)
        return trace


@contextmanager
def open_trace(run: Path, receptions_of: Collection[str] | None = None) -> Iterator[tuple[dict[str, Any], Iterator[TraceRow]]]:
    """Open a trace for reading line by line: the description of the run, and all rows; UsageError as from `read_trace`.

    With `receptions_of`, which may change while the rows are read, receptions by other hosts are passed over; this is several
    times faster than to read them.
    """
    path = run / NAME if run.is_dir() else run
    try:
        with open(open_input(path), encoding="utf-8") as file:
            lines = _lines(iter(lambda: file.readline(_LONGEST), ""), path, receptions_of)
            about = next(lines, {})
            if not isinstance(about.get("hosts"), list):
                raise _not_whole(path)
            yield about, _rows(lines, path)
    except FileNotFoundError as error:
        raise UsageError(
            f"{path}: there is no trace; record one: mcastlab run SCENARIO.yaml --out RUN --set trace=true"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text (byte {error.start})") from error


def _not_whole(path: Path) -> UsageError:
    return UsageError(f"{path}: is no whole trace of this version ({FORMAT})")


def _lines(lines: Iterator[str], path: Path, receptions_of: Collection[str] | None) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if receptions_of is not None:
            reception = _RECEPTION.match(line)
            if reception and reception[1] not in receptions_of:
                continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = "is not JSON" if len(line) < _LONGEST else f"has more than {_LONGEST:,} characters"
            raise UsageError(f"{path}: line {number} {what}") from error
        if number == 1 and (not isinstance(row, dict) or row.get("format") != FORMAT):
            raise UsageError(f"{path}: is not a trace; its first line has no format {FORMAT!r}")
        yield row


def _rows(lines: Iterator[dict[str, Any]], path: Path) -> Iterator[TraceRow]:
    for line in lines:
        try:
            time, node, name, data = float(line["time"]), str(line["node"]), str(line["name"]), dict(line["data"])
            whole = isfinite(time) and (name not in _NEEDED or data.keys() >= _NEEDED[name])
            hash(data.get("packet"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _not_whole(path) from error
        if not whole:
            raise _not_whole(path)
        yield time, node, name, data
