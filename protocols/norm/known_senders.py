"""The senders a receiver knows, and when each is to be woken."""

from heapq import heapify, heappop, heappush
from math import inf

from protocols.norm.sender_state import SenderState

__all__ = ["KnownSenders"]

TRIES = 8
"""Senders looked at to find one that can be forgotten."""
SPARE = 64
"""Outdated deadlines that are kept beyond one per sender."""


class KnownSenders(dict[int, SenderState]):
    """Node id -> state. A deadline that changes costs the logarithm of the number of senders, a message no more than that.

    A deadline may be noted too early, never too late.
    """

    __slots__ = ("_heap", "_noted")

    def __init__(self) -> None:
        super().__init__()
        # Every finite deadline of `_noted` is in the heap, beside others that do not count any more.
        self._heap: list[tuple[float, int]] = []
        self._noted: dict[int, float] = {}

    def note(self, node: int, deadline: float) -> None:
        """Note when a sender is to be woken."""
        if self._noted.get(node) == deadline:
            return
        self._noted[node] = deadline
        if deadline < inf:
            heappush(self._heap, (deadline, node))
            if len(self._heap) > 2 * len(self._noted) + SPARE:
                self._heap = [(when, each) for each, when in self._noted.items() if when < inf]
                heapify(self._heap)

    def deadline(self) -> float:
        """Return the first deadline; inf for none."""
        heap, noted = self._heap, self._noted
        while heap and noted.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def due(self, now: float) -> list[SenderState]:
        """Return the senders to be woken now, in the order of the mapping; their deadlines are to be noted again."""
        nodes: dict[int, None] = {}
        while self.deadline() <= now:
            node = heappop(self._heap)[1]
            self._noted[node] = inf
            nodes[node] = None
        if len(nodes) < 2:
            return [self[node] for node in nodes]
        return [state for node, state in self.items() if node in nodes]

    def forget_one(self) -> SenderState | None:
        """Remove and return a sender that is new, silent or not joined; None if there is none among the next few.

        The others move to the end, so that all are looked at in turn.
        """
        for _ in range(min(TRIES, len(self))):
            node = next(iter(self))
            state = self.pop(node)
            if not state.is_established:
                del self._noted[node]
                return state
            self[node] = state
        return None
