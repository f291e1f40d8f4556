"""Data of the page of a registry: a row for each tunnel, and recent events."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

from protocols.admin.events import NodeChanged, NodeLeft, NodeRegistered
from protocols.admin.registration import plain_node
from protocols.admin.registry import Registry
from protocols.admin.table import Entry
from protocols.events import Event

__all__ = ["MOST_READERS", "Board"]

MOST_READERS: Final = 32
"""Pages that are kept up to date at a time."""
LOOK: Final = 1.0
"""Seconds between two updates of a page; a change of the list is sent at once."""
MOST_EVENTS: Final = 100
_WORDS: Final = {"left": "has left", "silent": "is silent, and no longer in the list"}


class Board:
    """Follows a registry for pages; `clock` returns the time of its host in seconds."""

    def __init__(self, registry: Registry, clock: Callable[[], float]) -> None:
        self._registry, self._clock = registry, clock
        self._events: deque[tuple[int, float, str, str]] = deque(maxlen=MOST_EVENTS)
        self._number = 0
        self._changed = asyncio.Event()
        self._has_ended = False
        self.readers = 0

    def heard(self, event: Event) -> None:
        """Take an event of the registry."""
        if isinstance(event, NodeRegistered):
            self._note(event.node.name, "is in the list")
        elif isinstance(event, NodeLeft):
            self._note(event.node.name, _WORDS[event.why])
        elif isinstance(event, NodeChanged):
            self._note(event.node.name, "is paused" if event.node.paused else "goes on")

    def _note(self, name: str, text: str) -> None:
        self._number += 1
        self._events.append((self._number, time.time(), name, text))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def end(self) -> None:
        """End all streams."""
        self._has_ended = True
        self._wake()

    async def stream(self) -> AsyncIterator[str]:
        """Yield server-sent events: everything, then what changed."""
        self.readers += 1
        known: dict[int, tuple[float, Any]] = {}
        seen = 0
        try:
            while not self._has_ended:
                rows = {entry.node.id: entry for entry in self._registry.table}
                state = {number: (entry.heard_at, entry.node) for number, entry in rows.items()}
                news = [event for event in self._events if event[0] > seen]
                told = {
                    "whole": not seen and not known,
                    "stamp": self._registry.table.stamp,
                    "time": time.time(),
                    "lease": self._registry.options.lease,
                    "nodes": [self._row(rows[number]) for number, found in state.items() if known.get(number) != found],
                    "removed": [number for number in known if number not in state],
                    "events": [event[1:] for event in news],
                }
                # JSON has no line feed, since its strings escape it.
                yield f"data: {json.dumps(told)}\n\n"
                known, seen = state, self._number
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await self._changed.wait()
        finally:
            self.readers -= 1

    def _row(self, entry: Entry) -> dict[str, Any]:
        """Return what a page shows of a tunnel; times are ages in seconds."""
        now = self._clock()
        return {
            **plain_node(entry.node),
            "age": round(now - entry.since, 3),
            "silence": round(now - entry.heard_at, 3),
            "counters": dict(entry.counters),
            "rates": {name: round(rate, 3) for name, rate in entry.rates.items()},
            "load": round(entry.load, 4),
            "memory": entry.memory,
        }
