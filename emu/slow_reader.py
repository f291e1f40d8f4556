"""An application that needs time for every packet: packets wait for it, and those beyond its room are lost."""

from collections import deque

from protocols.machine import Address, Machine, Message, Ports

__all__ = ["SlowReader"]

_Waiting = tuple[Message, Address, Address]


class SlowReader(Machine):
    """Stands before a machine, for which it is the network; only packets wait, timers and calls don't."""

    __slots__ = ("_free_at", "_room", "_takes", "_waiting", "dropped", "inner")

    def __init__(self, ports: Ports, inner: Machine) -> None:
        super().__init__(ports)
        self.inner = inner
        self._takes = self._free_at = 0.0
        self._room = 0
        self._waiting: deque[_Waiting] = deque()
        self.dropped = 0

    @property
    def deadline(self) -> float:
        """When the machine wants to be woken, or the next packet is read."""
        return min(self.inner.deadline, self._free_at) if self._waiting else self.inner.deadline

    @deadline.setter
    def deadline(self, when: float) -> None:
        """A reader has none of its own."""

    def read_at(self, takes: float, room: int, now: float) -> None:
        """From now on a packet takes so many seconds, and `room` may wait; 0.0: all that waits is read now."""
        self._takes, self._room = takes, room
        while self._waiting and not takes:
            self.inner.receive(*self._waiting.popleft(), now)

    def start(self, now: float) -> None:
        """Start the machine."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A packet came to the host."""
        if not self._takes:
            self.inner.receive(message, source, to, now)
        elif len(self._waiting) >= self._room:
            self.dropped += 1
        else:
            if not self._waiting:
                self._free_at = now + self._takes
            self._waiting.append((message, source, to))
            self.ports.alarm(self._free_at)

    def wake(self, now: float) -> None:
        """Whatever of the reader and the machine is due."""
        while self._waiting and self._free_at <= now:
            self.inner.receive(*self._waiting.popleft(), now)
            self._free_at += self._takes
        if self.inner.deadline <= now:
            self.inner.wake(now)

    def resume(self, now: float) -> None:
        """The network takes packets again."""
        self.inner.resume(now)

    def counts(self) -> dict[str, int]:
        """Of the machine."""
        return self.inner.counts()
