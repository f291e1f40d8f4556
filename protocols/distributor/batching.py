"""Packing updates into segments, and the decision how long a segment waits for more of them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf

from protocols.distributor.messages import FIRST, LAST, MIDDLE, Content, SubjectUpdates
from protocols.distributor.wire import ENTRY, FIRST_OVERHEAD, OVERHEAD

__all__ = ["HoldBack", "OpenBatch", "Part", "parts_of"]

Part = tuple[int, bytes, str | None, int]
"""Flags, bytes, subject and total size of a part of a large update; only the first has the latter two."""


class OpenBatch:
    """Updates that leave in one datagram of at most `segment` bytes; `since` is when the first of them came."""

    __slots__ = ("_segment", "_subjects", "octets", "since", "updates")

    def __init__(self, segment: int) -> None:
        self._segment = segment
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._subjects: list[SubjectUpdates] = []
        self.octets = OVERHEAD
        self.updates = 0
        self.since = inf

    def is_large(self, subject_size: int, size: int) -> bool:
        """Return whether an update fits into no batch."""
        return OVERHEAD + ENTRY + subject_size + size > self._segment

    def fill(self, subject: str, subject_size: int, contents: Sequence[Content], start: int, now: float) -> int:
        """Add the updates from index `start` on, as many as fit; return the index of the first that does not."""
        room = self._segment - self.octets
        overhead = ENTRY + subject_size
        sizes = list(accumulate(map(len, contents[start : start + room // overhead])))
        fit = bisect_right(range(len(sizes)), room, key=lambda last: sizes[last] + (last + 1) * overhead)
        if not fit:
            return start
        self._add(subject, contents[start : start + fit])
        self.octets += sizes[fit - 1] + fit * overhead
        self.updates += fit
        self.since = min(self.since, now)
        return start + fit

    def _add(self, subject: str, contents: Sequence[Content]) -> None:
        """Add updates to those of the same subject before them, if there are any."""
        last = self._subjects[-1] if self._subjects else None
        if last is not None and last.subject == subject:
            known = last.contents
            assert isinstance(known, list)
            known.extend(contents)
        else:
            self._subjects.append(SubjectUpdates(subject, list(contents)))

    def take(self) -> list[SubjectUpdates]:
        """Return the updates by subject, as tuples, which the events of all receivers share."""
        return [SubjectUpdates(updates.subject, tuple(updates.contents)) for updates in self._subjects]


def parts_of(subject: str, content: bytes, segment: int) -> Iterator[Part]:
    """Yield the parts of a large update, each for one segment of `segment` bytes."""
    first = max(segment - FIRST_OVERHEAD - len(subject.encode()), 0)
    yield FIRST, content[:first], subject, len(content)
    for start in range(first, len(content), segment - OVERHEAD):
        end = start + segment - OVERHEAD
        yield (LAST if end >= len(content) else MIDDLE), content[start:end], None, 0


class HoldBack:
    """Decides whether a segment that has room waits for further updates.

    It does while more than `threshold` segments per second are sent, for at most `delay` seconds, unless nothing was sent for
    as long: a lone update leaves at once. The rate is that of the current or the previous `interval` seconds, the larger one.
    """

    __slots__ = ("_before", "_begun", "_delay", "_interval", "_last", "_segments", "_threshold")

    def __init__(self, delay: float, threshold: float, interval: float) -> None:
        self._delay = delay
        self._threshold = threshold
        self._interval = interval
        self._begun = self._last = -inf
        self._segments = self._before = 0

    def sent(self, now: float) -> None:
        """Count a segment."""
        over = now - self._begun
        if over >= self._interval:
            self._before = self._segments if over < 2 * self._interval else 0
            self._begun, self._segments = now, 0
        self._segments += 1
        self._last = now

    def until(self, since: float, now: float) -> float:
        """Return when a segment is due whose first update came at `since` seconds; -inf if it is due at once."""
        if not self._delay or since - self._last >= self._delay:
            return -inf
        rate = max(self._segments, self._before) / self._interval + 1 if now - self._begun < 2 * self._interval else 1.0
        return since + self._delay if rate > self._threshold else -inf
