"""The management agent of a process: announces it, answers requests about it, and lists other announced processes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from protocols.connection import Connection, Reason
from protocols.distributor.management.messages import (
    Announcement,
    ConnectionAnswer,
    ConnectionQuery,
    ConnectionView,
    ProcessAnswer,
    ProcessQuery,
    ProcessView,
)
from protocols.distributor.management.wire import size_of
from protocols.machine import Address, Group, Machine, Message, Packet, Ports

__all__ = ["ManagementAgent", "Managed"]

INTERVAL = 10.0
"""Seconds between two announcements."""
AT_ONCE = 1.0
"""Seconds after an announcement when a change is announced at the earliest."""
PATIENCE = 35.0
"""Seconds after the last announcement of a process when it is taken to be gone."""
MOST_PROCESSES = 4096
LARGEST_ANNOUNCEMENT = 512
"""Bytes of the buffer into which the Java program receives an announcement."""
MOST_CLIENTS = 64
"""Processes that are remembered, and connections that are served, at the same time."""


def _cut(message: Announcement) -> Announcement:
    """Return an announcement with so much of the name of its application as a receiver has room for."""
    name, excess = (message.application or "").encode(), size_of(message) - LARGEST_ANNOUNCEMENT
    if excess <= 0:
        return message
    return replace(message, application=name[: max(0, len(name) - excess)].decode(errors="ignore"))


class Managed(Protocol):
    """The values that an agent reports; the process implements it."""

    def announcement(self) -> Announcement:
        """Return what is announced."""

    def process(self) -> ProcessView:
        """Return the process with its connections in brief."""

    def connection(self, connection_id: int) -> ConnectionView | None:
        """Return a connection, None for an unknown id."""


class ManagementAgent(Machine):
    """Announces a process every `INTERVAL` seconds, answers on connections, and keeps the announcements of others."""

    __slots__ = ("_clients", "_counts", "_group", "_heard", "_managed", "_on_heard")

    def __init__(
        self, ports: Ports, group: Group, managed: Managed, on_heard: Callable[[Announcement], None] | None = None
    ) -> None:
        super().__init__(ports)
        self._group = group
        self._managed = managed
        self._on_heard = on_heard
        self._heard: dict[int, tuple[float, Announcement]] = {}
        self._clients: dict[Connection, None] = {}
        self._counts = dict.fromkeys(("announcements_sent", "announcements_received", "queries_answered", "clients_refused"), 0)

    def start(self, now: float) -> None:
        """Join the group, accept connections, and announce the process."""
        self.ports.join(self._group)
        self.ports.listen()
        self.wake(now)

    def wake(self, now: float) -> None:
        """Announce the process when it is time, and forget who is gone."""
        if self.deadline > now and self._counts["announcements_sent"]:
            return
        message = _cut(self._managed.announcement())
        self.ports.send(Packet(message, size_of(message), self._group))
        self._counts["announcements_sent"] += 1
        self._forget(now)
        self._due(now + INTERVAL)

    def changed(self, now: float) -> None:
        """Announce the process before its time, since it has other connections, publishers or subscriptions than before."""
        self._due(min(self.deadline, max(now, self.deadline - INTERVAL + AT_ONCE)))

    def processes(self, now: float) -> list[Announcement]:
        """Return the announcements of the other processes that run, in the order in which they were first heard."""
        self._forget(now)
        return [announcement for _, announcement in self._heard.values()]

    def _forget(self, now: float) -> None:
        self._heard = {key: entry for key, entry in self._heard.items() if entry[0] + PATIENCE > now}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Keep an announcement, or answer a question on its connection."""
        if isinstance(message, Announcement):
            if message.process_id in self._heard or len(self._heard) < MOST_PROCESSES:
                self._heard[message.process_id] = (now, message)
                self._counts["announcements_received"] += 1
                if self._on_heard is not None:
                    self._on_heard(message)
        elif isinstance(to, Connection) and to in self._clients:
            answer = self._answer(message)
            if answer is None:
                # An unknown connection, or no question: without an end the client would wait for an answer.
                del self._clients[to]
                self.ports.hang_up(to)
                return
            self._counts["queries_answered"] += 1
            self.ports.send(Packet(answer, size_of(answer), to))

    def _answer(self, message: Message) -> Message | None:
        if isinstance(message, ProcessQuery):
            return ProcessAnswer(self._managed.process())
        if isinstance(message, ConnectionQuery):
            view = self._managed.connection(message.connection_id)
            return None if view is None else ConnectionAnswer(view)
        return None

    def opened(self, connection: Connection, now: float) -> None:
        """Serve a connection; one too many is refused."""
        if len(self._clients) >= MOST_CLIENTS:
            self._counts["clients_refused"] += 1
            self.ports.hang_up(connection)
        else:
            self._clients[connection] = None

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Forget a connection."""
        self._clients.pop(connection, None)

    def counts(self) -> dict[str, int]:
        """Return announcements sent and received, questions answered, and connections refused."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the processes that are known, and the connections."""
        return {"processes": (len(self._heard), MOST_PROCESSES), "clients": (len(self._clients), MOST_CLIENTS)}
