"""Show statistics of a session as they change: a table on a terminal, else lines of text, or JSON lines."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from experiments.output.budget import Column, Table, number
from experiments.output.printer import View, draw
from experiments.output.safe_text import printable
from protocols.snapshot import MEASURES, Measure, Rates, Snapshot, measure_of, walk
from topologies.units import format_duration

__all__ = ["StatisticsView", "line_of", "tables_of"]

HEADLINES = (
    "bytes_sent",
    "bytes_received",
    "messages_published",
    "messages_received",
    "repairs_sent",
    "nacks_received",
    "nacks_sent",
    "nacks_suppressed",
    "nacks_heard",
    "parity_used",
    "objects_sent",
    "objects_received",
    "objects_aborted",
    "grtt",
)
"""Counters of a session's line; those that are zero or absent are left out."""
MOST_NAMED = 3
"""Parts of one kind that a line names; a table has as many as fit on the terminal."""
_AROUND, _FEWEST = 9, 3
"""Lines of the terminal that are no rows of parts, and the fewest rows of a table of parts."""
_COUNTS = (Column("", rank=0), Column("per second", rank=0, right=True), Column("total", rank=0, right=True))
_SPELT = {"grtt": "GRTT", "rtt": "RTT", "nacks": "NACKs", "acks": "ACKs"}
_PREFIXES = ("", "k", "M", "G", "T")


class StatisticsView:
    """Writes each snapshot it is given to `out`. `as_json`: as one JSON object in a line.

    On a terminal it draws a table in place of the last one; whoever else writes there calls `pause` before and `go_on` after.
    """

    def __init__(self, out: TextIO, measures: Mapping[str, Measure] = MEASURES, *, as_json: bool = False) -> None:
        self._out = out
        self._measures = measures
        self._rates = Rates(measures)
        self._as_json = as_json
        self._console = Console(file=out, highlight=False)
        self._live: Live | None = None

    def show(self, now: float, snapshot: Snapshot) -> None:
        """Show a snapshot made at `now` seconds, with the rates since the one before."""
        rates = self._rates.add(now, snapshot)
        if not snapshot.parts:
            # No machine runs yet; what the first one counts is compared with nothing.
            return
        if self._as_json:
            told = {"event": "statistics", "time": round(now, 6), "statistics": snapshot.plain(), "rates": rates.plain()}
            self._write(json.dumps(told))
        elif not self._console.is_terminal:
            self._write(line_of(now, snapshot, rates, self._measures))
        else:
            self._draw(now, snapshot, rates)

    def pause(self) -> None:
        """Leave the table as it is, so that lines can be written below it."""
        if self._live is not None:
            self._live.stop()

    def go_on(self) -> None:
        """Draw the table again, below what was written."""
        if self._live is not None:
            self._live.start()

    def close(self) -> None:
        """Leave the last table on the terminal."""
        self.pause()
        self._live = None

    def _write(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def _draw(self, now: float, snapshot: Snapshot, rates: Snapshot) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        width, encoding = self._console.width, self._console.encoding
        drawn: list[RenderableType] = []
        for table in tables_of(snapshot, rates, self._measures, self._console.height):
            drawn += [Text(printable(table.title))] if table.title else []
            drawn += [draw(table, View(), width, encoding)[0]] if table.rows else []
            drawn += [Text(table.note)] if table.note else []
        self._live.update(Group(Text(f"after {format_duration(round(now, 1))}"), *drawn), refresh=True)


def _sessions_of(snapshot: Snapshot, rates: Snapshot) -> list[tuple[Snapshot, Snapshot]]:
    """Return the sessions of a tree, each with its rates, which have the same shape."""
    pairs = zip(walk(snapshot), walk(rates), strict=True)
    return [(told, rate) for (_, told), (_, rate) in pairs if told.part == "session" and (told.values or told.states)]


def line_of(now: float, snapshot: Snapshot, rates: Snapshot, measures: Mapping[str, Measure] = MEASURES) -> str:
    """Return a line about all sessions of a snapshot."""
    parts = [_session_line(told, rate, measures) for told, rate in _sessions_of(snapshot, rates)]
    return printable(f"{format_duration(round(now, 3))}: {'; '.join(parts) or 'no session'}")


def _session_line(told: Snapshot, rates: Snapshot, measures: Mapping[str, Measure]) -> str:
    words = [told.states["activity"]] if "activity" in told.states else []
    for name in HEADLINES:
        value, measure = told.values.get(name), measure_of(name, measures)
        if value:
            rate = rates.values.get(name)
            pace = "" if rate is None else f" ({_rate_text(rate, measure)})"
            words.append(f"{_label_of(measure)} {_value_text(value, measure)}{pace}")
    for kind in ("sender", "congestion", "object"):
        each = told.only(kind)
        words += [_part_words(part, measures) for part in each[:MOST_NAMED]]
        words += [f"{len(each) - MOST_NAMED} more {kind}s"] if len(each) > MOST_NAMED else []
    return ", ".join(words) or "nothing yet"


def _part_words(part: Snapshot, measures: Mapping[str, Measure]) -> str:
    """Return a part in a few words: its states, and how much of it is done."""
    told = [word for name, word in part.states.items() if name != "kind" and word != "idle"]
    size, done = part.values.get("size"), part.values.get("bytes_received", part.values.get("bytes_sent"))
    told += [f"{done / size:.0%}"] if size and done is not None else []
    told += [
        f"{name} {_value_text(part.values[name], measure_of(name, measures))}"
        for name in ("loss", "rtt", "rate")
        if part.values.get(name)
    ]
    return " ".join(word for word in (part.part, part.name, *told) if word)


def tables_of(snapshot: Snapshot, rates: Snapshot, measures: Mapping[str, Measure] = MEASURES, height: int = 40) -> list[Table]:
    """Return the tables of all sessions: what each counts, and a table for each kind of its parts, within `height` lines."""
    found: list[Table] = []
    for told, rate in _sessions_of(snapshot, rates):
        title = " ".join(
            word for word in (told.states.get("role", "session"), told.name, told.states.get("activity", "")) if word
        )
        rows = [
            [_label_of(measure), None if pace is None else _rate_text(pace, measure), _value_text(value, measure)]
            for name, value in told.values.items()
            if value
            for measure, pace in [(measure_of(name, measures), rate.values.get(name))]
        ]
        found.append(Table(_COUNTS, rows, title))
        kinds = list(dict.fromkeys(part.part for part in told.parts if part.states or part.values.get("held", 1)))
        room = max(_FEWEST, (height - _AROUND - len(rows)) // max(len(kinds), 1) - 3)
        found += [_parts_table(kind, told.only(kind), measures, room) for kind in kinds]
    return found


def _parts_table(kind: str, parts: Sequence[Snapshot], measures: Mapping[str, Measure], room: int) -> Table:
    """Return a table with a row for each part of one kind, the `room` first ones."""
    states = list(dict.fromkeys(name for part in parts for name in part.states))
    names = list(dict.fromkeys(name for part in parts for name, value in part.values.items() if value))
    heads = [Column(kind, rank=0, right=False), *(Column(name, rank=1) for name in states)]
    heads += [Column(_label_of(measure_of(name, measures)), rank=rank, right=True) for rank, name in enumerate(names, 2)]
    rows = [
        [
            part.name or "-",
            *(part.states.get(name) for name in states),
            *(_value_text(part.values[name], measure_of(name, measures)) if name in part.values else None for name in names),
        ]
        for part in parts[:room]
    ]
    return Table(heads, rows, note=f"and {len(parts) - room} more" if len(parts) > room else "")


def _label_of(measure: Measure) -> str:
    """Return the name of a measure as people write it."""
    return " ".join([_SPELT.get(word, word) for word in measure.name.split("_")])


def _value_text(value: float, measure: Measure) -> str:
    """Return a value with its unit, in four digits."""
    if not isfinite(value):
        return str(value)
    if measure.unit == "seconds":
        return f"{number(value, 4)} s" if value >= 1 or value == 0 else f"{number(value * 1e3, 4)} ms"
    if measure.unit == "ratio":
        return f"{number(value * 100, 3)} %"
    if measure.unit == "bytes/s":
        return f"{_scaled(value * 8)}bit/s"
    return f"{_scaled(value)}B" if measure.unit == "bytes" else number(value, 6)


def _rate_text(rate: float, measure: Measure) -> str:
    """Return a rate per second with its unit."""
    return f"{_scaled(rate * 8)}bit/s" if measure.unit == "bytes" else f"{number(rate, 4)}/s"


def _scaled(value: float) -> str:
    """Return a number below 1000 and the prefix of its unit."""
    for prefix in _PREFIXES[:-1]:
        if abs(value) < 999.5:
            return f"{number(value, 4)} {prefix}"
        value /= 1000
    return f"{number(value, 4)} {_PREFIXES[-1]}"
