"""Connections between the fake hosts of a bench: whole messages in order, a limit on what waits, and all reasons to end."""

from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Protocol

from experiments.contract.fake_host import FakeHost
from protocols.connection import Connection, Reason
from protocols.machine import Message
from sim.addresses import name_and_port

__all__ = ["FakeConnections", "Link"]


class Link(Protocol):
    """What connections use of a bench."""

    hosts: dict[str, FakeHost]
    silent: set[str]
    delay: float

    @property
    def now(self) -> float:
        """Seconds since the bench began."""

    def post(self, when: float, action: Callable[[], None]) -> None:
        """Call `action()` at `when` seconds; in order of the calls where times are equal."""


class _End:
    """One end of a connection: what was sent from here and has not arrived, each with the time when it does."""

    __slots__ = ("connection", "host", "is_full", "on_the_way", "other", "unacknowledged")

    def __init__(self, host: FakeHost, connection: Connection | None) -> None:
        self.host = host
        self.connection = connection
        """None before it is established, and when it is closed."""
        self.other: _End
        self.on_the_way: deque[tuple[float, Callable[[], None]]] = deque()
        self.unacknowledged = 0
        self.is_full = False


class FakeConnections:
    """The connections of a bench. `room`: messages on the way in one direction from which on it is full.

    A host in `Link.silent` neither sends nor receives. What it does not answer in `timeout` seconds ends the connection.
    """

    def __init__(self, link: Link, room: float, timeout: float) -> None:
        self._link = link
        self.room = room
        self.timeout = timeout
        self._ends: dict[Connection, _End] = {}

    def attach(self, host: FakeHost) -> None:
        """Serve a host."""
        host.on_connect = partial(self._connect, host)
        host.on_hang_up = self._hang_up
        host.on_reset = self._reset
        host.on_release = self._release

    def send(self, connection: Connection, message: Message) -> bool:
        """Put a message on its way; returns whether the connection is full now."""
        end = self._ends[connection]
        end.unacknowledged += 1
        end.is_full = end.unacknowledged >= self.room
        self._put(end, partial(self._message, end, message))
        return end.is_full

    # Opening

    def _connect(self, host: FakeHost, connection: Connection) -> None:
        near, name = _End(host, connection), name_and_port(connection.peer)[0]
        near.other = _End(self._link.hosts.get(name, host), None)
        near.other.other = near
        self._ends[connection] = near
        if name in self._link.hosts:
            self._put(near, partial(self._request, near))
        else:
            # Nobody has this address; a router says so.
            self._link.post(self._link.now + 2 * self._link.delay, partial(self._close, near, "refused"))

    def _request(self, near: _End) -> None:
        far, connection = near.other, near.connection
        if connection is None:
            return
        port = name_and_port(connection.peer)[1]
        if far.host.machine is None or port not in far.host.listening:
            near.on_the_way.clear()
            self._link.post(self._link.now + self._link.delay, partial(self._close, near, "refused"))
            return
        far.connection = Connection(far.host.address_of(near.host.name, connection.port), port)
        self._ends[far.connection] = far
        self._put(far, partial(self._accepted, near))
        far.host.open(far.connection, self._link.now)

    def _accepted(self, near: _End) -> None:
        if near.connection is not None and near.host.rules.states[near.connection] == "connecting":
            near.host.open(near.connection, self._link.now)

    # Messages

    def _put(self, end: _End, action: Callable[[], None]) -> None:
        """Have `action()` called when what was sent from an end now arrives at the other."""
        when = self._link.now + self._link.delay
        end.on_the_way.append((when, action))
        self._link.post(when, partial(self._advance, end))

    def _advance(self, end: _End) -> None:
        """Let what was sent from an end arrive, as far as it is time and both hosts take part."""
        while end.on_the_way and end.on_the_way[0][0] <= self._link.now:
            if self._is_held_back(end.other):
                return
            if not self._link.silent.isdisjoint((end.host.name, end.other.host.name)):
                self._repeat(end)
                return
            end.on_the_way.popleft()[1]()

    def _repeat(self, end: _End) -> None:
        """Try again after a while, or give up."""
        if self._link.now - end.on_the_way[0][0] < self.timeout:
            self._link.post(self._link.now + self._link.delay, partial(self._advance, end))
            return
        for each in (end, end.other):
            self._close(each, "timeout")

    def _message(self, end: _End, message: Message) -> None:
        there = end.other.connection
        if there is not None and end.other.host.rules.states[there] != "hung up":
            end.other.host.deliver(message, there, there, self._link.now)
        self._link.post(self._link.now + self._link.delay, partial(self._acknowledged, end))

    def _acknowledged(self, end: _End) -> None:
        end.unacknowledged -= 1
        if end.is_full and end.unacknowledged <= self.room / 2:
            end.is_full = False
            if end.connection is not None and end.host.rules.states[end.connection] == "full":
                end.host.drain(end.connection, self._link.now, inf)

    def _is_held_back(self, end: _End) -> bool:
        return end.connection is not None and end.connection in end.host.held_back

    def _release(self, connection: Connection) -> None:
        # As an event of its own: no port re-enters the machine.
        self._link.post(self._link.now, partial(self._advance, self._ends[connection].other))

    # Closing

    def _hang_up(self, connection: Connection) -> None:
        end = self._ends[connection]
        self._put(end, partial(self._ended, end))

    def _ended(self, end: _End) -> None:
        """All that an end sent before it hung up has arrived."""
        self._close(end.other, "ended")
        self._link.post(self._link.now + self._link.delay, partial(self._close, end, "ended"))

    def _reset(self, connection: Connection) -> None:
        """The machine of this end was removed: its host answers the other end with a reset, unless it is silent."""
        end = self._ends.pop(connection)
        end.connection = None
        wait = self.timeout if end.host.name in self._link.silent else self._link.delay
        reason: Reason = "timeout" if end.host.name in self._link.silent else "reset"
        self._link.post(self._link.now + wait, partial(self._close, end.other, reason))

    def _close(self, end: _End, reason: Reason) -> None:
        connection, end.connection = end.connection, None
        end.other.on_the_way.clear()
        if connection is not None:
            del self._ends[connection]
            end.host.close(connection, reason, self._link.now)
