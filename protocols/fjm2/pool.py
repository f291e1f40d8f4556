"""Containers of messages, from pools by size class: memory is allocated once, used again, and bounded.

Between two powers of two there are eight classes, in equal steps. So a container is at most an eighth larger than its message,
also where messages are a head longer than a power of two.
"""

from collections.abc import Callable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final, Generic, TypeVar

__all__ = ["Container", "Pool"]

_LARGE: Final = 128 << 10
"""Bytes of a container from which on its memory is mapped, page by page as it is written to."""
_SMALLEST: Final = 256
"""Bytes of the smallest containers."""
_STEPS: Final = 8
"""Classes between two powers of two."""
_FIRST_SHIFT: Final = (_SMALLEST // _STEPS).bit_length() - 1
_STEP_BITS: Final = _STEPS.bit_length()
# One number for each class, which all containers share.
_CLASSES: Final = [_SMALLEST, *((_STEPS + step) << shift for shift in range(_FIRST_SHIFT, 60) for step in range(1, _STEPS + 1))]
_FIRST_CLASS: Final = 1 - _STEPS * (_FIRST_SHIFT + 1)
"""The place in `_CLASSES` at which the classes of shift 0 would begin."""


def _pages(octets: int) -> mmap:
    """Return zeros of which only the pages that are written to take memory: what a forged message announces takes none."""
    return mmap(-1, octets, flags=MAP_PRIVATE | MAP_ANONYMOUS)


class Container:
    """Memory for one message. It is allocated when it is first used, since in a simulation many are only counted."""

    __slots__ = ("_memory", "octets", "size")

    def __init__(self, octets: int) -> None:
        self.octets = octets
        """Bytes of the class."""
        self.size = 0
        """Bytes of the message."""
        self._memory: memoryview | None = None

    @property
    def is_allocated(self) -> bool:
        """Whether it was used."""
        return self._memory is not None

    @property
    def memory(self) -> memoryview:
        """The memory; what it holds behind `size` bytes is of earlier messages.

        A view, since bytes that are assigned to a slice of a bytearray are copied twice.
        """
        if self._memory is None:
            self._memory = memoryview(bytearray(self.octets) if self.octets < _LARGE else _pages(self.octets))
        return self._memory


C = TypeVar("C", bound=Container)


class Pool(Generic[C]):
    """At most `limit` bytes of containers, those in use and those that wait to be used again; `make(octets)` makes one."""

    __slots__ = ("_free", "_make", "exhausted", "held", "limit", "returned", "taken")

    def __init__(self, limit: int, make: Callable[[int], C]) -> None:
        self.limit = limit
        self._make = make
        self._free: dict[int, list[C]] | None = None
        self.held = 0
        """Bytes of the containers in use."""
        self.taken = self.returned = self.exhausted = 0
        """How often a container was taken, given back, and wanted in vain."""

    @staticmethod
    def octets_for(size: int) -> int:
        """Return the bytes of the container for a message of `size` bytes."""
        if size <= _SMALLEST:
            return _CLASSES[0]
        last = size - 1
        shift = last.bit_length() - _STEP_BITS
        return _CLASSES[_STEPS * shift + (last >> shift) + _FIRST_CLASS]

    def fits(self, size: int) -> bool:
        """Return whether a message of this size has room in the empty pool."""
        return self.octets_for(size) <= self.limit

    def take(self, size: int, made: C | None = None) -> C | None:
        """Return a container for a message of `size` bytes, or None if the pool has no room for it now.

        `made` is a container of the right class that exists already and counts as one of this pool; None: one that is free, or
        a new one.
        """
        octets = self.octets_for(size)
        if self.held + octets > self.limit:
            self.exhausted += 1
            return None
        free = None if self._free is None or made is not None else self._free.get(octets)
        if free:
            container = free.pop()
        else:
            self._make_room(octets)
            container = self._make(octets) if made is None else made
        container.size = size
        # A pool with one container, as most have in a simulation, has no number of its own.
        self.held = self.held + octets if self.held else octets
        self.taken += 1
        return container

    def _make_room(self, octets: int) -> None:
        """Drop containers of other classes that nobody uses, so that one more of `octets` bytes keeps the limit."""
        if self._free is None:
            return
        excess = self.allocated() + octets - self.limit
        for other in sorted(self._free, reverse=True) if excess > 0 else ():
            free = self._free[other]
            while free and excess > 0:
                free.pop()
                excess -= other

    def allocated(self) -> int:
        """Return the bytes of all containers, those in use and those that wait to be used again."""
        return self.held if self._free is None else self.held + sum([octets * len(free) for octets, free in self._free.items()])

    def give_back(self, container: C) -> None:
        """Give a container back; whoever took it does not use it any more."""
        self.held -= container.octets
        self.returned += 1
        # Of a container that is not allocated, nothing is there to be used again.
        if container.is_allocated:
            self._keep(container)

    def _keep(self, container: C) -> None:
        """Keep a container for another message."""
        if self._free is None:
            self._free = {}
        self._free.setdefault(container.octets, []).append(container)

    def counts(self) -> dict[str, int]:
        """Return the counters."""
        return {"pool_taken": self.taken, "pool_returned": self.returned, "pool_exhausted": self.exhausted}
