"""The repair requests of a NACK, sorted by level (RFC 5740 4.3.1): a sender serves them, receivers are suppressed by them.

Building and merging cost time and memory in proportion to the items of the NACK, and a lookup their logarithm, whatever the
ranges cover: a NACK of 40 bytes can name 65,536 objects of any size.
"""

from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping
from typing import Final

from protocols.norm.messages import Fti
from protocols.norm.position import Point
from protocols.norm.requests import (
    FORM_ERASURES,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Request,
)
from protocols.range_set import RangeSet
from protocols.serial import before

__all__ = ["MOST_MERGED", "MOST_REQUESTED", "RequestedRepairs", "requested_repairs"]

MOST_REQUESTED: Final = 1 << 14
"""Items of one NACK that are used, each counted once and once more per 1024 symbols that its bit mask spans: twice what a NACK
of 64 kB holds whose blocks have at most 255 symbols."""
MOST_MERGED: Final = 4096
"""Items of all NACKs overheard during one back-off that are remembered, counted in the same way."""
_KEPT: Final = 16
"""NACKs whose sorted requests are kept, one of more than `_LARGE` items among them."""
_LARGE: Final = 512
_NO_MASKS: Final[Mapping[int, int]] = {}
_NO_COUNTS: Final[dict[int, int]] = {}
"""Of requests that were not counted yet; never modified."""


class _Whole:
    """What is requested as a whole: object ids, ids of objects whose NORM_INFO is requested, and blocks by object."""

    __slots__ = ("info_ids", "object_ids", "spans")

    def __init__(self) -> None:
        self.object_ids: RangeSet | None = None
        self.info_ids: RangeSet | None = None
        self.spans: dict[int, RangeSet] = {}


class RequestedRepairs:
    """The content of one NACK, or of several (`merged`). Not modified once made: many share it.

    `objects`, `infos` (first, last) and `blocks` (object, first, last) are inclusive ranges as they were named; `symbols` maps
    objects to blocks, and these to a bit mask of encoding symbol ids. Of requests of another `fec_id`, nothing is used from the
    first such item on, as in NRL NORM; of a NACK with more than `MOST_REQUESTED` items, the first of them.
    """

    __slots__ = (
        "_counted",
        "_counted_fti",
        "_counts",
        "_merged",
        "_whole",
        "_with",
        "blocks",
        "infos",
        "objects",
        "size",
        "symbols",
    )

    def __init__(self, requests: Iterable[Request] = (), fec_id: int = 0) -> None:
        # Receivers that overheard the same NACKs merge the same requests, so the last result is kept.
        self._with: RequestedRepairs | None = None
        self._merged: RequestedRepairs | None = None
        self._counts = _NO_COUNTS
        self._counted = -1
        self._counted_fti: Fti | None = None
        self.symbols: dict[int, dict[int, int]] = {}
        self.size = 0
        """Items it was made of, as `MOST_REQUESTED` counts them."""
        self.objects: tuple[tuple[int, int], ...] = ()
        self.infos: tuple[tuple[int, int], ...] = ()
        self.blocks: tuple[tuple[int, int, int], ...] = ()
        self._whole: _Whole | None = None
        if not requests:
            return
        objects: list[tuple[int, int]] = []
        infos: list[tuple[int, int]] = []
        blocks: list[tuple[int, int, int]] = []
        for request in requests:
            self._add(request, fec_id, objects, infos, blocks)
        if objects or infos or blocks:
            self._index(tuple(objects), tuple(infos), tuple(blocks))

    def _index(
        self, objects: tuple[tuple[int, int], ...], infos: tuple[tuple[int, int], ...], blocks: tuple[tuple[int, int, int], ...]
    ) -> None:
        """Add ranges of objects, of NORM_INFO and of blocks, and index them."""
        self.objects, self.infos, self.blocks = self.objects + objects, self.infos + infos, self.blocks + blocks
        known, whole = self._whole or _Whole(), _Whole()
        whole.object_ids = _with_ids(known.object_ids, objects)
        whole.info_ids = _with_ids(known.info_ids, infos)
        whole.spans = _with_spans(known.spans, blocks)
        self._whole = whole

    def _add(
        self,
        request: Request,
        fec_id: int,
        objects: list[tuple[int, int]],
        infos: list[tuple[int, int]],
        blocks: list[tuple[int, int, int]],
    ) -> None:
        """Sort the items of one repair request by level."""
        items, level, symbols = request.items, request.level, self.symbols
        if request.form == FORM_ERASURES and level & LEVEL_SEGMENT:
            # Only who knows the lengths of the blocks can tell which symbols these are: see `Window.resolve_erasures`.
            level &= ~LEVEL_SEGMENT
        step = 2 if request.form == FORM_RANGES else 1
        for place in range(0, len(items) - step + 1, step):
            code, owner, block, symbol, _ = items[place]
            last_code, last_owner, last_block, last_symbol, _ = items[place + step - 1]
            if code != fec_id or last_code != fec_id or self.size >= MOST_REQUESTED:
                return
            self.size += 1
            if level & LEVEL_SEGMENT:
                if symbol <= last_symbol and block == last_block:
                    masks = symbols.get(owner)
                    if masks is None:
                        masks = symbols[owner] = {}
                    masks[block] = masks.get(block, 0) | (2 << last_symbol) - (1 << symbol)
                    self.size += last_symbol >> 10
            elif level & LEVEL_BLOCK:
                blocks.append((owner, block, last_block))
            elif level & LEVEL_OBJECT:
                objects.append((owner, last_owner))
            if level & LEVEL_INFO:
                infos.append((owner, last_owner))

    def has_object(self, object_id: int) -> bool:
        """Return whether the whole object is requested."""
        ids = None if self._whole is None else self._whole.object_ids
        return ids is not None and object_id in ids

    def has_info(self, object_id: int) -> bool:
        """Return whether the object's NORM_INFO is requested, alone or with the whole object."""
        if self._whole is None:
            return False
        ids = self._whole.info_ids
        return self.has_object(object_id) or (ids is not None and object_id in ids)

    def whole_ids(self, among: Collection[int]) -> list[int]:
        """Return the ids of a collection whose object or NORM_INFO is requested; costs no more than looking at all of them."""
        ranges = self.whole_ranges()
        if sum([last - first + 1 for first, last in ranges]) >= len(among):
            return [key for key in among if self.has_info(key)] if ranges else []
        return [key for first, last in ranges for key in range(first, last + 1) if key in among]

    def whole_ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of ids whose object or NORM_INFO is requested; they may overlap, and do not wrap around."""
        whole = self._whole
        if whole is None:
            return []
        return [span for ids in (whole.object_ids, whole.info_ids) if ids is not None for span in ids]

    def has_blocks(self, object_id: int, first: int, last: int) -> bool:
        """Return whether all these blocks are requested as a whole, by one item or by several."""
        spans = None if self._whole is None else self._whole.spans.get(object_id)
        return spans is not None and spans.covers(first, last)

    def block_ranges(self, object_id: int) -> Iterable[tuple[int, int]]:
        """Return the ranges of blocks of an object that are requested as a whole."""
        spans = None if self._whole is None else self._whole.spans.get(object_id)
        return () if spans is None else spans

    def masks(self, object_id: int) -> Mapping[int, int]:
        """Return the symbols of an object that are requested: a bit mask by block."""
        return self.symbols.get(object_id, _NO_MASKS)

    def units(self) -> list[tuple[tuple[int, int], int]]:
        """Return the (object, block)s of which symbols are requested, each with these as a bit mask."""
        return [((key, block), mask) for key, masks in self.symbols.items() for block, mask in masks.items()]

    def mask(self, object_id: int, block: int) -> int:
        """Return the symbols of a block that are requested, as a bit mask; 0 for none."""
        masks = self.symbols.get(object_id)
        return 0 if masks is None else masks.get(block, 0)

    def counts(self, object_id: int, fti: Fti) -> dict[int, int]:
        """Return the symbols requested of an object by block, as far as they were counted; `count` returns others, to be added.

        All receivers that overheard the same NACKs share them.
        """
        if self._counted_fti is not fti or self._counted != object_id:
            self._counts, self._counted, self._counted_fti = {}, object_id, fti
        return self._counts

    def count(self, object_id: int, fti: Fti, block: int) -> int:
        """Return the number of symbols requested of a block.

        It is more than there is parity where source symbols are among them, which are not served by count.
        """
        mask = self.mask(object_id, block)
        count = mask.bit_count()
        if mask & (1 << fti.partition.length(block)) - 1:
            count += fti.usable + 1
        return count

    def is_beyond(self, object_id: int, tx_point: Point) -> bool:
        """Return whether all that is requested of this object lies beyond the transmit point."""
        owner, block, _ = tx_point
        if object_id != owner:
            return before(owner, object_id)
        named = [*self.masks(owner), *[first for key, first, _ in self.blocks if key == owner]]
        return bool(named) and min(named) > block and not self.has_info(owner)

    def reaches(self, object_id: int, block: int) -> bool:
        """Return whether this block of an object, or anything after it, may be requested."""
        if self.objects or self.infos or self.blocks:
            return True
        for owner, masks in self.symbols.items():  # noqa: SIM110 (a fraction of the cost of any, for every NACK)
            if owner != object_id or max(masks) >= block:
                return True
        return False

    def merged(self, other: "RequestedRepairs") -> "RequestedRepairs":
        """Return what either requests; without `other` when both together are larger than `MOST_MERGED`."""
        if self._with is other and self._merged is not None:
            return self._merged
        if self.size + other.size > MOST_MERGED:
            return self
        both = RequestedRepairs()
        both.size = self.size + other.size
        both.objects, both.infos, both.blocks = self.objects, self.infos, self.blocks
        both._whole = self._whole
        if other.objects or other.infos or other.blocks:
            both._index(other.objects, other.infos, other.blocks)
        both.symbols = dict(self.symbols)
        for key, masks in other.symbols.items():
            known = both.symbols.get(key)
            if known is None:
                both.symbols[key] = masks
                continue
            known = both.symbols[key] = dict(known)
            for block, mask in masks.items():
                known[block] = known.get(block, 0) | mask
        self._with, self._merged = other, both
        return both

    def owners(self) -> KeysView[int]:
        """Return the objects of which symbols or blocks are requested."""
        if not self.blocks:
            return self.symbols.keys()
        return dict.fromkeys([*self.symbols, *[owner for owner, _, _ in self.blocks]]).keys()


def _with_ids(known: RangeSet | None, ranges: Iterable[tuple[int, int]]) -> RangeSet | None:
    """Return the object ids of `known` and of these ranges of serial numbers; None for no ids."""
    if not ranges:
        return known
    ids = RangeSet() if known is None else known.copy()
    for first, last in ranges:
        for low, high in _plain_ranges(first, last):
            ids.add(low, high)
    return ids


def _plain_ranges(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ids that are not before `first` and not after `last` as ranges that do not wrap around.

    A serial number has 2**15 others after it, of which that at a distance of 2**15 is before it as well.
    """
    distance = (last - first) & 0xFFFF
    if distance >= 0x8000:
        # The range is longer than serial numbers reach, so its ends compare as if they were the other way round.
        first, last = (last - 0x7FFF) & 0xFFFF, (first + 0x8000) & 0xFFFF
    if first <= last:
        yield first, last
    else:
        yield first, 0xFFFF
        yield 0, last


def _with_spans(known: dict[int, RangeSet], ranges: Iterable[tuple[int, int, int]]) -> dict[int, RangeSet]:
    """Return the ranges of blocks by object of `known` and of these."""
    if not ranges:
        return known
    spans, own = dict(known), set()
    for owner, first, last in ranges:
        if owner not in own:
            own.add(owner)
            spans[owner] = spans[owner].copy() if owner in spans else RangeSet()
        if first <= last:
            spans[owner].add(first, last)
    return spans


_SORTED: Final[dict[int, tuple[tuple[Request, ...], int, RequestedRepairs]]] = {}
"""By the identity of their requests, since to hash these takes as long as to sort them: the NACKs sorted last.

In a simulation thousands of receivers overhear one NACK.
"""


def requested_repairs(requests: tuple[Request, ...], fec_id: int) -> RequestedRepairs:
    """Return what the requests of a NACK to a sender that uses `fec_id` ask for. Not to be modified: many share it."""
    known = _SORTED.get(id(requests))
    if known is not None and known[0] is requests and known[1] == fec_id:
        return known[2]
    repairs = RequestedRepairs(requests, fec_id)
    if len(_SORTED) >= _KEPT or repairs.size > _LARGE:
        _SORTED.clear()
    _SORTED[id(requests)] = requests, fec_id, repairs
    return repairs
