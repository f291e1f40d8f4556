"""The transmission queues of a publisher: one for each priority, served strictly or by weight."""

from collections import deque
from typing import Final, Generic, TypeVar

from protocols.messaging import MOST_PRIORITY

__all__ = ["PriorityQueues"]

T = TypeVar("T")
QUEUES: Final = MOST_PRIORITY + 1


class PriorityQueues(Generic[T]):
    """Ten queues of `limit` entries each.

    Strictly, the highest priority that waits is next. By weight, priority p gets p + 1 shares of the bytes among those that
    wait (start-time fair queueing): an entry is served in the order of the virtual time at which its queue would begin it.
    """

    __slots__ = ("_finish", "_is_strict", "_limit", "_queues", "_virtual", "longest", "waiting")

    def __init__(self, limit: int, is_strict: bool) -> None:
        self._limit = limit
        self._is_strict = is_strict
        self._queues: list[deque[tuple[float, T]]] = [deque() for _ in range(QUEUES)]
        self._finish = [0.0] * QUEUES
        self._virtual = 0.0
        self.waiting = 0
        """Entries in all queues."""
        self.longest = [0] * QUEUES
        """The most entries that each queue has had."""

    def is_full(self, priority: int) -> bool:
        """Return whether the queue of a priority has no room."""
        return len(self._queues[priority]) >= self._limit

    def depths(self) -> list[int]:
        """Return the entries of each queue."""
        return [len(queue) for queue in self._queues]

    def push(self, priority: int, size: int, entry: T) -> None:
        """Append an entry of `size` bytes to the queue of its priority."""
        start = max(self._virtual, self._finish[priority])
        self._finish[priority] = start + size / (priority + 1)
        queue = self._queues[priority]
        queue.append((start, entry))
        self.waiting += 1
        self.longest[priority] = max(self.longest[priority], len(queue))

    def pop(self) -> T | None:
        """Remove and return what is to be sent next; None if nothing waits."""
        if not self.waiting:
            return None
        ready = (priority for priority in range(QUEUES - 1, -1, -1) if self._queues[priority])
        priority = next(ready) if self._is_strict else min(ready, key=lambda each: self._queues[each][0][0])
        start, entry = self._queues[priority].popleft()
        self._virtual = max(self._virtual, start)
        self.waiting -= 1
        return entry
