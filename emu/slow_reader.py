"""A slow application: each packet takes a service time, a limited number waits, the others are dropped."""

from collections import deque
from collections.abc import Callable, Sequence

from protocols.connection import Connection, Reason
from protocols.hosting import SeveralPortsHost
from protocols.machine import Address, Machine, Message
from protocols.snapshot import Snapshot
from protocols.storage import Record

__all__ = ["SlowReader"]

_Input = tuple[Callable[..., None], tuple[object, ...]]


class SlowReader(Machine):
    """A machine before another, to which it passes packets after their service time; timers and calls are not delayed.

    Messages of connections are never dropped: with a full queue their connections are held back, so that the other ends find
    them full. The beginning and the end of a connection wait for what came before.
    """

    __slots__ = ("_capacity", "_free_at", "_held", "_host", "_queue", "_service_time", "dropped", "inner")

    def __init__(self, host: SeveralPortsHost, inner: Machine) -> None:
        super().__init__(host)
        self._host = host
        self.inner = inner
        self._service_time = self._free_at = 0.0
        self._capacity = 0
        self._queue: deque[_Input] = deque()
        self._held: dict[Connection, None] = {}
        self.dropped = 0

    @property
    def deadline(self) -> float:
        """Next wake-up of the inner machine, or the end of the current packet's service."""
        return min(self.inner.deadline, self._free_at) if self._queue else self.inner.deadline

    @deadline.setter
    def deadline(self, when: float) -> None:
        """Do nothing: the deadline follows from the inner machine and the queue."""

    def read_at(self, service_time: float, capacity: int, now: float) -> None:
        """Set the service time in seconds and the capacity of the queue in packets; 0.0 delivers all that wait."""
        self._service_time, self._capacity = service_time, capacity
        while self._queue and not service_time:
            self._serve(now)
        self._release()

    def start(self, now: float) -> None:
        """Start the inner machine."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver the packet, queue it, or drop it if the queue is full."""
        self._take(self.inner.receive, message, source, to, now)

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a packet that a queue marked, queue it, or drop it."""
        self._take(self.inner.receive_marked, message, source, to, now)

    def _take(self, verb: Callable[..., None], message: Message, source: Address, to: Address, now: float) -> None:
        if not self._service_time:
            verb(message, source, to, now)
            return
        if len(self._queue) >= self._capacity:
            if not isinstance(to, Connection):
                self.dropped += 1
                return
            self._held[to] = None
            self._host.hold(to)
        self._put(now, verb, message, source, to)

    def wake(self, now: float) -> None:
        """Deliver packets whose service is over, and wake the inner machine if due."""
        while self._queue and self._free_at <= now:
            self._serve(now)
            self._free_at += self._service_time
        self._release()
        if self.inner.deadline <= now:
            self.inner.wake(now)

    def resume(self, now: float) -> None:
        """Resume the inner machine."""
        self.inner.resume(now)

    def opened(self, connection: Connection, now: float) -> None:
        """Pass it on, after the inputs before it."""
        self._put(now, self.inner.opened, connection)

    def drained(self, connection: Connection, now: float) -> None:
        """Pass it on."""
        self.inner.drained(connection, now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Pass it on, after the inputs before it."""
        self._held.pop(connection, None)
        self._put(now, self.inner.closed, connection, reason)

    def stored(self, ticket: int, now: float) -> None:
        """Pass it on."""
        self.inner.stored(ticket, now)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Pass it on."""
        self.inner.fetched(ticket, records, now)

    def forget(self, connection: Connection) -> None:
        """Drop what waits of a connection: the machine hung up, and receives no more of it."""
        self._held.pop(connection, None)
        self._queue = deque(item for item in self._queue if item[1][-1] is not connection or item[0] != self.inner.receive)

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the inner machine."""
        return self.inner.snapshot(now)

    def _put(self, now: float, verb: Callable[..., None], *arguments: object) -> None:
        """Have an input wait behind those that wait; without any, and without a service time, it is processed now."""
        if not (self._queue or self._service_time):
            verb(*arguments, now)
            return
        if not self._queue:
            self._free_at = now + self._service_time
        self._queue.append((verb, arguments))
        self.ports.alarm(self._free_at)

    def _serve(self, now: float) -> None:
        verb, arguments = self._queue.popleft()
        verb(*arguments, now)

    def _release(self) -> None:
        """Let connections go on when there is room again."""
        if self._held and (not self._service_time or len(self._queue) < self._capacity):
            held, self._held = self._held, {}
            for connection in held:
                self._host.release(connection)
