"""What a monitor knows: the sessions that run now, with their rates, and a short history of each."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from experiments.monitor.discovery import Answer, ask, running
from protocols.snapshot import MEASURES, Measure, Rates, Snapshot, walk

__all__ = ["INTERVAL", "Watcher"]

INTERVAL: Final = 1.0
"""Seconds between two questions to a session."""
HISTORY: Final = 120
"""Points of a chart."""
MOST_SHOWN: Final = 50
"""Parts of one kind below another that a page shows."""
CHARTED: Final = ("bytes_sent", "bytes_received", "messages_published", "messages_received", "repairs_sent", "data_lost")
"""Counters whose rates have a history, as far as a session has them."""
_TOGETHER: Final = 16
"""Sessions that are asked at a time."""


@dataclass(slots=True)
class _Watched:
    """One session: its latest answer, its rates, and (time, rates by name) of the last questions."""

    answer: Answer
    rates: Rates
    current: Snapshot
    history: deque[tuple[float, dict[str, float]]] = field(default_factory=lambda: deque(maxlen=HISTORY))


class Watcher:
    """Asks every session at an interval. `find` and `question` are those of `discovery` unless a test gives others."""

    def __init__(
        self,
        find: Callable[[], Sequence[str]] = running,
        question: Callable[[str], Awaitable[Answer | None]] = ask,
    ) -> None:
        self._find = find
        self._question = question
        self._sessions: dict[str, _Watched] = {}
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._update = ""
        self.has_ended = False
        """Whether nobody should wait for another look."""

    def end(self) -> None:
        """Wake everybody who waits for a look, for the last time; may be called by a signal handler."""
        self.has_ended = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    async def run(self) -> None:
        """Look every `INTERVAL` seconds until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """Ask all sessions that run; forget those that do not answer."""
        room = asyncio.Semaphore(_TOGETHER)

        async def answer_of(name: str) -> tuple[str, Answer | None]:
            async with room:
                return name, await self._question(name)

        answers = await asyncio.gather(*map(answer_of, self._find()))
        found = {name: answer for name, answer in answers if answer is not None}
        self._sessions = {name: self._noted(name, answer) for name, answer in found.items()}
        self._update = ""
        self._changed.set()
        if not self.has_ended:
            self._changed = asyncio.Event()

    async def change(self) -> None:
        """Wait for the next look."""
        await self._changed.wait()

    def _noted(self, name: str, answer: Answer) -> _Watched:
        known = self._sessions.get(name)
        rates = Rates(answer.measures) if known is None else known.rates
        current = rates.add(answer.time, answer.statistics)
        watched = _Watched(answer, rates, current) if known is None else known
        watched.answer, watched.current = answer, current
        watched.history.append((answer.time, _charted(current)))
        return watched

    def update(self) -> str:
        """Return what has changed with the last look as JSON, made once for all pages."""
        self._update = self._update or json.dumps({"sessions": self.sessions(whole=False)})
        return self._update

    def sessions(self, *, whole: bool = True) -> list[dict[str, Any]]:
        """Return the sessions as plain values.

        Without `whole`, what measures mean, and what charts show of the time before, is left out of those that are not new.
        """
        return [self._plain(name, watched, whole) for name, watched in sorted(self._sessions.items())]

    def _plain(self, name: str, watched: _Watched, whole: bool) -> dict[str, Any]:
        answer = watched.answer
        told = {
            "id": name,
            "pid": answer.pid,
            "command": answer.command,
            "time": answer.time,
            "statistics": _shortened(answer.statistics).plain(),
            "rates": _shortened(watched.current).plain(),
            "charted": watched.history[-1][1],
        }
        return told | _lasting(watched) if whole or len(watched.history) == 1 else told

    def snapshot(self) -> tuple[Snapshot, Mapping[str, Measure]]:
        """Return the statistics of all sessions as parts of their processes, and what their names mean."""
        parts: list[Snapshot] = []
        measures: dict[str, Measure] = dict(MEASURES)
        for name, watched in sorted(self._sessions.items()):
            _, _, process = name.partition("/")
            parts.append(Snapshot("process", process, parts=(watched.answer.statistics,)))
            measures |= watched.answer.measures
        return Snapshot("machine", "", {"processes": len(parts)}, {}, parts), measures


def _lasting(watched: _Watched) -> dict[str, Any]:
    """Return what a page has to be told of a session once."""
    measures = {name: [each.kind, each.unit, each.help] for name, each in watched.answer.measures.items()}
    return {"measures": measures, "history": list(watched.history)}


def _charted(rates: Snapshot) -> dict[str, float]:
    """Return the sums over all sessions of a process of the rates that have a chart."""
    sums: dict[str, float] = {}
    for _, part in walk(rates):
        if part.part == "session":
            for name in CHARTED:
                if name in part.values:
                    sums[name] = sums.get(name, 0.0) + part.values[name]
    return sums


def _shortened(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with at most `MOST_SHOWN` parts of each kind below each part."""
    if not snapshot.parts:
        return snapshot
    kept: list[Snapshot] = []
    counts: dict[str, int] = {}
    for part in snapshot.parts:
        counts[part.part] = counts.get(part.part, 0) + 1
        if counts[part.part] <= MOST_SHOWN:
            kept.append(_shortened(part))
    return Snapshot(snapshot.part, snapshot.name, snapshot.values, snapshot.states, kept)
