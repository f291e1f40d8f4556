"""A program that stores a record every few milliseconds and, when it starts again, reads what was durable."""

from collections.abc import Sequence
from math import inf
from typing import Any

from protocols.hosting import PortsHost
from protocols.machine import Address, Machine, Message
from protocols.storage import Put, Record

__all__ = ["JournalProgram"]


class _Journal(Machine):
    """Reads all records, then stores the following numbers, one at a time."""

    def __init__(self, host: PortsHost) -> None:
        super().__init__(host)
        self.found: list[int] = []
        self.durable: list[int] = []
        self.after = 0
        """How often `stored` ended."""
        self._waiting: dict[int, int] = {}
        self._next = 0

    def start(self, now: float) -> None:
        """Read what is there."""
        del now
        self.ports.fetch()

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Go on after the last number."""
        del ticket
        self.found = [int(record.value) for record in records]
        self._next = len(self.found)
        self._due(now + 0.002)

    def wake(self, now: float) -> None:
        """Store the next number."""
        number = self._next
        self._next += 1
        self._waiting[self.ports.store([Put(b"%08d" % number, b"%d" % number)])] = number
        self._due(now + 0.002)

    def stored(self, ticket: int, now: float) -> None:
        """Note that a number is durable."""
        del now
        self.durable.append(self._waiting.pop(ticket))
        if self.ports.trace is not None:
            self.ports.trace("stored", {"ticket": ticket})
        self.after += 1

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Nobody sends."""

    def counts(self) -> dict[str, int]:
        """Numbers that are durable."""
        return {"durable": len(self.durable), "after": self.after}


class JournalProgram:
    """Runs a journal; it never finishes."""

    def __init__(self) -> None:
        self._machine: _Journal | None = None

    def start(self, host: PortsHost) -> None:
        """Run it."""
        self._machine = _Journal(host)
        host.run(self._machine, lambda event: None)

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Numbers found at the start, and numbers known to be durable since."""
        assert self._machine is not None
        assert self._machine.deadline < inf
        return {"found": self._machine.found, "durable": self._machine.durable, "after": self._machine.after}
