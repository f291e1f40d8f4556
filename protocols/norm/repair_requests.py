"""The repair requests of a NACK, sorted by level (RFC 5740 4.3.1): a sender serves them, receivers are suppressed by them."""

from functools import lru_cache

from protocols.norm.messages import (
    FORM_RANGES,
    LEVEL_BLOCK,
    LEVEL_INFO,
    LEVEL_OBJECT,
    LEVEL_SEGMENT,
    Fti,
    Request,
)
from protocols.norm.position import Point
from protocols.serial import ahead, before

__all__ = ["RequestedRepairs", "requested_repairs"]


class RequestedRepairs:
    """The content of one NACK. Ranges are inclusive; `symbols` maps (object, block) to a bit mask of encoding symbol ids."""

    __slots__ = ("_counted", "_counts", "_merged", "_owner", "_with", "blocks", "infos", "objects", "symbols")

    def __init__(self) -> None:
        # Receivers that overheard the same NACKs merge the same requests, so the last result is kept.
        self._with: RequestedRepairs | None = None
        self._merged: RequestedRepairs | None = None
        self._counts: dict[int, int] = {}
        self._counted: Fti | None = None
        self._owner = 0
        self.objects: tuple[tuple[int, int], ...] = ()
        self.infos: tuple[tuple[int, int], ...] = ()
        self.blocks: tuple[tuple[int, int, int], ...] = ()
        self.symbols: dict[tuple[int, int], int] = {}

    def has_object(self, object_id: int) -> bool:
        """Return whether the whole object is requested."""
        return any(ahead(first, object_id) <= 0 <= ahead(last, object_id) for first, last in self.objects)

    def has_info(self, object_id: int) -> bool:
        """Return whether the object's NORM_INFO is requested, alone or with the whole object."""
        return self.has_object(object_id) or any(
            ahead(first, object_id) <= 0 <= ahead(last, object_id) for first, last in self.infos
        )

    def has_blocks(self, object_id: int, first: int, last: int) -> bool:
        """Return whether all these blocks are requested as a whole."""
        return any(owner == object_id and low <= first and last <= high for owner, low, high in self.blocks)

    def counts(self, object_id: int, fti: Fti) -> dict[int, int]:
        """Return the number of symbols requested by block; more than there is parity, where source symbols are among them."""
        if self._counted is fti and self._owner == object_id:
            return self._counts
        # The same for all receivers that overheard the same NACKs.
        counts, length = {}, fti.partition.length
        for (owner, block), mask in self.symbols.items():
            if owner == object_id:
                named = mask & (1 << length(block)) - 1
                counts[block] = mask.bit_count() if not named else mask.bit_count() + fti.usable + 1
        self._owner, self._counted, self._counts = object_id, fti, counts
        return counts

    def is_beyond(self, object_id: int, tx_point: Point) -> bool:
        """Return whether all that is requested of this object lies beyond the transmit point."""
        owner, block, _ = tx_point
        if object_id != owner:
            return before(owner, object_id)
        lowest = [key[1] for key in self.symbols if key[0] == owner] + [row[1] for row in self.blocks if row[0] == owner]
        return not self.has_info(owner) and bool(lowest) and min(lowest) > block

    def reaches(self, object_id: int, block: int) -> bool:
        """Return whether this block of an object, or anything after it, may be requested."""
        if self.objects or self.infos or self.blocks:
            return True
        for owner, number in self.symbols:  # noqa: SIM110 (a fraction of the cost of any, for every NACK)
            if number >= block or owner != object_id:
                return True
        return False

    def merged(self, other: "RequestedRepairs") -> "RequestedRepairs":
        """Return what either requests. Not to be modified: many share it."""
        if self._with is other and self._merged is not None:
            return self._merged
        both = RequestedRepairs()
        both.objects = self.objects + other.objects
        both.infos = self.infos + other.infos
        both.blocks = self.blocks + other.blocks
        both.symbols = dict(self.symbols)
        for key, mask in other.symbols.items():
            both.symbols[key] = both.symbols.get(key, 0) | mask
        self._with, self._merged = other, both
        return both

    def owners(self) -> set[int]:
        """Return the objects of which symbols or blocks are requested."""
        owners = {owner for owner, _ in self.symbols}
        if self.blocks:
            owners.update([row[0] for row in self.blocks])
        return owners

    def add(self, request: Request, fec_id: int) -> None:
        """Add one repair request; only during construction. An item of another fec_id ends it, as in NRL NORM."""
        items, level = request.items, request.level
        step = 2 if request.form == FORM_RANGES else 1
        for place in range(0, len(items) - step + 1, step):
            first, last = items[place], items[place + step - 1]
            if first.fec_id != fec_id or last.fec_id != fec_id:
                return
            if level & LEVEL_SEGMENT:
                if first.symbol <= last.symbol and first.block == last.block:
                    key = first.object_id, first.block
                    self.symbols[key] = self.symbols.get(key, 0) | (2 << last.symbol) - (1 << first.symbol)
            elif level & LEVEL_BLOCK:
                self.blocks += ((first.object_id, first.block, last.block),)
            elif level & LEVEL_OBJECT:
                self.objects += ((first.object_id, last.object_id),)
            if level & LEVEL_INFO:
                self.infos += ((first.object_id, last.object_id),)


@lru_cache(maxsize=64)
def requested_repairs(requests: tuple[Request, ...], fec_id: int) -> RequestedRepairs:
    """Return what the requests of a NACK to a sender that uses `fec_id` ask for. Not to be modified: many share it."""
    repairs = RequestedRepairs()
    for request in requests:
        repairs.add(request, fec_id)
    return repairs
