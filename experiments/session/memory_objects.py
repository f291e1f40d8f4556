"""Received objects that are kept in memory, within a limit."""

from collections import deque
from time import monotonic

from experiments.running.unfinished import GIVEN_UP, NEW, Unfinished
from protocols.machine import Offer
from topologies.units import format_size

__all__ = ["MemoryObject", "MemoryObjects"]

LEAST = 1024
"""Bytes that an object counts for at least, since an empty one takes memory, too."""


class MemoryObject:
    """A sink that stores an object in memory; the memory is taken with the first segment."""

    __slots__ = ("_data", "_objects", "aborted", "flushed", "heard", "offer", "segments", "size", "written")

    def __init__(self, objects: "MemoryObjects", offer: Offer) -> None:
        self._objects = objects
        self._data = bytearray()
        self.aborted = False
        self.offer = offer
        self.size = max(offer.size, LEAST)
        self.written = self.flushed = self.segments = 0
        self.heard = monotonic()

    @property
    def is_new(self) -> bool:
        """Whether too little has been stored to tell it from an object that only was announced."""
        return self.segments < NEW

    @property
    def ended(self) -> bool:
        """Whether the object is complete or given up."""
        return self not in self._objects.unfinished

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one outside the object, and when it was given up for others."""
        if self.ended:
            raise OSError(GIVEN_UP)
        end = offset + len(data)
        if end > self.offer.size:
            raise OSError(f"segment [{offset}, {end}) lies outside an object of {self.offer.size} bytes")
        if not self._data:
            self._data = bytearray(self.offer.size)
        self._data[offset:end] = data
        self.heard = monotonic()
        self._objects.unfinished.stored(self, 0)

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`."""
        return bytes(self._data[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Keep the complete object until the program takes it."""
        del info
        if self.ended:
            raise OSError(GIVEN_UP)
        self._objects.completed(self)

    def abort(self) -> None:
        """Free the memory of an incomplete object."""
        self._data, self.aborted = bytearray(), True
        if not self.ended:
            self._objects.unfinished.remove(self)

    def taken(self) -> bytes:
        """Return the content, which does not count any more."""
        data, self._data = bytes(self._data), bytearray()
        self._objects.complete -= self.size
        return data


class MemoryObjects:
    """The objects in memory: unfinished ones, and complete ones that the program has not taken, in `limit` bytes.

    Objects that were announced and are not sent give way to others, as files do (`experiments.running.unfinished`); those that
    were given up are in `given_up`, with the reason.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unfinished: Unfinished[MemoryObject] = Unfinished()
        self.complete = 0
        """Bytes of complete objects."""
        self.given_up: deque[tuple[Offer, str]] = deque()

    def sink(self, offer: Offer) -> MemoryObject | str:
        """Return the sink of an offered object, or why there is no room for it."""
        surplus = self.unfinished.surplus()
        if surplus is not None:
            self._give_up(surplus, "the one silent longest of too many unfinished objects")
        sink = MemoryObject(self, offer)
        lacking = self.complete + self.unfinished.claimed + sink.size - self.limit
        if lacking > 0:
            idle = self.unfinished.idle(sink.size, lacking)
            if not idle:
                taken = f"{format_size(self.complete)} wait to be read, {format_size(self.unfinished.claimed)} are under way"
                return f"{format_size(offer.size)} were announced, the memory for objects is {format_size(self.limit)}; {taken}"
            for other in idle:
                self._give_up(other, "idle, and others need its memory")
        self.unfinished.add(sink)
        return sink

    def completed(self, sink: MemoryObject) -> None:
        """Note that an object is complete."""
        self.unfinished.remove(sink)
        self.complete += sink.size

    def _give_up(self, sink: MemoryObject, reason: str) -> None:
        self.given_up.append((sink.offer, reason))
        sink.abort()
