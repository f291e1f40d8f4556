"""A mapping with integer keys that takes a quarter of the memory of a dict while it has one entry."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast, overload

__all__ = ["NONE", "SmallDict"]

T = TypeVar("T")
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
