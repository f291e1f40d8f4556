"""A slow application: each packet takes a service time, a limited number waits, the others are dropped."""

from collections import deque

from protocols.machine import Address, Machine, Message, Ports

__all__ = ["SlowReader"]

_Queued = tuple[Message, Address, Address]


class SlowReader(Machine):
    """A machine in front of another, which it hands packets to after their service time; timers and calls are not delayed."""

    __slots__ = ("_capacity", "_free_at", "_queue", "_service_time", "dropped", "inner")

    def __init__(self, ports: Ports, inner: Machine) -> None:
        super().__init__(ports)
        self.inner = inner
        self._service_time = self._free_at = 0.0
        self._capacity = 0
        self._queue: deque[_Queued] = deque()
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
            self.inner.receive(*self._queue.popleft(), now)

    def start(self, now: float) -> None:
        """Start the inner machine."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver the packet, queue it, or drop it if the queue is full."""
        if not self._service_time:
            self.inner.receive(message, source, to, now)
        elif len(self._queue) >= self._capacity:
            self.dropped += 1
        else:
            if not self._queue:
                self._free_at = now + self._service_time
            self._queue.append((message, source, to))
            self.ports.alarm(self._free_at)

    def wake(self, now: float) -> None:
        """Deliver packets whose service is over, and wake the inner machine if due."""
        while self._queue and self._free_at <= now:
            self.inner.receive(*self._queue.popleft(), now)
            self._free_at += self._service_time
        if self.inner.deadline <= now:
            self.inner.wake(now)

    def resume(self, now: float) -> None:
        """Resume the inner machine."""
        self.inner.resume(now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()
