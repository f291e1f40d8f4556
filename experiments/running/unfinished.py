"""The unfinished files of a receiver: how many there may be, what they claim, and which one is given up for another.

Whoever can send to the group can announce objects, and never send the rest. An object that brings nothing must not keep out one
that does, and a new one must not displace one under way, however many are announced.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Generic, Protocol, TypeVar

from experiments.running.files import Spool

__all__ = ["GIVEN_UP", "MOST_OBJECTS", "NEW", "SILENT", "Progress", "Tracked", "Unfinished"]

MOST_OBJECTS = 4096
"""Unfinished files of all senders; of one sender, the receiver's `window` is the limit."""
MOST_NEW = MOST_OBJECTS // 4
"""New ones among them, from which on a new one is given up and not an established one."""
NEW = 16
"""Segments up to which a file counts as new."""
SILENT = 10.0
"""Seconds without a segment after which a file can be given up for want of space."""
MOST_WAITING = 32 << 20
"""Bytes that wait in memory to be written; when there are more, each segment is written at once."""

GIVEN_UP = "given up for other files"

T = TypeVar("T", bound="Progress")


class Progress(Protocol):
    """Content that is not complete: `size` bytes, `written` of them stored, `flushed` of these on the disk."""

    size: int
    written: int
    flushed: int
    segments: int
    heard: float

    @property
    def is_new(self) -> bool:
        """Whether too little has been stored to tell it from an object that only was announced."""


class Tracked(Spool):
    """Content of which `Unfinished` keeps track: how many segments were stored, and when the last one."""

    __slots__ = ("heard", "segments")

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.segments = 0
        self.heard = monotonic()

    @property
    def is_new(self) -> bool:
        """Whether too little has been stored to tell it from an object that only was announced."""
        return self.segments < NEW


class Unfinished(Generic[T]):
    """Unfinished files in the order of their last segments, new ones apart from established ones.

    `claimed` is the number of bytes that were announced and are not on the disk yet, `waiting` how many of them are in memory.
    """

    def __init__(self) -> None:
        self.claimed = self.waiting = 0
        self._new: dict[T, None] = {}
        self._established: dict[T, None] = {}
        self._last: T | None = None

    def __len__(self) -> int:
        return len(self._new) + len(self._established)

    def __contains__(self, sink: T) -> bool:
        return sink in self._established or sink in self._new

    def __iter__(self) -> Iterator[T]:
        return iter([*self._new, *self._established])

    def add(self, sink: T) -> None:
        """Add a new file."""
        self._new[sink] = None
        self.claimed += sink.size

    def remove(self, sink: T) -> None:
        """Remove a file that is complete or given up."""
        if self._last is sink:
            self._last = None
        if sink in self._new:
            del self._new[sink]
        else:
            del self._established[sink]
        self.claimed -= sink.size - sink.flushed
        self.waiting -= sink.written - sink.flushed

    def stored(self, sink: T, octets: int) -> bool:
        """Note that a segment was stored; return whether too much waits in memory."""
        self.waiting += octets
        if sink.segments < NEW:
            sink.segments += 1
            del self._new[sink]
            (self._new if sink.is_new else self._established)[sink] = None
        elif self._last is not sink:
            del self._established[sink]
            self._established[sink] = None
        self._last = sink
        return self.waiting > MOST_WAITING

    def flushed(self, octets: int) -> None:
        """Note that bytes were written to the disk."""
        self.claimed -= octets
        self.waiting -= octets

    def surplus(self) -> T | None:
        """Return the file to be given up for a new one, of those silent longest; None if there is room."""
        if len(self) < MOST_OBJECTS:
            return None
        return next(iter(self._new if len(self._new) >= MOST_NEW else self._established))

    def idle(self, size: int, needed: float) -> list[T]:
        """Return files to give up for one of `size` bytes, so that `needed` bytes become free: silent or new and larger ones.

        An empty list if these are not enough.
        """
        silent_since, chosen = monotonic() - SILENT, []
        for sink in self:
            if sink.heard < silent_since or (sink.is_new and sink.size > size):
                chosen.append(sink)
                needed -= sink.size
                if needed <= 0:
                    return chosen
        return []

    def silent_on_disk(self) -> T | None:
        """Return a silent file that takes space on the disk; None without any."""
        silent_since = monotonic() - SILENT
        return next((sink for sink in self if sink.flushed and sink.heard < silent_since), None)
