"""NACKs that a group of receivers overheard, kept once for all, and NACK processes that refer to them.

A NACK that suppresses a receiver costs it something, any other nothing: it is entered in the group's `NackLog`, and a process
remembers from which entry on it overheard, and which it lost.
"""

from math import inf
from typing import Any

from protocols.norm.backoff import NEVER
from protocols.norm.maps import BlockBitmaps
from protocols.norm.nack_process import (
    MOST_COMPARED,
    NOTHING,
    SUPPRESS,
    Decision,
    NackProcess,
    Objects,
    is_covered,
)
from protocols.norm.position import Point
from protocols.norm.repair_requests import MOST_MERGED, RequestedRepairs
from protocols.norm.rx_object import RxObject
from protocols.norm.sender_profile import SenderProfile
from protocols.rng import Rng

__all__ = ["MOST_BLOCKS", "SYMBOLS", "FastNackProcess", "NackLog", "is_covered_by_count", "simple_item"]

OPEN = -1
"""The end of a process that goes on overhearing."""
SYMBOLS = (1 << 256) - 1
"""The symbols that a block can have, as a bit mask."""
MOST_BLOCKS = 64
"""Incomplete blocks behind the first, beyond which a receiver is asked at every repair and every NACK."""


class NackLog:
    """The requested repairs of NACKs, numbered in the order in which they arrived."""

    __slots__ = (
        "_base",
        "_by_block",
        "_entries",
        "_irregular",
        "_last_answer",
        "_last_query",
        "_mark",
        "_mark_until",
        "_merged",
        "_named",
        "_times",
        "_until",
        "end",
        "size",
    )

    def __init__(self) -> None:
        self._base = 0
        self.end = 0
        """The number of the next NACK."""
        self._entries: list[RequestedRepairs] = []
        self._times: list[float] = []
        # Results of `merged` since the last NACK.
        self._merged: dict[tuple[int, int, int], RequestedRepairs | None] = {}
        # The last arguments and result of `first_unrequested` since the last NACK.
        self._last_query: tuple[Any, ...] | None = None
        self._last_answer: Point | None = None
        self.size = self._irregular = 0
        # Block -> symbol -> the NACKs that request it; and the symbols of each block as a bit mask.
        self._by_block: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._named: dict[tuple[int, int], int] = {}
        # Entries before `_mark` are needed until `_mark_until`, all others until `_until`.
        self._mark, self._mark_until, self._until = 0, NEVER, NEVER

    def append(self, requested: RequestedRepairs, now: float) -> None:
        """Enter a NACK that arrived now."""
        number = self.end
        self.end = number + 1
        self._entries.append(requested)
        self._times.append(now)
        self._merged.clear()
        self._last_query = None
        self.size += requested.size
        self._irregular += _is_irregular(requested)
        for unit, mask in requested.units():
            row = self._by_block.get(unit)
            if row is None:
                row = self._by_block[unit] = {}
            mask &= SYMBOLS
            self._named[unit] = self._named.get(unit, 0) | mask
            while mask:
                low = mask & -mask
                mask ^= low
                symbol = low.bit_length() - 1
                if symbol in row:
                    row[symbol].append(number)
                else:
                    row[symbol] = [number]

    def keep_until(self, until: float) -> None:
        """Keep what is there until this time (seconds)."""
        self._until = max(self._until, until)

    def forget(self, now: float) -> bool:
        """Forget entries that no process needs any more; return whether a period of entries is over."""
        if now <= self._mark_until:
            return False
        count = self._mark - self._base
        if count:
            gone = self._entries[:count]
            self.size -= sum([entry.size for entry in gone])
            self._irregular -= sum(map(_is_irregular, gone))
            del self._entries[:count], self._times[:count]
            self._base = first = self._mark
            for unit, row in list(self._by_block.items()):
                kept = {symbol: numbers for symbol, numbers in row.items() if numbers[-1] >= first}
                if kept:
                    self._by_block[unit] = kept
                    self._named[unit] = sum([1 << symbol for symbol in kept])
                else:
                    del self._by_block[unit], self._named[unit]
        self._mark, self._mark_until = self.end, self._until
        return True

    @property
    def is_followed(self) -> bool:
        """Whether any process has ever overheard by the log."""
        return self._until > NEVER

    @property
    def last(self) -> RequestedRepairs | None:
        """The last NACK."""
        return self._entries[-1] if self._entries else None

    @property
    def is_regular(self) -> bool:
        """Whether no NACK requests whole objects or blocks, and they are not too many for a process to remember them all."""
        return not self._irregular and self.size <= MOST_MERGED

    def end_before(self, first: int, time: float) -> int:
        """Return the number behind the last NACK, not before `first`, that arrived before `time`."""
        end, times, base = self.end, self._times, self._base
        while end > first and end > base and times[end - base - 1] >= time:
            end -= 1
        return end

    def requested(self, unit: tuple[int, int], among: int, first: int, end: int, lost: int) -> int:
        """Return those symbols `among` of (object, block), a bit mask, that the NACKs from `first` to `end` - 1 request.

        `lost` is a bit mask of NACKs that do not count, bit 0 for `first`.
        """
        rest, found = among & self._named.get(unit, 0), 0
        if not rest:
            return 0
        row = self._by_block[unit]
        while rest:
            low = rest & -rest
            rest ^= low
            for number in reversed(row[low.bit_length() - 1]):
                if number < first:
                    break
                if number < end and not (lost and lost >> number - first & 1):
                    found |= low
                    break
        return found

    def first_unrequested(self, key: int, missing: list[tuple[int, int]], first: int, end: int, lost: int) -> Point | None:
        """Return the first missing symbol (object, block, symbol) that no NACK requests; None if all are requested.

        `missing` are the blocks of object `key` in order, each with a bit mask of symbols; `first`, `end` and `lost` as in
        `requested`. The last result is kept, since receivers that lost the same packets on a shared link need the same.
        """
        query = key, missing, first, end, lost
        if query != self._last_query:
            self._last_query, self._last_answer = query, None
            for block, mask in missing:
                rest = mask & ~self.requested((key, block), mask, first, end, lost)
                if rest:
                    self._last_answer = key, block, (rest & -rest).bit_length() - 1
                    break
        return self._last_answer

    def merged(self, known: RequestedRepairs | None, first: int, end: int, lost: int) -> RequestedRepairs | None:
        """Return what `known` and the NACKs from `first` to `end` - 1 request, merged one after another."""
        if known is not None:
            return self._merge(known, first, end, lost)
        # The same for all receivers that began their back-off together.
        key = first, end, lost
        if key not in self._merged:
            self._merged[key] = self._merge(None, first, end, lost)
        return self._merged[key]

    def _merge(self, known: RequestedRepairs | None, first: int, end: int, lost: int) -> RequestedRepairs | None:
        for number in range(max(first, self._base), end):
            if not lost >> number - first & 1:
                entry = self._entries[number - self._base]
                known = entry if known is None else known.merged(entry)
        return known


def _is_irregular(requested: RequestedRepairs) -> bool:
    """Return whether more than symbols is requested of receivers that only miss symbols; NORM_INFO is nothing to them."""
    return bool(requested.objects or requested.blocks)


class FastNackProcess(NackProcess):
    """A NACK process that can overhear by a `NackLog`."""

    __slots__ = ("_end", "_first", "_lost", "log")

    def __init__(self) -> None:
        super().__init__()
        self.log: NackLog | None = None
        self._first = self._end = self._lost = 0

    def begin(self, now: float, tx_point: Point, sender: SenderProfile, rng: Rng) -> bool:
        """Begin a back-off, which has overheard nothing yet."""
        self.log = None
        return NackProcess.begin(self, now, tx_point, sender, rng)

    def follow(self, log: NackLog) -> None:
        """Overhear the NACKs that the log will get."""
        if self.log is not log:
            self.unlink()
            self.log, self._first, self._lost = log, log.end, 0
            log.keep_until(self.backoff_end)
        elif self._end != OPEN:
            # What came meanwhile was not overheard.
            self._lost |= (1 << log.end - self._end) - 1 << self._end - self._first
        self._end = OPEN

    def miss_last(self, log: NackLog) -> None:
        """Note that the last NACK of a log was lost."""
        if self.log is log and self._end == OPEN and log.end > self._first:
            self._lost |= 1 << log.end - 1 - self._first

    def suppress(self, boundary: Point) -> None:
        """Wait for nothing, and overhear nothing more."""
        if self.log is not None:
            self._end = self._present_end()
        self.suppressed_to, self.due = boundary, inf

    def overhear(self, requested: RequestedRepairs, boundary: Point, objects: Objects, now: float) -> Decision:
        """Note what another receiver requested, if the log does not have it already."""
        log = self.log
        if log is None or now >= self.backoff_end or self.suppressed_to is not None:
            return super().overhear(requested, boundary, objects, now)
        count = log.end - self._first
        if self._end != OPEN or not count or log.last is not requested or self._lost >> count - 1 & 1:
            # It did not come by the group.
            self.unlink()
            return super().overhear(requested, boundary, objects, now)
        if not self.covers(boundary, objects):
            return NOTHING
        self.suppress(boundary)
        return SUPPRESS

    def covers(self, boundary: Point, objects: Objects) -> bool:
        """Return whether what was overheard requests everything missing before `boundary`."""
        return self._is_covered(boundary, objects, MOST_COMPARED)

    @property
    def has_heard_nothing(self) -> bool:
        """Whether nothing was overheard, so that nothing that is missing was requested."""
        return self.overheard is None and (self.log is None or self._first == self.log.end)

    @property
    def is_regular(self) -> bool:
        """Whether no whole objects or blocks were requested in what was overheard, and it is not too much to be remembered."""
        known, log = self.overheard, self.log
        if known is None:
            return log is None or log.is_regular
        return not _is_irregular(known) and (log is None or (log.is_regular and known.size + log.size <= MOST_MERGED))

    def first_uncovered(self, key: int, item: RxObject) -> Point | None:
        """Return the first missing symbol of an object (`simple_item`) that was not requested, given that all is regular."""
        missing, log, known = item.missing_symbols, self.log, self.overheard
        if missing is None:
            return None
        end = self._present_end()
        by_block = [(missing.key, missing.item)] if missing.more is None else sorted(missing.items())
        if known is None and log is not None:
            return log.first_unrequested(key, by_block, self._first, end, self._lost)
        for block, mask in by_block:
            rest = mask if known is None else mask & ~known.mask(key, block)
            if rest and log is not None:
                rest &= ~log.requested((key, block), rest, self._first, end, self._lost)
            if rest:
                return key, block, (rest & -rest).bit_length() - 1
        return None

    def _present_end(self) -> int:
        """Return the number behind the last NACK of the log that counts: none does that arrives at the end of the back-off."""
        log = self.log
        if log is None or self._end != OPEN:
            return self._end
        return log.end_before(self._first, self.backoff_end)

    def _is_covered(self, point: Point, objects: Objects, most: float = inf) -> bool:
        if self.log is None:
            asked, known = self.overheard, objects.item
            if asked is None or known is None or objects.key != point[0]:
                return asked is not None and is_covered(objects, point, asked, most)
            usable = 0 if asked.objects or asked.blocks else known.fti.usable
            return is_covered_by_count(objects, known, point, asked, asked.counts(point[0], known.fti), usable, most)
        item = simple_item(objects)
        if item is not None and objects.key == point[0] and self.is_regular:
            uncovered = self.first_uncovered(objects.key, item)
            return uncovered is None or uncovered >= point
        self._merge(self.log)
        return self.overheard is not None and is_covered(objects, point, self.overheard, most)

    def _merge(self, log: NackLog) -> None:
        """Merge what was overheard by the log so far, once for each NACK."""
        first, end = self._first, self._present_end()
        if end > first:
            self.overheard = log.merged(self.overheard, first, end, self._lost)
            self._first, self._lost = end, self._lost >> end - first

    def unlink(self) -> None:
        """Merge what was overheard by the log, which is not needed any more then."""
        log = self.log
        if log is not None:
            self._merge(log)
            self.log = None


def is_covered_by_count(
    objects: Objects,
    item: RxObject,
    point: Point,
    asked: RequestedRepairs,
    counts: dict[int, int],
    usable: int,
    most: float = MOST_COMPARED,
) -> bool:
    """As `is_covered` for the object that is being sent; parity that was never sent, the usual case, is compared by count.

    `counts` is `asked.counts` of it, and `usable` is how many may be parity; 0: compare nothing by count.
    """
    missing, parity, end = item.missing_symbols, item.parity, point[1]
    if usable and end and missing is not None and not item.missing_blocks and item.info is not None:
        node: BlockBitmaps = missing
        while (block := node.key) < end:
            count, lacking, left = counts.get(block, -1), node.item.bit_count(), usable
            if count < 0:
                count = counts[block] = asked.count(point[0], item.fti, block)
            if parity is not None:
                heard = parity.get(block, 0)
                lacking -= heard.bit_count()
                left -= heard.bit_length()
            if count < lacking:
                return False
            if count > left:
                break
            more = node.more
            if more is None:
                return True
            if isinstance(more, dict):
                break
            node = more
        else:
            if block > end or not point[2]:
                return True
    return is_covered(objects, point, asked, most)


def simple_item(objects: Objects) -> RxObject | None:
    """Return the incomplete object if it is the only one, has no parity, and misses symbols of few blocks only."""
    item = objects.item
    if item is None or item.missing_blocks or item.info is None or item.fti.is_coded:
        return None
    missing = item.missing_symbols
    return None if missing is None or missing.has_more_than(MOST_BLOCKS) else item
