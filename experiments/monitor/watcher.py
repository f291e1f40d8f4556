"""Watch everything that consoles and pages show, once a second: sessions of this machine, emulations, Distributor domains."""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from experiments.monitor.domain import Domain, Event, Reading, Row
from experiments.monitor.sessions import SessionSource
from protocols.snapshot import Measure, Snapshot

__all__ = ["INTERVAL", "Management", "Watcher", "shortened"]

INTERVAL: Final = 1.0
"""Seconds between two queries of all processes."""
MOST_SHOWN: Final = 50
"""Parts of one kind below another that a page shows."""


class Management(Protocol):
    """A source of processes that announce themselves."""

    def readings(self) -> Mapping[str, Reading]:
        """Return what is known of all processes, by a key for each that ends with the id of the process."""

    def process_ids(self) -> Collection[int]:
        """Return the ids of the processes."""

    def close(self) -> None:
        """Observe no more."""


class Watcher:
    """Looks every `INTERVAL` seconds and keeps the rows of the domains. `clock` returns Unix seconds."""

    def __init__(
        self,
        sessions: SessionSource | None = None,
        management: Callable[[], Management] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sessions = SessionSource() if sessions is None else sessions
        self._open_management = management
        self._management: Management | None = None
        self._clock = clock
        self.domain = Domain()
        self._news: list[Event] = []
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._update: str | None = None
        self.has_ended = False
        """Whether `end` was called; the page is not updated any more then."""

    def end(self) -> None:
        """Wake all tasks that wait in `change`, for the last time; may be called by a signal handler."""
        self.has_ended = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    async def run(self) -> None:
        """Look every `INTERVAL` seconds until cancelled."""
        self._loop = asyncio.get_running_loop()
        due = self._loop.time()
        try:
            while True:
                await self.look()
                # One that took long is not made up for.
                due = max(due + INTERVAL, self._loop.time())
                await asyncio.sleep(due - self._loop.time())
        finally:
            self.sessions.close()
            if self._management is not None:
                self._management.close()

    async def look(self) -> None:
        """Query all processes and sessions, and update the rows."""
        if self._management is None and self._open_management is not None:
            self._management = self._open_management()
        managed = self._management.process_ids() if self._management is not None else ()
        await self.sessions.look(managed)
        readings = dict(self.sessions.readings(managed))
        if self._management is not None:
            readings |= self._management.readings()
        last = self.domain.events[-1] if self.domain.events else None
        self.domain.update(self._clock(), readings)
        self._news = _after(last, list(self.domain.events))
        self._update = None
        self._changed.set()
        if not self.has_ended:
            self._changed = asyncio.Event()

    async def change(self) -> None:
        """Wait for the next look."""
        await self._changed.wait()

    def session_of(self, row: Row) -> str:
        """Return the name of the session with the full statistics of a row's process, "" if there is none here."""
        if row.session or not row.key.startswith("process/"):
            return row.session
        return self.sessions.session_of(int(row.owner.split("/")[2]))

    # As JSON

    def update(self) -> str:
        """Return what has changed with the last look as JSON, made once for all pages."""
        if self._update is None:
            domain = self.domain
            rows = [row for key in domain.changed if (row := domain.row(key)) is not None]
            told = {"rows": [self._plain(row) for row in rows], "removed": domain.removed}
            self._update = json.dumps(told | {"events": [_event(event) for event in self._news]}, separators=(",", ":"))
        return self._update

    def whole(self) -> dict[str, Any]:
        """Return all rows, with what charts show of the time before, and the last events."""
        rows = [self._plain(row) | {"points": self.domain.points(row.key)} for row in self.domain.rows]
        return {"rows": rows, "events": [_event(event) for event in self.domain.events]}

    def _plain(self, row: Row) -> dict[str, Any]:
        return row.plain() | {"session": self.session_of(row)}

    def snapshot(self) -> tuple[Snapshot, Mapping[str, Measure]]:
        """Return the statistics of everything for Prometheus, and what their names mean."""
        snapshot, measures = self.sessions.snapshot()
        told: dict[str, list[Row]] = {}
        for row in self.domain.rows:
            if row.key.startswith("process/"):
                told.setdefault(row.owner, []).append(row)
        processes = [_process(rows) for rows in told.values()]
        count = {"processes": len(snapshot.parts) + len(processes)}
        return Snapshot("machine", "", count, {}, [*snapshot.parts, *processes]), measures


def _after(last: Event | None, events: list[Event]) -> list[Event]:
    """Return the events after the last one that was reported."""
    for place in range(len(events) - 1, -1, -1):
        if events[place] is last:
            return events[place + 1 :]
    return events


def _event(event: Event) -> list[Any]:
    return [event.at, event.subject, event.text]


NAMES: Final = {
    "packets_sent": "data_sent",
    "packets_received": "data_received",
    "messages_sent": "messages_published",
    "requests_in": "requests_received",
    "requests_out": "requests_sent",
    "requests_seen": "requests_heard",
}
"""Names of counters in statistics, where rows have others."""


def _process(rows: list[Row]) -> Snapshot:
    """Return a process that management reports as statistics, from the rows of its connections."""
    first = rows[0]
    name = f"{first.process} {first.place} {first.owner.split('/')[2]}"
    return Snapshot("process", name, {}, {"state": first.state}, [_session(row) for row in rows if row.flows])


def _session(row: Row) -> Snapshot:
    values: dict[str, float] = {NAMES.get(name, name): flow.total for name, flow in row.flows.items()}
    values |= {NAMES[name]: count for name, count in row.requests.items()}
    values["subscriptions"] = row.subscriptions
    queue = Snapshot("queue", "updates", {"held": row.queue})
    return Snapshot("session", row.connection, values, {"role": row.role} if row.role else {}, (queue,))


def shortened(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with at most `MOST_SHOWN` parts of each kind below each part."""
    if not snapshot.parts:
        return snapshot
    kept: list[Snapshot] = []
    counts: dict[str, int] = {}
    for part in snapshot.parts:
        counts[part.part] = counts.get(part.part, 0) + 1
        if counts[part.part] <= MOST_SHOWN:
            kept.append(shortened(part))
    return Snapshot(snapshot.part, snapshot.name, snapshot.values, snapshot.states, kept)
