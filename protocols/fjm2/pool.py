"""Containers of messages, from pools by size class: memory is allocated once, used again, and bounded."""

from typing import Final

__all__ = ["Container", "Pool"]

_LEAST: Final = 256
"""Bytes of the smallest containers; each class has twice the bytes of the one before."""


class Container:
    """Memory for one message. It is allocated when it is first used, since in a simulation many are only counted."""

    __slots__ = ("_memory", "octets", "size")

    def __init__(self, octets: int) -> None:
        self.octets = octets
        """Bytes of the class."""
        self.size = 0
        """Bytes of the message."""
        self._memory: bytearray | None = None

    @property
    def memory(self) -> bytearray:
        """The memory; what it holds behind `size` bytes is of earlier messages."""
        if self._memory is None:
            self._memory = bytearray(self.octets)
        return self._memory


class Pool:
    """At most `limit` bytes of containers, those in use and those that wait to be used again."""

    __slots__ = ("_allocated", "_free", "exhausted", "held", "limit", "returned", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._allocated = 0
        self._free: dict[int, list[Container]] = {}
        self.held = 0
        """Bytes of the containers in use."""
        self.taken = self.returned = self.exhausted = 0
        """How often a container was taken, given back, and wanted in vain."""

    @staticmethod
    def octets_for(size: int) -> int:
        """Return the bytes of the container for a message of `size` bytes."""
        return max(_LEAST, 1 << (size - 1).bit_length())

    def fits(self, size: int) -> bool:
        """Return whether a message of this size has room in the empty pool."""
        return self.octets_for(size) <= self.limit

    def take(self, size: int) -> Container | None:
        """Take a container for a message of `size` bytes; None if the pool has no room for it now."""
        octets = self.octets_for(size)
        free = self._free.get(octets)
        if free:
            container = free.pop()
        elif self.held + octets <= self.limit:
            self._make_room(octets)
            container = Container(octets)
            self._allocated += octets
        else:
            self.exhausted += 1
            return None
        container.size = size
        self.held += octets
        self.taken += 1
        return container

    def _make_room(self, octets: int) -> None:
        """Drop containers of other classes that nobody uses, so that one more of `octets` bytes keeps the limit."""
        for other in sorted(self._free, reverse=True):
            free = self._free[other]
            while free and self._allocated + octets > self.limit:
                free.pop()
                self._allocated -= other

    def give_back(self, container: Container) -> None:
        """Give a container back; whoever took it does not use it any more."""
        self.held -= container.octets
        self.returned += 1
        self._free.setdefault(container.octets, []).append(container)

    @property
    def out(self) -> int:
        """The number of containers in use."""
        return self.taken - self.returned

    def counts(self) -> dict[str, int]:
        """Return the counters."""
        return {"pool_taken": self.taken, "pool_returned": self.returned, "pool_exhausted": self.exhausted}
