"""Read the trace of a run: packets with their receptions and losses, decisions, and events."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from protocols.errors import UsageError
from sim.tracer import FORMAT
from topologies.input_file import open_input

__all__ = ["LostCopy", "Trace", "TraceEvent", "TracedPacket", "read_trace"]

NAME = "trace.jsonl"
_LONGEST = 1_000_000


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


def read_trace(run: Path) -> Trace:
    """Read the trace in a run's folder or a file; UsageError if there is no valid trace."""
    path = run / NAME if run.is_dir() else run
    try:
        with open(open_input(path), encoding="utf-8") as file:
            return _gathered(_rows(iter(lambda: file.readline(_LONGEST), ""), path))
    except FileNotFoundError as error:
        raise UsageError(
            f"{path}: there is no trace; record one: mcastlab run SCENARIO.yaml --out RUN --set trace=true"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: is no whole trace of this version ({FORMAT})") from error


def _rows(lines: Iterator[str], path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = "is not JSON" if len(line) < _LONGEST else f"has more than {_LONGEST:,} characters"
            raise UsageError(f"{path}: line {number} {what}") from error
        if number == 1 and (not isinstance(row, dict) or row.get("format") != FORMAT):
            raise UsageError(f"{path}: is not a trace; its first line has no format {FORMAT!r}")
        yield row


def _gathered(rows: Iterator[dict[str, Any]]) -> Trace:
    trace = Trace(next(rows, {"hosts": None}))
    len(trace.hosts)
    for row in rows:
        time, node, name, data = float(row["time"]), str(row["node"]), row["name"], dict(row["data"])
        if not isfinite(time):
            raise ValueError("time is not finite")
        trace.end = time
        if name == "packet_sent":
            shown = str(data["kind"]), str(data.get("brief", "")), bool(data.get("repair", False)), str(data["to"])
            trace.packets[data["packet"]] = TracedPacket(data["packet"], time, node, *shown)
        elif name in ("packet_received", "packet_dropped"):
            # The sender of this packet is not traced.
            packet = trace.packets.get(data["packet"])
            if packet is None:
                continue
            if name == "packet_received":
                packet.received[node] = time
            else:
                packet.missed.append(LostCopy(time, node, str(data["link"]), str(data["reason"])))
        elif name != "end":
            trace.decisions.append(TraceEvent(time, node, name, data))
    return trace
