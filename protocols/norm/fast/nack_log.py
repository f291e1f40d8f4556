"""NACKs that a group of receivers overheard, kept once for all, and NACK processes that refer to them.

While receivers advance in lockstep, a NACK that does not suppress any of them costs none of them anything: it is entered in the
group's `NackLog`, and a process remembers from which entry to which it overheard, and which of them it lost.
"""

from math import inf

from protocols.norm.backoff import NEVER
from protocols.norm.nack_process import MOST_COMPARED, Decision, NackProcess, Objects, is_block_covered, is_covered
from protocols.norm.position import Point
from protocols.norm.repair_requests import MOST_MERGED, RequestedRepairs
from protocols.norm.rx_object import RxObject
from protocols.norm.sender_profile import SenderProfile
from protocols.rng import Rng

__all__ = ["FastNackProcess", "NackLog", "simple_item"]

OPEN = -1
"""The end of a process that goes on overhearing."""


class NackLog:
    """The requested repairs of NACKs, numbered in the order in which they arrived."""

    __slots__ = ("_base", "_by_block", "_entries", "_irregular", "_mark", "_mark_until", "_sizes", "_times", "_until", "end")

    def __init__(self) -> None:
        self._base = 0
        self.end = 0
        """The number of the next NACK."""
        self._entries: list[RequestedRepairs] = []
        self._times: list[float] = []
        # Items of all NACKs through each one.
        self._sizes: list[int] = []
        # Numbers of NACKs that request whole objects, blocks or NORM_INFO.
        self._irregular: list[int] = []
        self._by_block: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # Entries before `_mark` are needed until `_mark_until`, all others until `_until`.
        self._mark, self._mark_until, self._until = 0, NEVER, NEVER

    def append(self, requested: RequestedRepairs, now: float) -> int:
        """Enter a NACK that arrived now; return its number."""
        number = self.end
        self.end = number + 1
        self._entries.append(requested)
        self._times.append(now)
        self._sizes.append((self._sizes[-1] if self._sizes else 0) + requested.size)
        if requested.objects or requested.infos or requested.blocks:
            self._irregular.append(number)
        for unit, mask in requested.symbols.items():
            known = self._by_block.get(unit)
            if known is None:
                self._by_block[unit] = [(number, mask)]
            else:
                known.append((number, mask))
        return number

    def keep_until(self, until: float) -> None:
        """Keep what is there until this time (seconds)."""
        self._until = max(self._until, until)

    def forget(self, now: float) -> bool:
        """Forget entries that no process needs any more; return whether there were any to consider."""
        if now <= self._mark_until:
            return False
        count = self._mark - self._base
        if count:
            del self._entries[:count], self._times[:count], self._sizes[:count]
            self._base = first = self._mark
            self._irregular = [number for number in self._irregular if number >= first]
            rows = [(unit, [row for row in rows if row[0] >= first]) for unit, rows in self._by_block.items()]
            self._by_block = {unit: kept for unit, kept in rows if kept}
        self._mark, self._mark_until = self.end, self._until
        return True

    def end_before(self, first: int, time: float) -> int:
        """Return the number behind the last NACK, not before `first`, that arrived before `time`."""
        end = self.end
        while end > first and end > self._base and self._times[end - self._base - 1] >= time:
            end -= 1
        return end

    def requested(self, unit: tuple[int, int], first: int, end: int, lost: int) -> int:
        """Return the symbols of (object, block) that the NACKs `first` to `end` - 1 request, as a bit mask.

        `lost` is a bit mask of NACKs that do not count, bit 0 for `first`.
        """
        mask = 0
        for number, symbols in reversed(self._by_block.get(unit, ())):
            if number < first:
                break
            if number < end and not lost >> number - first & 1:
                mask |= symbols
        return mask

    def size(self, first: int, end: int) -> int:
        """Return the items of the NACKs from `first` to `end` - 1, or more where the first of them are forgotten."""
        first, sizes, base = max(first, self._base), self._sizes, self._base
        return 0 if end <= first else sizes[end - base - 1] - (sizes[first - base - 1] if first > base else 0)

    def is_regular(self, first: int, end: int) -> bool:
        """Return whether the NACKs from `first` to `end` - 1 request nothing but symbols."""
        return not any(first <= number < end for number in self._irregular)

    def merged(self, known: RequestedRepairs | None, first: int, end: int, lost: int) -> RequestedRepairs | None:
        """Return what `known` and the NACKs from `first` to `end` - 1 request, merged one after another."""
        for number in range(max(first, self._base), end):
            if not lost >> number - first & 1:
                entry = self._entries[number - self._base]
                known = entry if known is None else known.merged(entry)
        return known


class FastNackProcess(NackProcess):
    """A NACK process that can overhear by a `NackLog`."""

    __slots__ = ("_end", "_first", "_log", "_lost")

    def __init__(self) -> None:
        super().__init__()
        self._log: NackLog | None = None
        self._first = self._end = self._lost = 0

    def begin(self, now: float, tx_point: Point, sender: SenderProfile, rng: Rng) -> bool:
        """Begin a back-off, which has overheard nothing yet."""
        self._log = None
        return super().begin(now, tx_point, sender, rng)

    def follow(self, log: NackLog) -> None:
        """Overhear the NACKs that the log will get."""
        if self._log is not log:
            self._merge()
            self._log, self._first, self._lost = log, log.end, 0
            log.keep_until(self.backoff_end)
        elif self._end != OPEN:
            # What came meanwhile was not overheard.
            self._lost |= (1 << log.end - self._end) - 1 << self._end - self._first
        self._end = OPEN

    def unfollow(self) -> None:
        """Stop overhearing by the log."""
        log = self._log
        if log is not None and self._end == OPEN:
            self._end = log.end_before(self._first, self.backoff_end)

    def miss_last(self) -> None:
        """Note that the last NACK of the log was lost."""
        log = self._log
        if log is not None and self._end == OPEN and log.end > self._first:
            self._lost |= 1 << log.end - 1 - self._first

    def overhear(self, requested: RequestedRepairs, boundary: Point, objects: Objects, now: float) -> Decision:
        """Note what another receiver requested, beside what the log has."""
        if self._log is not None and now < self.backoff_end and self.suppressed_to is None:
            self._merge()
        return super().overhear(requested, boundary, objects, now)

    def covers(self, objects: Objects, boundary: Point, now: float) -> bool:
        """Return whether the NACKs overheard suppress this process, which is in back-off."""
        self._merge()
        known = self.overheard
        is_open = now < self.backoff_end and self.suppressed_to is None and self.is_suppressible
        return is_open and known is not None and is_covered(objects, boundary, known, MOST_COMPARED)

    @property
    def is_regular(self) -> bool:
        """Whether everything overheard are symbols, and not too many to be remembered."""
        log, known = self._log, self.overheard
        if known is not None and (known.objects or known.infos or known.blocks):
            return False
        if log is None:
            return True
        end = log.end if self._end == OPEN else self._end
        size = log.size(self._first, end) + (0 if known is None else known.size)
        return size <= MOST_MERGED and log.is_regular(self._first, end)

    def first_uncovered(self, key: int, item: RxObject) -> Point | None:
        """Return the first missing symbol of an object (`simple_item`) that was not requested, given that all is regular.

        Of an object with parity it is the beginning of the block.
        """
        missing, log, known = item.missing_symbols, self._log, self.overheard
        if missing is None:
            return None
        end = 0 if log is None else log.end if self._end == OPEN else self._end
        has_parity = item.fti.usable > 0
        for block, mask in ((missing.key, missing.item),) if missing.more is None else sorted(missing.items()):
            unit = key, block
            requested = 0 if known is None else known.symbols.get(unit, 0)
            if log is not None:
                requested |= log.requested(unit, self._first, end, self._lost)
            if has_parity:
                if not requested or not is_block_covered(item, block, mask, requested):
                    return key, block, 0
            elif rest := mask & ~requested:
                return key, block, (rest & -rest).bit_length() - 1
        return None

    def _is_covered(self, point: Point, objects: Objects, most: float = inf) -> bool:
        if self._log is None:
            return super()._is_covered(point, objects, most)
        item = simple_item(objects)
        if item is None or objects.key != point[0] or not self.is_regular:
            self._merge()
            return super()._is_covered(point, objects, most)
        uncovered = self.first_uncovered(objects.key, item)
        return uncovered is None or uncovered >= ((*point[:2], 0) if item.fti.usable else point)

    def _merge(self) -> None:
        """Merge what was overheard by the log, which is not needed any more then."""
        log = self._log
        if log is not None:
            end = log.end if self._end == OPEN else self._end
            self.overheard = log.merged(self.overheard, self._first, end, self._lost)
            self._log = None


def simple_item(objects: Objects) -> RxObject | None:
    """Return the incomplete object, if it is the only one, and only symbols of not too many blocks of it are missing."""
    item = objects.item
    if item is None or item.missing_blocks or (item.wants_info and item.info is None):
        return None
    missing = item.missing_symbols
    return item if missing is not None and (missing.more is None or len(missing.more) < MOST_COMPARED) else None
