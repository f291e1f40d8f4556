"""What a receiver waits for, by its number: a mapping that weighs a quarter of a dict while there is one, as nearly always."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast, overload

__all__ = ["NONE", "Masks", "Pending"]

T = TypeVar("T")
NONE = -1
"""No object or block has this number."""


class Pending(Generic[T]):
    """Object -> what is missing of it, or block -> mask of its symbols; in the order they were put in, as in a dict.

    As much of a mapping as is used: none of `collections.abc`, which mypyc compiles to something slow.

    Who asks with every message looks at the parts itself: `key` and `item` are the first entry, `NONE` and None when there is
    none; `more` holds the others, and is None when there are none.
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
        """As of a dict."""
        if key == self.key:
            return self.item
        return self.more.get(key, default) if self.more is not None else default

    def __contains__(self, key: int) -> bool:
        return key == self.key or (self.more is not None and key in self.more)

    def __setitem__(self, key: int, item: T) -> None:
        if self.key in (NONE, key):
            self.key, self.item = key, item
        elif self.more is None:
            self.more = {key: item}
        else:
            self.more[key] = item

    def __delitem__(self, key: int) -> None:
        more = self.more
        if key != self.key:
            if more is None:
                raise KeyError(key)
            del more[key]
        elif more is None:
            self.key, self.item = NONE, cast("T", None)
        else:
            # As `next(iter(more))`, which is slow when compiled.
            for first in more:
                self.key, self.item = first, more.pop(first)
                break
        if not more:
            self.more = None

    def pop(self, key: int) -> T:
        """As of a dict."""
        item = self[key]
        del self[key]
        return item

    def __bool__(self) -> bool:
        return self.key != NONE

    def __iter__(self) -> Iterator[int]:
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        if self.more is not None:
            return 1 + len(self.more)
        return int(self.key != NONE)

    def items(self) -> list[tuple[int, T]]:
        """What there is now."""
        if self.key == NONE:
            return []
        first = (self.key, self.item)
        return [first] if self.more is None else [first, *self.more.items()]

    def values(self) -> list[T]:
        """What there is now."""
        return [item for _, item in self.items()]


class Masks(Pending[int]):
    """Block -> mask of its symbols. The first entry is that of the lowest block."""

    __slots__ = ()

    def add(self, block: int, mask: int) -> None:
        """These symbols, too."""
        more = self.more
        if block == self.key:
            self.item |= mask
        elif block > self.key and more is not None:
            more[block] = more.get(block, 0) | mask
        else:
            self[block] = mask

    def __setitem__(self, block: int, mask: int) -> None:
        if block < self.key:
            block, self.key = self.key, block
            mask, self.item = self.item, mask
        super().__setitem__(block, mask)

    def __delitem__(self, block: int) -> None:
        more = self.more
        if block != self.key or more is None:
            super().__delitem__(block)
        else:
            self.key = lowest = min(more)
            self.item = more.pop(lowest)
            if not more:
                self.more = None
