"""What a receiver lacks, as repair requests (RFC 5740 4.3.1), and whether others have asked for it already."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from protocols.norm.bits import bit_runs, lowest, without_lowest
from protocols.norm.demand import Demand
from protocols.norm.incoming import Incoming
from protocols.norm.messages import (
    FORM_ITEMS,
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Item,
    Request,
)
from protocols.norm.pending import Pending
from protocols.serial import ahead

__all__ = ["Need", "Place", "contents_for", "is_covered", "needs_before"]

Place = tuple[int, int, int]
"""(object id, block, symbol): everything before it in transmission order."""
ITEM_SIZES = {0: 8, 2: 8, 5: 8, 129: 12}
REQUEST_HEADER = 4
MOST_NACKS = 4


@dataclass(slots=True)
class Need:
    """One thing missing: an object, an object's information, a range of blocks, or the symbols `mask` of one block."""

    level: int
    object_id: int
    block: int = 0
    last: int = 0
    mask: int = 0
    length: int = 0


def needs_before(objects: Pending[Incoming | None] | Mapping[int, Incoming | None], place: Place) -> Iterator[Need]:
    """Everything missing before `place`, objects and blocks in order, objects of which nothing is known as a whole."""
    object_id, block, symbol = place
    for key in sorted(objects, key=lambda key: ahead(key, object_id)):
        order = ahead(key, object_id)
        if order > 0 or (order == 0 and not (block or symbol)):
            return
        item = objects[key]
        if item is None:
            yield Need(LEVEL_OBJECT, key)
        elif order < 0:
            yield from _of_object(item, item.fti.partition.blocks, 0)
        else:
            yield from _of_object(item, block, symbol)


def _of_object(item: Incoming, block: int, symbol: int) -> Iterator[Need]:
    key, length = item.object_id, item.fti.partition.length
    if item.wants_info and item.info is None:
        yield Need(LEVEL_INFO, key)
    for first, last in item.absent or ():
        if first < block:
            yield Need(LEVEL_BLOCK, key, first, min(last, block - 1), length=length(first))
    for number in sorted(item.gaps or ()):
        if number < block:
            yield _of_block(item, number)
        elif number == block and not item.fti.usable:
            mask = item.missing(number) & (1 << symbol) - 1
            if mask:
                yield Need(LEVEL_SEGMENT, key, number, mask=mask, length=length(number))


def _of_block(item: Incoming, block: int) -> Need:
    """Symbols of a block that was wholly sent: as many parity symbols as are short, or, beyond them, source symbols by name."""
    length, parity = item.fti.partition.length(block), item.fti.usable
    unheard = ~item.parity_of(block) & (1 << parity) - 1
    short = item.shortage(block)
    if short <= unheard.bit_count():
        mask = lowest(unheard, short) << length
    else:
        mask = without_lowest(item.missing(block), parity) | unheard << length
    return Need(LEVEL_SEGMENT, item.object_id, block, mask=mask, length=length)


def is_covered(objects: Pending[Incoming | None], place: Place, asked: Demand) -> bool:
    """Will the repair of what others asked for bring everything missing before `place`?"""
    object_id, block, symbol = place
    item = objects.item
    if item is not None and objects.key == object_id and objects.more is None and not asked.objects and (block or symbol):
        # The object that is being sent: nearly always.
        return _is_object_covered(item, block, symbol, asked)
    for key, item in objects.items():
        order = ahead(key, object_id)
        if order > 0 or (order == 0 and not (block or symbol)):
            continue
        if asked.objects and asked.has_object(key):
            continue
        if item is None:
            return False
        limit = (block, symbol) if order == 0 else (item.fti.partition.blocks, 0)
        if not _is_object_covered(item, *limit, asked):
            return False
    return True


def _is_object_covered(item: Incoming, end: int, symbol: int, asked: Demand) -> bool:
    key = item.object_id
    if item.wants_info and item.info is None and not asked.has_info(key):
        return False
    for first, last in item.absent or ():
        if first < end and not asked.has_blocks(key, first, min(last, end - 1)):
            return False
    gaps, parity, usable = item.gaps, item.parity, item.fti.usable
    if gaps is None:
        return True
    counts, whole = asked.counts(key, item.fti), asked.blocks
    for block, missing in gaps.items():
        if block < end:
            heard = 0 if parity is None else parity.get(block, 0)
            count = counts.get(block, 0)
            # Nearly always parity is asked for, and there is enough that was never sent.
            covered = count >= missing.bit_count() - heard.bit_count()
            if covered and heard.bit_length() + count > usable:
                covered = _is_block_covered(item, block, missing, asked.symbols[key, block])
            if not covered and not (whole and asked.has_blocks(key, block, block)):
                return False
        elif block == end and not usable and missing & (1 << symbol) - 1 & ~asked.symbols.get((key, block), 0):
            return False
    return True


def _is_block_covered(item: Incoming, block: int, missing: int, mask: int) -> bool:
    """Will as many useful symbols of a wholly sent block come as it lacks, when those of `mask` are asked for?"""
    fti, heard = item.fti, item.parity_of(block)
    length = fti.partition.length(block)
    lacking, parity = missing.bit_count() - heard.bit_count(), mask >> length
    if mask & (1 << length) - 1:
        # Source symbols are named, so exactly what was asked for is sent.
        return (missing & mask).bit_count() + (parity & ~heard).bit_count() >= lacking
    # Parity is sent by count, from what was never sent; when that runs out, what was asked for is sent again.
    spent = heard.bit_length()
    left, count = fti.usable - spent, mask.bit_count()
    if count > left:
        count = left + (parity & ~heard & (1 << spent) - 1).bit_count()
    return count >= lacking


# -- as requests -------------------------------------------------------------------------------------------------------


def contents_for(needs: Iterable[Need], fec_id: int, segment: int) -> list[tuple[Request, ...]]:
    """The requests for the needs, oldest first, as the contents of at most four NACKs of at most `segment` bytes each.

    Runs of three and more consecutive things become a range, shorter ones items; neighbours of one form share a request.
    """
    contents: list[list[tuple[int, int, list[Item]]]] = [[]]
    size = 0
    for level, first, last, count in _spans(needs, fec_id):
        form = FORM_RANGES if count > 2 else FORM_ITEMS
        items = [first] if count == 1 else [first, last]
        rows = contents[-1]
        shared = bool(rows) and rows[-1][:2] == (form, level)
        cost = len(items) * ITEM_SIZES[fec_id] + (0 if shared else REQUEST_HEADER)
        if rows and size + cost > segment:
            if len(contents) == MOST_NACKS:
                break
            contents.append([])
            rows, size, shared = contents[-1], 0, False
            cost = len(items) * ITEM_SIZES[fec_id] + REQUEST_HEADER
        if shared:
            rows[-1][2].extend(items)
        else:
            rows.append((form, level, items))
        size += cost
    return [tuple(Request(form, level, tuple(items)) for form, level, items in rows) for rows in contents if rows]


def _spans(needs: Iterable[Need], fec_id: int) -> Iterator[tuple[int, Item, Item, int]]:
    """(level, first, last, how many) for every run of consecutive things."""
    for level, key, last, count in _object_runs(needs):
        if isinstance(key, int):
            yield level, Item(fec_id, key), Item(fec_id, last), count
        elif level == LEVEL_BLOCK:
            low = Item(fec_id, key.object_id, key.block, 0, key.length)
            yield level, low, Item(fec_id, key.object_id, key.last, 0, key.length), key.last - key.block + 1
        else:
            for start, end in bit_runs(key.mask):
                low = high = Item(fec_id, key.object_id, key.block, start, key.length)
                if end > start:
                    high = Item(fec_id, key.object_id, key.block, end, key.length)
                yield level, low, high, end - start + 1


def _object_runs(needs: Iterable[Need]) -> Iterator[tuple[int, int | Need, int, int]]:
    """Needs of whole objects (or informations) with consecutive ids joined; other needs as they are."""
    level = first = count = 0
    for need in needs:
        if count and need.level == level and need.object_id == (first + count) & 0xFFFF:
            count += 1
            continue
        if count:
            yield level, first, (first + count - 1) & 0xFFFF, count
        count = 0
        if need.level in (LEVEL_OBJECT, LEVEL_INFO):
            level, first, count = need.level, need.object_id, 1
        else:
            yield need.level, need, 0, 0
    if count:
        yield level, first, (first + count - 1) & 0xFFFF, count
