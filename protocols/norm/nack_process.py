"""The NACK process of a receiver (RFC 5740 5.3): back-off, suppression, hold-off, and the content of its NACKs.

`NackProcess` decides; it is given what is missing and returns a `Decision`. Behind it stand what is missing as repair requests
(RFC 5740 4.3.1), and whether the requests of others cover it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.grtt import RTT_FLOOR
from protocols.norm.maps import NONE, SmallDict, bit_runs, lowest, without_lowest
from protocols.norm.position import Point, is_before
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.requests import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.rx_object import RxObject
from protocols.norm.sender_profile import SenderProfile
from protocols.norm.wire.sizes import ID_SIZES, ITEM_HEADER, REQUEST_HEADER
from protocols.rng import Rng
from protocols.serial import ahead

__all__ = [
    "BEGIN",
    "MOST_COMPARED",
    "NOTHING",
    "PATIENT",
    "RESUME",
    "STUBBORN",
    "SUPPRESS",
    "Decision",
    "MissingRange",
    "NackProcess",
    "contents_for",
    "is_block_covered",
    "is_covered",
    "is_missing_before",
    "missing_before",
    "most_ranges",
    "nack_size",
]

Objects = SmallDict[RxObject | None]
MOST_NACKS: Final = 4
"""NACK messages one receiver sends at once."""
PATIENT: Final = 8
LEAST_PATIENT: Final = 18
"""Fruitless back-offs after which each doubles the hold-off, and after which it does not grow any more."""
STUBBORN: Final = 3
"""Fruitless back-offs after which the requests of others do not suppress a NACK: the sender may ignore those others."""
LONGEST_NACK: Final = 8000
"""Bytes of the requests of a NACK at the most; what has no room is requested in the next round."""
SMALLEST_ITEM: Final = ITEM_HEADER + min(ID_SIZES.values())
"""Bytes of an item of a NACK at the least."""
MOST_COMPARED: Final = 1024
"""Incomplete blocks of an object that are compared with what another receiver requested when that is overheard."""


@dataclass(slots=True)
class MissingRange:
    """Consecutive missing units: `count` objects, NORM_INFO of objects, blocks of an object or symbols of a block."""

    level: int
    first: Item
    last: Item
    count: int = 1
    m: int = 0
    """`Fti.m` of the object where blocks or symbols of it are named."""

    def __init__(self, level: int, first: Item, last: Item, count: int = 1, m: int = 0) -> None:
        self.level = level
        self.first = first
        self.last = last
        self.count = count
        self.m = m

    def is_same_as(self, other: "MissingRange") -> bool:
        """Return whether both name the same units."""
        return self.level == other.level and self.first == other.first and self.last == other.last


class Decision(Enum):
    """Results of the inputs of a NACK process: what the receiver does next."""

    NOTHING = "nothing"
    BEGIN = "begin a back-off"
    RESUME = "wait for the end of the back-off after all"
    SUPPRESS = "send no NACK, because others requested everything"
    REQUEST = "send a NACK"
    NEEDLESS = "send no NACK, because nothing is missing any more"


NOTHING, BEGIN, RESUME, SUPPRESS = Decision.NOTHING, Decision.BEGIN, Decision.RESUME, Decision.SUPPRESS
# To look a member up in its class takes longer than most inputs.


class NackProcess:
    """One receiver's NACK process towards one sender; exists from a loss until nothing is missing.

    It is in back-off until `backoff_end` and in hold-off until `holdoff_end`. Only a back-off that may end in a NACK needs a
    wake-up, `due`. When other receivers have requested everything already, the process is suppressed at once: `due` is inf, but
    both times stay, so that a loss found before `backoff_end` that nobody requested still leads to a NACK then.
    """

    __slots__ = ("_asked", "backoff_end", "due", "fruitless", "holdoff_end", "noted", "overheard", "suppressed_to")

    def __init__(self) -> None:
        self.noted: Point = (0, 0, 0)
        """The sender's transmit point when the process began, or the lowest point it rewound to since."""
        self.backoff_end = NEVER
        self.holdoff_end = NEVER
        self.overheard: RequestedRepairs | None = None
        """The repairs other receivers have requested during the back-off."""
        self.suppressed_to: Point | None = None
        """Others have requested everything before this point; None while the process is not suppressed."""
        self.due = inf
        """When to be woken."""
        self.fruitless = 0
        """Back-offs in a row at whose end the same was missing first as at the end of the one before."""
        self._asked: MissingRange | None = None

    def is_idle_before(self, point: Point, now: float) -> bool:
        """Return whether `check` would return NOTHING, given that `now` is before `holdoff_end`. False when in doubt."""
        suppressed_to = self.suppressed_to
        return suppressed_to is None or now >= self.backoff_end or (point[0] == suppressed_to[0] and point <= suppressed_to)

    def check(self, point: Point, objects: Objects, now: float) -> Decision:
        """Look for missing content before `point`: BEGIN, RESUME or NOTHING. A back-off or hold-off is not begun anew."""
        if now >= self.backoff_end:
            return NOTHING if now < self.holdoff_end or not is_missing_before(objects, point) else BEGIN
        suppressed_to = self.suppressed_to
        if suppressed_to is None or not is_before(suppressed_to, point):
            return NOTHING
        self.suppressed_to = point
        if self._is_covered(point, objects, MOST_COMPARED):
            return NOTHING
        self.suppressed_to = None
        self.due = self.backoff_end
        return RESUME

    def begin(self, now: float, tx_point: Point, sender: SenderProfile, rng: Rng) -> bool:
        """Begin a back-off with the sender's timing; return whether it takes any time. If not, `expire` is to be called."""
        factor, grtt = sender.backoff, sender.grtt
        wait = backoff(rng.uniform(), factor * grtt, sender.group_size) if factor else 0.0
        self.backoff_end = now + wait
        rest = _holdoff(sender)
        if self.fruitless > PATIENT:
            rest *= 1 << min(self.fruitless, LEAST_PATIENT) - PATIENT
        self.holdoff_end = self.backoff_end + rest
        self.noted = tx_point
        self.overheard = self.suppressed_to = None
        if wait > 0.0:
            self.due = self.backoff_end
        return wait > 0.0

    def shorten(self, sender: SenderProfile) -> None:
        """Let a hold-off that is prolonged end as if no back-off had been fruitless."""
        if self.fruitless > PATIENT:
            self.holdoff_end = min(self.holdoff_end, self.backoff_end + _holdoff(sender))

    def expire(
        self, now: float, tx_point: Point, boundary: Point, objects: Objects, sender: SenderProfile
    ) -> tuple[Decision, list[MissingRange]]:
        """End the back-off: NEEDLESS, SUPPRESS, or REQUEST with what is missing before `boundary`, as far as NACKs hold it."""
        self.due = inf
        self.noted = tx_point
        missing = missing_before(objects, boundary, sender.fec_id, most_ranges(sender.segment))
        if not missing:
            self.holdoff_end = now
            return Decision.NEEDLESS, missing
        asked, first = self._asked, missing[0]
        if asked is not None and first.is_same_as(asked):
            self.fruitless += 1
        else:
            self.shorten(sender)
            self.fruitless = 0
        self._asked = first
        return (SUPPRESS if self.is_suppressible and self._is_covered(boundary, objects) else Decision.REQUEST), missing

    @property
    def is_suppressible(self) -> bool:
        """Whether the requests of others suffice: not if they have brought nothing several times."""
        return self.fruitless < STUBBORN

    def overhear(self, requested: RequestedRepairs, boundary: Point, objects: Objects, now: float) -> Decision:
        """Note what another receiver requested: SUPPRESS when nothing before `boundary` is left to request, else NOTHING."""
        if now >= self.backoff_end or self.suppressed_to is not None or not self.is_suppressible:
            return NOTHING
        known = self.overheard
        overheard = self.overheard = requested if known is None else known.merged(requested)
        if not is_covered(objects, boundary, overheard, MOST_COMPARED):
            return NOTHING
        self.suppress(boundary)
        return SUPPRESS

    def suppress(self, boundary: Point) -> None:
        """Wait for nothing: others have requested everything before `boundary`."""
        self.suppressed_to = boundary
        self.due = inf

    def rewind(self, point: Point, now: float) -> None:
        """Note that the sender sends a repair at `point`.

        If it rewound there during the hold-off, a request for anything earlier was lost, and the hold-off ends.
        """
        if is_before(point, self.noted):
            self.noted = point
            if self.backoff_end <= now < self.holdoff_end:
                self.holdoff_end = now

    def _is_covered(self, point: Point, objects: Objects, most: float = inf) -> bool:
        return self.overheard is not None and is_covered(objects, point, self.overheard, most)


def _holdoff(sender: SenderProfile) -> float:
    """Return how long a hold-off takes with the sender's timing, in seconds."""
    factor, grtt = sender.backoff, sender.grtt
    # Without back-off and parity the sender answers within one round trip.
    return (factor + 2 if factor or sender.parity else 1) * (grtt if grtt > RTT_FLOOR else RTT_FLOOR)


# -- what is missing ---------------------------------------------------------------------------------------------------


def is_missing_before(objects: Objects, point: Point) -> bool:
    """Return whether anything is missing before `point`. `objects` are the incomplete ones, None for an unknown one."""
    object_id, block, symbol = point
    if objects.key == object_id:
        item = objects.item
        return (block > 0 or symbol > 0) and (item is None or item.missing_before(block, symbol))
    for key, item in objects.items() if objects.more is None else objects.more.items():
        order = 0 if key == object_id else ahead(key, object_id)
        if order < 0 and (item is None or not item.has_no_gaps):
            return True
        if order == 0 and (block or symbol) and (item is None or item.missing_before(block, symbol)):
            return True
    return False


def nack_size(segment: int) -> int:
    """Return the bytes that the requests of a NACK may have: a segment, but of a sender with large ones not too many."""
    return min(segment, LONGEST_NACK)


def most_ranges(segment: int) -> int:
    """Return how many ranges the NACKs of a receiver can name at the most."""
    return MOST_NACKS * (nack_size(segment) // SMALLEST_ITEM + 1)


def missing_before(objects: Objects, point: Point, fec_id: int, most: float = inf) -> list[MissingRange]:
    """Return what is missing before `point` in transmission order, `most` ranges or few more of all there are.

    An unknown object is missing as a whole, and named with `fec_id`.
    """
    ranges: list[MissingRange] = []
    object_id, block, symbol = point
    for key in (objects.key,) if objects.more is None else sorted(objects, key=lambda key: ahead(key, object_id)):
        order = 0 if key == object_id else ahead(key, object_id)
        if key == NONE or order > 0 or (order == 0 and not (block or symbol)) or len(ranges) > most:
            break
        item = objects[key]
        if item is None:
            _add_object(ranges, LEVEL_OBJECT, key, fec_id)
        elif order < 0:
            _add_parts(ranges, item, item.end, most)
        else:
            _add_parts(ranges, item, (block, symbol), most)
    return ranges


def _add_object(ranges: list[MissingRange], level: int, key: int, fec_id: int) -> None:
    """Add an object or its NORM_INFO, extending the last range if that ends with the object before."""
    if ranges and ranges[-1].level == level and ranges[-1].last.object_id == (key - 1) & 0xFFFF:
        ranges[-1].last = Item(fec_id, key)
        ranges[-1].count += 1
    else:
        ranges.append(MissingRange(level, Item(fec_id, key), Item(fec_id, key)))


def _add_parts(ranges: list[MissingRange], item: RxObject, until: tuple[int, int], most: float) -> None:
    """Add what an object is missing before the (block, symbol) `until`, but nothing behind more than `most` ranges."""
    # A sender's objects may have several FEC schemes, at least where messages are forged.
    (end, symbol), key, fec_id, length, m = until, item.object_id, item.fti.fec_id, item.fti.partition.length, item.fti.m
    if item.info is None:
        _add_object(ranges, LEVEL_INFO, key, fec_id)
    for first, last in item.missing_blocks or ():
        if first < end and len(ranges) <= most:
            last, size = min(last, end - 1), length(first)
            ranges.append(
                MissingRange(
                    LEVEL_BLOCK, Item(fec_id, key, first, 0, size), Item(fec_id, key, last, 0, size), last - first + 1, m
                )
            )
    missing_symbols = item.missing_symbols
    if missing_symbols is None:
        return
    for block, missing in missing_symbols.items() if missing_symbols.more is None else sorted(missing_symbols.items()):
        if block > end or len(ranges) > most:
            return
        size = length(block)
        mask = _to_request(item, block, missing, size) if block < end else missing & (1 << symbol) - 1
        for low, high in bit_runs(mask):
            if len(ranges) > most:
                return
            one = Item(fec_id, key, block, low, size)
            ranges.append(
                MissingRange(
                    LEVEL_SEGMENT, one, one if low == high else Item(fec_id, key, block, high, size), high - low + 1, m
                )
            )


def _to_request(item: RxObject, block: int, missing: int, length: int) -> int:
    """Return the symbols to request of a block that was sent completely, as a bit mask.

    They are parity by count, and source symbols where parity does not suffice.
    """
    parity = item.fti.usable
    if not parity:
        return missing
    # As `RxObject.parity_of`, without a call.
    heard = 0 if item.parity is None else item.parity.get(block, 0)
    short = missing.bit_count() - heard.bit_count()
    if not heard and short <= parity:
        # The usual case.
        return (1 << short) - 1 << length
    unheard = ~heard & (1 << parity) - 1
    if short <= unheard.bit_count():
        return lowest(unheard, short) << length
    return without_lowest(missing, parity) | unheard << length


def is_covered(objects: Objects, point: Point, asked: RequestedRepairs, most: float = inf) -> bool:
    """Return whether the repairs requested by others bring everything missing before `point`.

    False as well for an object with more than `most` incomplete blocks, or ranges of missing ones, unless all its blocks are
    requested as a whole.
    """
    object_id, block, symbol = point
    item = objects.item
    if item is not None and objects.key == object_id and not asked.objects and (block or symbol):
        # The object that is being sent: the usual case.
        return _is_object_covered(item, point, asked, most)
    for key, item in objects.items():
        order = 0 if key == object_id else ahead(key, object_id)
        if order > 0 or (order == 0 and not (block or symbol)):
            continue
        if asked.objects and asked.has_object(key):
            continue
        if item is None:
            return False
        limit = point if order == 0 else (key, *item.end)
        if not _is_object_covered(item, limit, asked, most):
            return False
    return True


def _is_object_covered(item: RxObject, point: Point, asked: RequestedRepairs, most: float) -> bool:
    key, end, symbol = point
    if item.info is None and not asked.has_info(key):
        return False
    missing_symbols, blocks = item.missing_symbols, asked.blocks
    if blocks and not symbol and asked.has_blocks(key, 0, end - 1):
        return True
    if item.missing_blocks:
        if len(item.missing_blocks) > most:
            return False
        for first, last in item.missing_blocks:
            if first < end and not asked.has_blocks(key, first, min(last, end - 1)):
                return False
    if missing_symbols is None:
        return True
    if missing_symbols.has_more_than(most):
        return False
    masks = missing_symbols.items()
    parity, usable, counts = item.parity, item.fti.usable, asked.counts(key, item.fti)
    for block, missing in reversed(masks):
        # The last is the least likely to be covered.
        if block < end:
            count, lacking, heard = counts.get(block, -1), missing.bit_count(), 0
            if count < 0:
                count = counts[block] = asked.count(key, item.fti, block)
            if parity is not None:
                heard = parity.get(block, 0)
                lacking -= heard.bit_count()
            if count >= lacking and heard.bit_length() + count <= usable:
                # Parity is requested, and enough of it was never sent: the usual case.
                continue
            covered = count >= lacking and is_block_covered(item, block, missing, asked.mask(key, block))
            if not covered and not (blocks and asked.has_blocks(key, block, block)):
                return False
        elif block == end and missing & (1 << symbol) - 1 & ~asked.mask(key, block):
            return False
    return True


def is_block_covered(item: RxObject, block: int, missing: int, mask: int) -> bool:
    """Return whether a request for `mask` brings as many useful symbols of a completely sent block as it is missing."""
    fti, heard = item.fti, item.parity_of(block)
    length = fti.partition.length(block)
    lacking, parity = missing.bit_count() - heard.bit_count(), mask >> length & (1 << fti.usable) - 1
    if mask & (1 << length) - 1:
        # Source symbols are named, so exactly those requested are sent.
        return (missing & mask).bit_count() + (parity & ~heard).bit_count() >= lacking
    # Parity is sent by count, from what was never sent; when that runs out, what was requested is sent again.
    spent = heard.bit_length()
    left, count = fti.usable - spent, mask.bit_count()
    if count > left:
        count = left + (parity & ~heard & (1 << spent) - 1).bit_count()
    return count >= lacking


# -- as requests -------------------------------------------------------------------------------------------------------


def contents_for(ranges: Iterable[MissingRange], segment: int) -> list[tuple[Request, ...]]:
    """Return the repair requests of at most `MOST_NACKS` NACKs of at most `segment` bytes each, oldest first.

    Three and more consecutive units become a range, fewer become items; neighbours of one form share a request.
    """
    contents: list[list[tuple[int, int, int, list[Item]]]] = [[]]
    size = 0
    for each in ranges:
        level, count, m, item_size = each.level, each.count, each.m, ITEM_HEADER + ID_SIZES[each.first.fec_id]
        form = FORM_RANGES if count > 2 else FORM_ITEMS
        items = [each.first] if count == 1 else [each.first, each.last]
        rows = contents[-1]
        shared = bool(rows) and rows[-1][:3] == (form, level, m)
        cost = len(items) * item_size + (0 if shared else REQUEST_HEADER)
        if rows and size + cost > segment:
            if len(contents) == MOST_NACKS:
                break
            contents.append([])
            rows, size, shared = contents[-1], 0, False
            cost = len(items) * item_size + REQUEST_HEADER
        if shared:
            rows[-1][3].extend(items)
        else:
            rows.append((form, level, m, items))
        size += cost
    return [tuple([Request(form, level, tuple(items), m) for form, level, m, items in rows]) for rows in contents if rows]
