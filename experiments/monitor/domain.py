"""What runs in the domains that are watched: domain, process, connection, publisher or subscriber, with rates and peaks.

A watcher passes a reading of every process to `Domain.update` each second; consoles and pages show the rows. A row is one
connection of a process. Nothing here depends on a protocol, a clock or a network.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from experiments.output.clock import time_of_day
from protocols.overview import FLOWS, REQUESTS, Overview
from protocols.rate_history import NONE, Flow, Rate, RateHistory

__all__ = ["ANSWERING", "GONE", "HISTORY", "SILENT", "Connection", "Domain", "Event", "Reading", "Row"]

ANSWERING, SILENT, GONE = "running", "not answering", "gone"
"""States of a process."""
SHOWN_GONE: Final = 30.0
"""Seconds for which a process that is gone is shown."""
HISTORY: Final = 120
"""Points of a chart."""
MOST_EVENTS: Final = 200
MOST_GONE: Final = 100
MOST_MEMBERS: Final = 50
"""Members of a connection that are shown."""
FEWEST_LATE: Final = 10
"""Messages that wait, up to which a receiver does not count as lagging."""
LONGEST: Final = 200
"""Characters of a name, beyond which it is cut."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What a process says of one of its connections.

    `flows` are its counters with rates, by the names of `protocols.overview.FLOWS`; where a process reports no rates,
    `counters` are given instead, and the rates are computed from them.
    """

    id: str
    name: str
    role: str = ""
    counters: Mapping[str, float] = field(default_factory=dict)
    flows: Mapping[str, Flow] | None = None
    requests: Mapping[str, float] = field(default_factory=dict)
    publishers: int = 0
    subscribers: int = 0
    subscriptions: int = 0
    queue: int = 0
    queue_peak: int | None = None
    members: Sequence[str] = ()
    """The nodes that it hears or serves, and subscriptions, in words."""

    @staticmethod
    def of(overview: Overview, number: str) -> "Connection":
        """Return what the statistics of a session say; `number` tells it from others of its process."""
        is_sending = "bytes_sent" in overview.counters or "messages_sent" in overview.counters
        is_receiving = "bytes_received" in overview.counters or "messages_received" in overview.counters
        return Connection(
            *(number, overview.name or "-", overview.role),
            counters={each: overview.counters[each] for each in FLOWS if each in overview.counters},
            requests={each: overview.counters[each] for each in REQUESTS if each in overview.counters},
            publishers=int(is_sending),
            subscribers=int(is_receiving),
            subscriptions=overview.subscriptions,
            queue=overview.queue,
            members=[f"{each.part} {each.name}" for each in overview.members],
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Present state of one process; `at` is the time of its counters in seconds of any clock of its own."""

    domain: str
    name: str
    place: str
    connections: Sequence[Connection]
    at: float = 0.0
    started: str = ""
    state: str = ANSWERING
    session: str = ""
    """Where its full statistics are to be had, if anywhere."""


@dataclass(slots=True)
class Row:
    """One connection of a process; a process without any has a row, too."""

    key: str
    owner: str = ""
    """The key of the process."""
    domain: str = ""
    process: str = ""
    place: str = ""
    started: str = ""
    state: str = ""
    session: str = ""
    connection: str = "-"
    role: str = ""
    publishers: int = 0
    subscribers: int = 0
    subscriptions: int = 0
    queue: int = 0
    queue_peak: int = 0
    lag: float = 0.0
    """Seconds of updates that wait; 0 for one that does not lag."""
    requests: dict[str, int] = field(default_factory=dict)
    flows: Mapping[str, Flow] = field(default_factory=dict)
    members: Sequence[str] = ()

    @property
    def subject(self) -> str:
        """The process and its connection in words."""
        return self.process if self.connection == "-" else f"{self.process} ({self.connection})"

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        told: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        told["flows"] = {name: [flow.total, *map(_plain_rate, flow.rates)] for name, flow in self.flows.items()}
        told["members"] = list(self.members[:MOST_MEMBERS])
        return told


def _plain_rate(rate: Rate) -> list[float | str | None]:
    """Return a rate for JSON; digits that nobody reads are left out."""
    current, peak, peak_at = rate
    return [int(current) if current > 99 else round(current, 2), int(peak) if peak > 99 else round(peak, 2), peak_at]


_PLAIN: Final = tuple(each.name for each in fields(Row) if each.name not in ("flows", "members"))


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened at `at` (Unix seconds) to a process, or to one of its connections."""

    at: float
    subject: str
    text: str


@dataclass(slots=True)
class _Tracked:
    """State of a row kept between readings."""

    row: Row
    told: Connection | None
    history: RateHistory = field(default_factory=RateHistory)
    points: deque[tuple[float, float, int]] = field(default_factory=lambda: deque(maxlen=HISTORY))
    queue_peak: int = 0
    gone_at: float | None = None


class Domain:
    """The rows of all processes, from readings; `changed` and `removed` are the keys of the last update."""

    def __init__(self) -> None:
        self._tracked: dict[str, _Tracked] = {}
        self.changed: list[str] = []
        self.removed: list[str] = []
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._when = ""

    @property
    def rows(self) -> list[Row]:
        """The rows, in the order in which they came."""
        return [tracked.row for tracked in self._tracked.values()]

    def row(self, key: str) -> Row | None:
        """Return a row by its key."""
        tracked = self._tracked.get(key)
        return None if tracked is None else tracked.row

    def points(self, key: str) -> list[tuple[float, float, int]]:
        """Return a row's messages sent and received per second, and its queue, of the last `HISTORY` updates."""
        tracked = self._tracked.get(key)
        return [] if tracked is None else list(tracked.points)

    def update(self, now: float, readings: Mapping[str, Reading]) -> None:
        """Take a reading of every process that is known, by its key, at `now` (Unix seconds). The others are gone."""
        self.changed, self.removed, self._when = [], [], time_of_day(now)
        present: dict[str, None] = {}
        for process, reading in readings.items():
            if not reading.connections:
                present[process] = None
                self._take(process, process, reading, None, now)
            for connection in reading.connections:
                key = f"{process}/{connection.id}"
                present[key] = None
                self._take(key, process, reading, connection, now)
        self._retire(present, readings, now)

    def _take(self, key: str, owner: str, reading: Reading, told: Connection | None, now: float) -> None:
        tracked = self._tracked.get(key)
        is_new = tracked is None or tracked.gone_at is not None
        if tracked is None or is_new:
            tracked = self._tracked[key] = _Tracked(Row(key), None)
        before = tracked.row
        if not is_new and told is tracked.told and told is not None and told.flows is not None:
            # The process sent the same statistics as before.
            row = before if before.state == reading.state else _with_state(before, reading.state)
        else:
            row = _row(Row(key, owner), reading, told, tracked, self._when)
        tracked.told = told
        _add_point(tracked, row)
        if row is before or row == before:
            return
        tracked.row = row
        self.changed.append(key)
        self._note(before, row, is_new, now)

    def _note(self, before: Row, row: Row, is_new: bool, now: float) -> None:
        if is_new:
            self.events.append(Event(now, row.subject, "comes"))
        elif row.state != before.state:
            self.events.append(Event(now, row.subject, row.state))
        if row.lag and not before.lag:
            self.events.append(Event(now, row.subject, "lags"))

    def _retire(self, present: Mapping[str, object], readings: Mapping[str, Reading], now: float) -> None:
        """Mark rows of processes that are gone, and remove those that are gone for long, or whose process goes on."""
        gone = 0
        for key, tracked in list(self._tracked.items()):
            if key in present:
                continue
            goes_on = tracked.row.owner in readings
            if tracked.gone_at is None and not goes_on:
                tracked.gone_at = now
                tracked.row = _with_state(tracked.row, GONE)
                self.changed.append(key)
                self.events.append(Event(now, tracked.row.subject, GONE))
            gone += 1
            if goes_on or gone > MOST_GONE or now - (tracked.gone_at or now) >= SHOWN_GONE:
                del self._tracked[key]
                self.removed.append(key)


def _row(row: Row, reading: Reading, told: Connection | None, tracked: _Tracked, when: str) -> Row:
    """Fill a row with what a process says."""
    row.domain, row.process, row.place = reading.domain[:LONGEST], reading.name[:LONGEST], reading.place[:LONGEST]
    row.started, row.state, row.session = reading.started[:LONGEST], reading.state, reading.session
    if told is None:
        return row
    row.flows = _flows(reading, told, tracked, when)
    row.connection, row.role = told.name[:LONGEST], told.role[:LONGEST]
    row.publishers, row.subscribers, row.subscriptions = told.publishers, told.subscribers, told.subscriptions
    tracked.queue_peak = max(tracked.queue_peak, told.queue)
    row.queue, row.queue_peak = told.queue, tracked.queue_peak if told.queue_peak is None else told.queue_peak
    row.requests = {name: int(told.requests.get(name, 0)) for name in REQUESTS}
    row.members = [text[:LONGEST] for text in told.members[:MOST_MEMBERS]]
    row.lag = _lag(row)
    return row


def _flows(reading: Reading, told: Connection, tracked: _Tracked, when: str) -> Mapping[str, Flow]:
    """Return the rates that a process reports, or those of its counters; `when` is the present as text."""
    if told.flows is not None:
        return told.flows
    tracked.history.add(reading.at, told.counters, when)
    return tracked.history.flows


def _lag(row: Row) -> float:
    """Return for how many seconds what waits would last; 0 for less than a second, or few messages."""
    if row.queue <= FEWEST_LATE or not row.subscribers:
        return 0.0
    rates = row.flows.get("messages_received", NONE).rates
    fastest = max(rates[0].current, rates[1].current)
    if row.queue <= fastest:
        return 0.0
    return round(row.queue / max(fastest, 1.0), 1)


def _with_state(row: Row, state: str) -> Row:
    changed = replace(row, state=state)
    if state == GONE:
        # What it did a moment ago goes on no longer.
        changed.flows = {
            name: Flow(flow.total, tuple(rate._replace(current=0.0) for rate in flow.rates)) for name, flow in row.flows.items()
        }
    return changed


def _add_point(tracked: _Tracked, row: Row) -> None:
    sent, received = row.flows.get("messages_sent", NONE), row.flows.get("messages_received", NONE)
    if not sent.total and not received.total:
        sent, received = row.flows.get("bytes_sent", NONE), row.flows.get("bytes_received", NONE)
    tracked.points.append((sent.rates[0].current, received.rates[0].current, row.queue))
