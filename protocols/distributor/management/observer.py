"""The observer of a management group: it lists every process that announces itself, and requests the statistics of each.

A process is asked for its list of connections when it is new, and when its announcement has changed: the Java program collects
its garbage for each such answer. For the statistics of its connections it is asked every `interval`, on one TCP connection. A
process that has died is known at once, since the kernel of its host ends this connection; one whose host is cut off does not
answer, and is forgotten when its announcements stay away. Where there are many processes they are asked in rotation, so that
observing them costs no more than observing `MOST_AT_ONCE`.
"""

from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from math import inf

from protocols.connection import Connection, Reason
from protocols.distributor.management.agent import PATIENCE
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

__all__ = ["MOST_OBSERVED", "ManagementObserver", "ObservedProcess"]

LARGEST_PORT = 0xFFFF
MOST_OBSERVED = 4096
"""Processes that are known at the same time."""
MOST_ASKED = 64
"""Connections of one process that it is asked for."""
MOST_AT_ONCE = 100
"""Processes that are asked for their statistics in one interval, about."""
MOST_ATTEMPTS = 3
"""Times it is tried to reach a process that neither answers nor announces itself again."""
SLOWEST = 2.0
"""Seconds after which a process that was asked counts as one that does not answer."""

Key = tuple[object, int]
"""Where a process was heard, and its id: processes may choose equal ids."""


@dataclass(slots=True)
class ObservedProcess:
    """A process as its announcements and answers describe it."""

    announcement: Announcement
    address: Address
    """Where it answers."""
    heard_at: float
    view: ProcessView | None = None
    connections: dict[int, ConnectionView | None] = field(default_factory=dict)
    """Answers by connection, in the order of the list of connections; None: it has not answered yet."""
    stream: Connection | None = None
    is_open: bool = False
    attempts: int = 0
    """Streams that were opened since it announced itself or answered."""
    needs_list: bool = True
    asked: deque[tuple[float, int | None]] = field(default_factory=deque)
    """Times and connections (None: the list of them) of the questions that are not answered."""

    def is_silent(self, now: float) -> bool:
        """Return whether it was asked and does not answer."""
        return bool(self.asked) and now - self.asked[0][0] >= SLOWEST


class ManagementObserver(Machine):
    """Observes the processes of a group; `reach(source, announcement)` returns where the sender of a datagram answers.

    Observers of several interfaces share `owners`, so that a process which is heard on each of them is asked once; at most
    `most` processes are asked, of the others there is the announcement.
    """

    __slots__ = ("_counts", "_group", "_interval", "_most", "_owners", "_reach", "_streams", "_tick_at", "_ticks", "processes")

    def __init__(
        self,
        ports: Ports,
        group: Group,
        reach: Callable[[Address, Announcement], Address],
        *,
        interval: float = 1.0,
        most: int = MOST_OBSERVED,
        owners: MutableMapping[Key, object] | None = None,
    ) -> None:
        super().__init__(ports)
        self._group = group
        self._reach = reach
        self._interval = interval
        self._most = most
        self._owners: MutableMapping[Key, object] = {} if owners is None else owners
        self.processes: dict[Key, ObservedProcess] = {}
        self._streams: dict[Connection, Key] = {}
        self._tick_at = inf
        self._ticks = 0
        self._counts = dict.fromkeys(("announcements_received", "queries_sent", "answers_received", "processes_gone"), 0)

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self._group)
        self._tick_at = now + self._interval
        self._due(self._tick_at)

    def wake(self, now: float) -> None:
        """Ask every process, and forget those that have not been heard for long."""
        if now < self._tick_at:
            return
        self._tick_at = now + self._interval
        self._ticks += 1
        turns = -(-len(self.processes) // MOST_AT_ONCE)
        for place, (key, process) in enumerate(list(self.processes.items())):
            if process.heard_at + PATIENCE <= now and (not process.is_open or process.is_silent(now)):
                self._forget(key)
            elif process.stream is None and process.attempts < MOST_ATTEMPTS:
                self._connect(key, process)
            elif process.needs_list or place % turns == self._ticks % turns:
                self._ask(process, now)
        self._due(self._tick_at)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take an announcement, or an answer."""
        if isinstance(to, Connection):
            key = self._streams.get(to)
            if key is not None:
                self._answered(self.processes[key], message, now)
        elif isinstance(message, Announcement):
            self._heard(message, source, now)

    # Announcements

    def _heard(self, message: Announcement, source: Address, now: float) -> None:
        """Take an announcement; a new process is asked at once.

        Connections are opened to the host that sent the datagram, not to the address in it, which anybody can choose.
        """
        if not 0 < message.port <= LARGEST_PORT:
            return
        address = self._reach(source, message)
        key = (address, message.process_id)
        known = self.processes.get(key)
        if known is None:
            owner = self._owners.get(key)
            if len(self.processes) >= MOST_OBSERVED or (owner is not None and owner is not self):
                return
            self._owners[key] = self
            known = self.processes[key] = ObservedProcess(message, address, now)
        self._counts["announcements_received"] += 1
        known.needs_list |= _shape(known.announcement) != _shape(message)
        known.announcement, known.heard_at, known.attempts = message, now, 0
        if known.stream is None:
            self._connect(key, known)

    def _connect(self, key: Key, process: ObservedProcess) -> None:
        if len(self._streams) < self._most:
            process.attempts += 1
            process.stream = self.ports.connect(process.address)
            self._streams[process.stream] = key

    # Questions and answers

    def opened(self, connection: Connection, now: float) -> None:
        """Ask a process that can be reached."""
        key = self._streams.get(connection)
        if key is None:
            self.ports.hang_up(connection)
            return
        process = self.processes[key]
        process.is_open = True
        self._ask(process, now)

    def _ask(self, process: ObservedProcess, now: float) -> None:
        """Ask for the list of connections if it is needed, and for each connection in it."""
        if not process.is_open or process.asked:
            return
        if process.needs_list:
            self._question(process, None, now)
        for connection_id in process.connections:
            self._question(process, connection_id, now)

    def _question(self, process: ObservedProcess, connection_id: int | None, now: float) -> None:
        question: Message = ProcessQuery() if connection_id is None else ConnectionQuery(connection_id)
        assert process.stream is not None
        process.asked.append((now, connection_id))
        self.ports.send(Packet(question, size_of(question), process.stream))
        self._counts["queries_sent"] += 1

    def _answered(self, process: ObservedProcess, message: Message, now: float) -> None:
        if not process.asked:
            return
        _, wanted = process.asked.popleft()
        self._counts["answers_received"] += 1
        process.attempts = 0
        if isinstance(message, ConnectionAnswer) and wanted in process.connections:
            process.connections[wanted] = message.view
        elif isinstance(message, ProcessAnswer) and wanted is None:
            self._list(process, message.view, now)

    def _list(self, process: ObservedProcess, view: ProcessView, now: float) -> None:
        """Take a list of connections, and ask for those that are new."""
        process.view, process.needs_list = view, False
        ids = [summary.connection_id for summary in (view.connections or ())[:MOST_ASKED]]
        known = process.connections
        process.connections = {each: known.get(each) for each in ids}
        for each in ids:
            if each not in known:
                self._question(process, each, now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Open a connection again that had brought answers, or with the next questions; a process that refuses it is gone.

        The listening socket of a process that is killed may be closed a moment after its connections.
        """
        key = self._streams.pop(connection, None)
        if key is None:
            return
        process = self.processes[key]
        process.stream, process.is_open = None, False
        # Where it did not answer to a connection, the connection is no more.
        process.needs_list |= bool(process.asked)
        process.asked.clear()
        if reason == "refused":
            self._forget(key)
        elif process.attempts == 0:
            # The Java program may end a connection after its answers.
            self._connect(key, process)

    def _forget(self, key: Key) -> None:
        process = self.processes.pop(key)
        self._counts["processes_gone"] += 1
        self._owners.pop(key, None)
        if process.stream is not None:
            del self._streams[process.stream]
            self.ports.hang_up(process.stream)

    def counts(self) -> dict[str, int]:
        """Return announcements and answers received, questions sent, and processes that are gone."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the processes that are known."""
        return {"processes": (len(self.processes), MOST_OBSERVED)}


def _shape(announcement: Announcement) -> tuple[int, int, int, int]:
    """Return what changes with the connections of a process."""
    told = announcement
    return told.publishers, told.subscribers, told.connections, told.subscriptions
