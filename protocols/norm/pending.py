"""What a receiver waits for, by its number: a mapping that weighs a quarter of a dict while there is one, as nearly always."""

from collections.abc import Collection, Iterator, MutableMapping
from typing import Generic, TypeVar, cast, overload

__all__ = ["Pending"]

T = TypeVar("T")
NONE = -1
"""No object or block has this number."""


class Pending(MutableMapping[int, T], Generic[T]):
    """Object -> what is missing of it, or block -> mask of its symbols; in the order they were put in, as in a dict."""

    __slots__ = ("_item", "_key", "_more")

    def __init__(self) -> None:
        self._key = NONE
        self._item = cast("T", None)
        # All but the first; never without a first.
        self._more: dict[int, T] | None = None

    def __getitem__(self, key: int) -> T:
        if key == self._key:
            return self._item
        if self._more is None:
            raise KeyError(key)
        return self._more[key]

    @overload  # type: ignore[override]
    def get(self, key: int) -> T | None: ...

    @overload
    def get(self, key: int, default: T) -> T: ...

    def get(self, key: int, default: T | None = None) -> T | None:
        """As of a dict."""
        if key == self._key:
            return self._item
        return self._more.get(key, default) if self._more is not None else default

    def __contains__(self, key: object) -> bool:
        return key == self._key or (self._more is not None and key in self._more)

    def __setitem__(self, key: int, item: T) -> None:
        if self._key in (NONE, key):
            self._key, self._item = key, item
        elif self._more is None:
            self._more = {key: item}
        else:
            self._more[key] = item

    def __delitem__(self, key: int) -> None:
        more = self._more
        if key != self._key:
            if more is None:
                raise KeyError(key)
            del more[key]
        elif more is None:
            self._key, self._item = NONE, cast("T", None)
        else:
            self._key = next(iter(more))
            self._item = more.pop(self._key)
        if not more:
            self._more = None

    def __iter__(self) -> Iterator[int]:
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        if self._more is not None:
            return 1 + len(self._more)
        return int(self._key != NONE)

    def items(self) -> Collection[tuple[int, T]]:  # type: ignore[override]
        """What there is now."""
        if self._key == NONE:
            return ()
        first = (self._key, self._item)
        return (first,) if self._more is None else [first, *self._more.items()]

    def values(self) -> Collection[T]:  # type: ignore[override]
        """What there is now."""
        return [item for _, item in self.items()]
