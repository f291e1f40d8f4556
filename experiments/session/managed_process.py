"""The management agent of a program: it announces the program's Distributor connections, and answers questions about them."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from emu.host import UdpHost
from experiments.output.clock import time_of_day
from experiments.session.guarded_loop import GuardedLoop
from protocols.distributor.management import ManagementAgent, ManagementCodec, ManagementFraming
from protocols.distributor.management.messages import (
    Announcement,
    ConnectionSummary,
    ConnectionView,
    DirectionView,
    ProcessView,
    QueueView,
    RateView,
    RetransmissionView,
    TrafficView,
)
from protocols.errors import UsageError
from protocols.machine import Group
from protocols.overview import counters_of
from protocols.rate_history import NONE, RateHistory
from protocols.rng import Rng

__all__ = ["ConnectionFacts", "ManagedProcess", "managed_process"]

MOST_ATTEMPTS = 20
"""Ports that are tried for TCP."""
SAMPLE = 1.0
"""Seconds between two samples of the counters."""
DIRECTIONS = (("Xta", "sent"), ("Rcv", "received"))
COUNTED = (("Bytes", "bytes"), ("Msgs", "packets"), ("Updates", "messages"))
"""Words of the Java program for directions and counters, and ours."""
NEVER = "00:00:00.000"
LARGEST = (1 << 31) - 1
MEGA = 1e6


class ConnectionFacts(Protocol):
    """The facts of a connection that management reports."""

    @property
    def endpoint(self) -> tuple[str, int]:
        """Address and port of the group."""

    @property
    def patterns(self) -> Sequence[str]:
        """The subscriptions."""

    @property
    def waiting(self) -> int:
        """Updates that wait for the program."""

    @property
    def is_publishing(self) -> bool:
        """Whether it has announced itself as a publisher."""

    @property
    def requested_from(self) -> Sequence[str]:
        """The hosts of publishers that were requested to retransmit."""

    @property
    def requested_by(self) -> Sequence[str]:
        """The hosts that have requested retransmissions."""

    def statistics(self) -> dict[str, int]:
        """Return its counters."""


class _Sampled:
    """The history of one connection: rates over several windows, with their peaks, and the peak of its queue."""

    def __init__(self, connection: ConnectionFacts, number: int) -> None:
        self.connection = connection
        self.id = number
        self._history = RateHistory()
        self._queue = (0, NEVER)

    def totals(self) -> dict[str, int]:
        """Return bytes, datagrams and updates, sent and received."""
        return {name: int(value) for name, value in counters_of(self.connection.statistics()).items()}

    def sample(self, now: float) -> None:
        """Compute the rates at `now` seconds."""
        clock = time.time()
        self._history.add(now, self.totals(), time_of_day(clock, "%Y-%m-%d "))
        waiting = self.connection.waiting
        if waiting > self._queue[0]:
            self._queue = (waiting, time_of_day(clock))

    def traffic(self) -> TrafficView:
        """Return totals and rates."""
        totals = self.totals()
        return TrafficView(*(self._direction(totals, word, ours) for word, ours in DIRECTIONS))

    def _direction(self, totals: dict[str, int], word: str, ours: str) -> DirectionView:
        octets, segments, updates = (totals.get(f"{kind}_{ours}", 0) for _, kind in COUNTED)
        return DirectionView(octets, segments, updates, self._views(totals, word, ours))

    def _views(self, totals: dict[str, int], word: str, ours: str) -> tuple[RateView, ...]:
        found = []
        for place, suffix in enumerate(("", "_1_min", "_5_min")):
            for unit, kind in COUNTED:
                name = f"{kind}_{ours}"
                rate = self._history.flows.get(name, NONE).rates[place]
                current, peak, peak_at = _whole(rate.current), _whole(rate.peak), str(rate.peak_at or NEVER)
                found.append(RateView(f"{word}{unit}{suffix}", totals.get(name, 0), current, peak, peak_at))
        return tuple(found)

    def queue(self) -> QueueView:
        """Return what waits for the program."""
        return QueueView(None, self.connection.waiting, self._queue[0], self._queue[1])


class ManagedProcess:
    """A process with Distributor connections, as its management agent reports it. `port` is where the agent answers, by TCP."""

    def __init__(self, loop: asyncio.AbstractEventLoop, iface: str | None, group: str, application: str) -> None:
        self._application = application
        self.process_id = secrets.randbits(56) << 6
        """Its id on the management group."""
        self._started_at = time_of_day(time.time())
        self._numbers = 0
        self._connections: dict[ConnectionFacts, _Sampled] = {}
        self._shape: list[tuple[int, bool, int]] = []
        self._loop = GuardedLoop(loop, self._fail)
        self.is_over = False
        """Whether it has ended, with its last connection or by a failure."""
        self.failure: Exception | None = None
        """What ended the agent, if anything did; connections go on without it."""
        for _ in range(MOST_ATTEMPTS):
            rng = Rng(secrets.randbits(64))
            self.host = UdpHost(self._loop, ManagementCodec(), interface=iface, port=0, rng=rng, framing=ManagementFraming)
            self.port = self.host.unicast_address[1]
            self.agent = ManagementAgent(self.host, Group(group), self)
            try:
                self.host.run(self.agent, lambda event: None)
                break
            except UsageError:
                # The number is free for UDP, and in use for TCP.
                self.host.close()
        else:
            raise UsageError(f"management: no free port at {self.host.address} after {MOST_ATTEMPTS} attempts")
        self._sample()

    def add(self, connection: ConnectionFacts) -> None:
        """Report a connection from now on."""
        self._numbers += 1
        sampled = self._connections[connection] = _Sampled(connection, self.process_id + self._numbers)
        sampled.sample(self.host.now)

    def remove(self, connection: ConnectionFacts) -> None:
        """Report a connection no more; the agent ends with the last one."""
        self._connections.pop(connection, None)
        if not self._connections:
            self._end()

    def processes(self) -> list[Announcement]:
        """Return the announcements of the other processes that run."""
        return self.agent.processes(self.host.now)

    def _sample(self) -> None:
        self._announce_change()
        for sampled in self._connections.values():
            sampled.sample(self.host.now)
        self._loop.call_later(SAMPLE, self._sample)

    def _announce_change(self) -> None:
        """Announce the process again if it has other connections, publishers or subscriptions than before."""
        facts = self._connections
        shape = [(each.id, connection.is_publishing, len(connection.patterns)) for connection, each in facts.items()]
        if shape != self._shape:
            self._shape = shape
            self.host.call(self.agent.changed)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._end()

    def _end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._loop.close()
        self.host.stop()
        self.host.close()

    # What the agent calls (`Managed`)

    def announcement(self) -> Announcement:
        """See `Managed.announcement`."""
        rows = [self._summary(sampled) for sampled in self._connections.values()]
        return Announcement(
            *self._identity(),
            publishers=sum(row.publishers for row in rows),
            subscribers=sum(row.subscribers for row in rows),
            connections=len(rows),
            requests_received=sum(row.requests_received for row in rows),
            requests_sent=sum(row.requests_sent for row in rows),
            subscriptions=sum(row.subscriptions for row in rows),
        )

    def _identity(self) -> tuple[str, int, str, str, str, int]:
        return self._application, self.process_id, self._started_at, self.host.address, socket.gethostname(), self.port

    def process(self) -> ProcessView:
        """See `Managed.process`."""
        most, used = _memory()
        rows = tuple(self._summary(sampled) for sampled in self._connections.values())
        return ProcessView(*self._identity(), most, used, most - used, rows)

    def connection(self, connection_id: int) -> ConnectionView | None:
        """See `Managed.connection`."""
        sampled = next((each for each in self._connections.values() if each.id == connection_id), None)
        if sampled is None:
            return None
        facts, row = sampled.connection, self._summary(sampled)
        counts = facts.statistics()
        seen = counts.get("requests_heard", 0)
        hosts = (tuple(facts.requested_by) or None, tuple(facts.requested_from) or None)
        patterns = {pattern: list(facts.patterns).count(pattern) for pattern in facts.patterns}
        return ConnectionView(
            *(row.group, row.port, row.connection_id, row.publishers, row.subscribers, row.subscriptions),
            sampled.queue(),
            sampled.traffic(),
            RetransmissionView(row.requests_received, row.requests_sent, seen, *hosts),
            tuple(f"Topic: {pattern:<30} References: {count}" for pattern, count in patterns.items()),
        )

    @staticmethod
    def _summary(sampled: _Sampled) -> ConnectionSummary:
        facts, counts, totals = sampled.connection, sampled.connection.statistics(), sampled.totals()
        group, port = facts.endpoint
        return ConnectionSummary(
            *(sampled.id, group, port, int(bool(facts.patterns)), int(facts.is_publishing), len(facts.patterns)),
            updates_received=totals.get("messages_received", 0),
            updates_sent=totals.get("messages_sent", 0),
            requests_received=counts.get("requests_received", 0),
            requests_sent=counts.get("requests_sent", 0),
        )


def _whole(rate: float) -> int:
    return min(round(rate), LARGEST)


def _memory() -> tuple[float, float]:
    """Return the memory of this machine and that of this process, in MB (proc(5), statm)."""
    page = os.sysconf("SC_PAGE_SIZE")
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1])
    return os.sysconf("SC_PHYS_PAGES") * page / MEGA, resident * page / MEGA


_processes: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str | None, str], ManagedProcess]] = WeakKeyDictionary()


def managed_process(iface: str | None, group: str, application: str) -> ManagedProcess:
    """Return the agent of the running event loop on an interface and a management group; the first caller names it."""
    loop = asyncio.get_running_loop()
    known = _processes.setdefault(loop, {})
    found = known.get((iface, group))
    if found is None or found.is_over:
        found = known[iface, group] = ManagedProcess(loop, iface, group, application)
    return found
