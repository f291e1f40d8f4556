"""An application that needs time for every packet: packets wait for it, and those beyond its room are lost."""

from collections import deque

from protocols.machine import Address, Machine, Message, Ports

__all__ = ["SlowReader"]

_Queued = tuple[Message, Address, Address]


class SlowReader(Machine):
    """Stands before a machine, for which it is the network; only packets wait, timers and calls don't."""

    __slots__ = ("_free_at", "_capacity", "_queue", "_service_time", "dropped", "inner")

    def __init__(self, ports: Ports, inner: Machine) -> None:
        super().__init__(ports)
        self.inner = inner
        self._service_time = self._free_at = 0.0
        self._capacity = 0
        self._queue: deque[_Queued] = deque()
        self.dropped = 0

    @property
    def deadline(self) -> float:
        """When the machine wants to be woken, or the next packet is read."""
        return min(self.inner.deadline, self._free_at) if self._queue else self.inner.deadline

    @deadline.setter
    def deadline(self, when: float) -> None:
        """A reader has none of its own."""

    def read_at(self, service_time: float, capacity: int, now: float) -> None:
        """From now on a packet takes so many seconds, and `room` may wait; 0.0: all that waits is read now."""
        self._service_time, self._capacity = service_time, capacity
        while self._queue and not service_time:
            self.inner.receive(*self._queue.popleft(), now)

    def start(self, now: float) -> None:
        """Start the machine."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A packet came to the host."""
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
        """Whatever of the reader and the machine is due."""
        while self._queue and self._free_at <= now:
            self.inner.receive(*self._queue.popleft(), now)
            self._free_at += self._service_time
        if self.inner.deadline <= now:
            self.inner.wake(now)

    def resume(self, now: float) -> None:
        """The network takes packets again."""
        self.inner.resume(now)

    def counts(self) -> dict[str, int]:
        """Of the machine."""
        return self.inner.counts()
