"""Mappings that take a quarter of the memory of a dict while they have one entry, and bit masks of symbols as integers."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar, cast, overload

__all__ = ["NONE", "BlockBitmaps", "SmallDict", "bit_runs", "lowest", "without_lowest"]

T = TypeVar("T")
MANY = 64
"""Blocks from which on finding the lowest takes a heap."""
NONE = -1
"""A key that no object or block has."""


class SmallDict(Generic[T]):
    """A mapping in insertion order with the methods that are used; not a `collections.abc` class, which compiles badly.

    Code on the path of every message reads the parts: `key` and `item` are the only entry, `NONE` and None when there are none
    or several; `more` holds several entries, and is None otherwise.
    """

    __slots__ = ("item", "key", "more")

    def __init__(self) -> None:
        self.key = NONE
        self.item = cast("T", None)
        self.more: dict[int, T] | None = None

    def __getitem__(self, key: int) -> T:
        if key == self.key:
            return self.item
        if self.more is None:
            raise KeyError(key)
        return self.more[key]

    @overload
    def get(self, key: int) -> T | None: ...

    @overload
    def get(self, key: int, default: T) -> T: ...

    def get(self, key: int, default: T | None = None) -> T | None:
        """As `dict.get`."""
        if key == self.key:
            return self.item
        return self.more.get(key, default) if self.more is not None else default

    def __contains__(self, key: int) -> bool:
        return key == self.key or (self.more is not None and key in self.more)

    def __setitem__(self, key: int, item: T) -> None:
        if self.more is not None:
            self.more[key] = item
        elif self.key in (NONE, key):
            self.key, self.item = key, item
        else:
            self.more = {self.key: self.item, key: item}
            self.key, self.item = NONE, cast("T", None)

    def __delitem__(self, key: int) -> None:
        more = self.more
        if more is None:
            if key != self.key:
                raise KeyError(key)
            self.key, self.item = NONE, cast("T", None)
        else:
            del more[key]
            if len(more) == 1:
                ((self.key, self.item),) = more.items()
                self.more = None

    def pop(self, key: int) -> T:
        """As `dict.pop`."""
        item = self[key]
        del self[key]
        return item

    def __bool__(self) -> bool:
        return self.key != NONE or self.more is not None

    def __iter__(self) -> Iterator[int]:
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        return int(self.key != NONE) if self.more is None else len(self.more)

    def items(self) -> list[tuple[int, T]]:
        """Return the entries there are now."""
        if self.more is not None:
            return list(self.more.items())
        return [(self.key, self.item)] if self.key != NONE else []

    def values(self) -> list[T]:
        """Return the values there are now."""
        if self.more is not None:
            return list(self.more.values())
        return [self.item] if self.key != NONE else []


class _ManyBlocks(dict[int, int]):
    """Masks by block that also find the lowest block, at the cost of a logarithm."""

    __slots__ = ("order",)

    def __init__(self, masks: dict[int, int]) -> None:
        super().__init__(masks)
        # All blocks as a heap, and some that are removed.
        self.order = sorted(masks)

    def __setitem__(self, block: int, mask: int) -> None:
        if block not in self:
            heappush(self.order, block)
            if len(self.order) > 2 * len(self) + MANY:
                self.order = sorted([*self, block])
        super().__setitem__(block, mask)

    def lowest(self) -> int:
        """Return the lowest block; there must be one."""
        while self.order[0] not in self:
            heappop(self.order)
        return self.order[0]


class BlockBitmaps:
    """A mapping from blocks to bit masks of symbols with the methods that are used; bit n stands for symbol n.

    Code on the path of every message reads the parts: `key` and `item` are the lowest block and its mask, `NONE` and 0 when
    there is none; `more` holds the others, and is None when there are none.
    """

    __slots__ = ("item", "key", "more")

    def __init__(self) -> None:
        self.key = NONE
        self.item = 0
        self.more: dict[int, int] | None = None

    def add(self, block: int, mask: int) -> None:
        """Add symbols of a block."""
        if block == self.key:
            self.item |= mask
        elif self.more is not None and block > self.key:
            self.more[block] = self.more.get(block, 0) | mask
        else:
            self[block] = mask

    def get(self, block: int, default: int) -> int:
        """As `dict.get`."""
        if block == self.key:
            return self.item
        return default if self.more is None else self.more.get(block, default)

    def __contains__(self, block: int) -> bool:
        return block == self.key or (self.more is not None and block in self.more)

    def __setitem__(self, block: int, mask: int) -> None:
        if self.key in (NONE, block):
            self.key, self.item = block, mask
            return
        if block < self.key:
            block, self.key = self.key, block
            mask, self.item = self.item, mask
        if self.more is None:
            self.more = {block: mask}
        else:
            self.more[block] = mask

    def __delitem__(self, block: int) -> None:
        more = self.more
        if block != self.key:
            if more is None:
                raise KeyError(block)
            del more[block]
        elif more is None:
            self.key, self.item = NONE, 0
        else:
            if len(more) > MANY and not isinstance(more, _ManyBlocks):
                more = self.more = _ManyBlocks(more)
            self.key = lowest = more.lowest() if isinstance(more, _ManyBlocks) else min(more)
            self.item = more.pop(lowest)
        if not more:
            self.more = None

    def items(self) -> list[tuple[int, int]]:
        """Return the entries there are now, the lowest block first."""
        if self.key == NONE:
            return []
        first = (self.key, self.item)
        return [first] if self.more is None else [first, *self.more.items()]


def lowest(mask: int, count: int) -> int:
    """Return the `count` lowest set bits of a mask."""
    return mask ^ without_lowest(mask, count)


def without_lowest(mask: int, count: int) -> int:
    """Return the mask without its `count` lowest set bits."""
    for _ in range(count):
        mask &= mask - 1
    return mask


def bit_runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of set bits, lowest first, as inclusive ranges."""
    start = 0
    while mask >> start:
        rest = mask >> start
        start += (rest & -rest).bit_length() - 1
        tail = ~(mask >> start)
        end = start + (tail & -tail).bit_length() - 2
        yield start, end
        start = end + 1
