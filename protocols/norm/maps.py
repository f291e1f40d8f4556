"""Mappings for the state of many objects: a lean one, one with a deadline for each entry, one of bit masks of symbols."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, overload

__all__ = ["FEW", "MANY", "NONE", "SEVERAL", "BlockBitmaps", "DeadlineMap", "SmallDict", "bit_runs", "lowest", "without_lowest"]

T = TypeVar("T")
STEPS: Final = 32
"""Set bits up to which they are removed one by one; each step takes time in proportion to the length of the mask."""
NONE: Final = -1
"""A key that no object or block has."""
SEVERAL: Final = 16
"""Deadlines from which on finding the first takes a heap."""
OUTDATED: Final = 64
"""Outdated deadlines that a `DeadlineMap` keeps beyond one per entry."""
FEW: Final = 4
"""Blocks behind the lowest from which on they are in a dictionary, which takes as much memory as four of a list."""
MANY: Final = 64
"""Blocks from which on finding the lowest takes a heap."""


class SmallDict(Generic[T]):
    """A mapping in insertion order with the methods that are used; not a `collections.abc` class, which compiles badly.

    Keys are integers, or tuples of them: the compiled build would refuse the latter if they were declared as integers.
    Code on the path of every message reads the parts: `key` and `item` are the only entry, `NONE` and None when there are none
    or several; `more` holds several entries, and is None otherwise.
    """

    __slots__ = ("item", "key", "more")

    def __init__(self) -> None:
        self.key: Any = NONE
        self.item = cast("T", None)
        self.more: dict[Any, T] | None = None

    def __getitem__(self, key: Any) -> T:
        if key == self.key:
            return self.item
        if self.more is None:
            raise KeyError(key)
        return self.more[key]

    @overload
    def get(self, key: Any) -> T | None: ...

    @overload
    def get(self, key: Any, default: T) -> T: ...

    def get(self, key: Any, default: T | None = None) -> T | None:
        """As `dict.get`."""
        if key == self.key:
            return self.item
        return self.more.get(key, default) if self.more is not None else default

    def __contains__(self, key: Any) -> bool:
        return (key == self.key and key != NONE) or (self.more is not None and key in self.more)

    def __setitem__(self, key: Any, item: T) -> None:
        if self.more is not None:
            self.more[key] = item
        elif self.key in (NONE, key):
            self.key, self.item = key, item
        else:
            self.more = {self.key: self.item, key: item}
            self.key, self.item = NONE, cast("T", None)

    def __delitem__(self, key: Any) -> None:
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

    def pop(self, key: Any) -> T:
        """As `dict.pop`."""
        item = self[key]
        del self[key]
        return item

    def __bool__(self) -> bool:
        return self.key != NONE or self.more is not None

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        return int(self.key != NONE) if self.more is None else len(self.more)

    @property
    def first(self) -> Any:
        """The key of the first entry; `NONE` if there is none."""
        return self.key if self.more is None else next(iter(self.more))

    def items(self) -> list[tuple[Any, T]]:
        """Return the entries there are now."""
        if self.more is not None:
            return list(self.more.items())
        return [(self.key, self.item)] if self.key != NONE else []

    def values(self) -> list[T]:
        """Return the values there are now."""
        if self.more is not None:
            return list(self.more.values())
        return [self.item] if self.key != NONE else []


class DeadlineMap(Generic[T]):
    """A mapping in insertion order with a deadline for each entry; not a subclass of dict, which compiles badly.

    A deadline that changes costs the logarithm of the number of entries, and of a few entries a look at each.
    """

    __slots__ = ("_entries", "_first", "_heap", "_noted")

    def __init__(self) -> None:
        self._entries: dict[int, T] = {}
        self._noted: dict[int, float] = {}
        # Of more than `SEVERAL` deadlines: a heap with each that is finite, beside others that do not count any more.
        self._heap: list[tuple[float, int]] | None = None
        # The first deadline where there is no heap.
        self._first = inf

    def get(self, key: int) -> T | None:
        """As `dict.get`."""
        return self._entries.get(key)

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, key: int, entry: T) -> None:
        self._entries[key] = entry

    def __delitem__(self, key: int) -> None:
        del self._entries[key]
        gone = self._noted.pop(key, inf)
        if self._heap is None and gone <= self._first:
            self._first = self._earliest()

    def values(self) -> list[T]:
        """Return the entries there are now."""
        return list(self._entries.values())

    def rotate(self) -> tuple[int, T]:
        """Move the first entry to the end; return its key and the entry. There must be one."""
        key = next(iter(self._entries))
        entry = self._entries[key] = self._entries.pop(key)
        return key, entry

    def note(self, key: int, deadline: float) -> None:
        """Set the deadline of an entry; inf for none."""
        noted, heap = self._noted, self._heap
        before = noted.get(key, inf)
        noted[key] = deadline
        if heap is None:
            if deadline <= self._first:
                self._first = deadline
            elif before <= self._first:
                self._first = self._earliest()
            if len(noted) > SEVERAL:
                self._make_heap()
        elif deadline < inf and deadline != before:
            heappush(heap, (deadline, key))
            if len(heap) > 2 * len(noted) + OUTDATED:
                self._make_heap()

    def deadline(self) -> float:
        """Return the first deadline; inf for none."""
        heap, noted = self._heap, self._noted
        if heap is None:
            return self._first
        while heap and noted.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def due(self, now: float) -> list[T]:
        """Return the entries whose deadline is not later than `now`, in order; their deadlines are inf from now on."""
        noted, heap = self._noted, self._heap
        keys: dict[int, None] = {}
        if heap is None:
            for key, when in noted.items():
                if when <= now:
                    noted[key] = inf
                    keys[key] = None
            self._first = self._earliest()
        else:
            while self.deadline() <= now:
                key = heappop(heap)[1]
                noted[key] = inf
                keys[key] = None
        if len(keys) < 2:
            return [self._entries[key] for key in keys]
        return [entry for key, entry in self._entries.items() if key in keys]

    def _earliest(self) -> float:
        first = inf
        for when in self._noted.values():
            if when < first:  # noqa: PLR1730 (half the cost of min)
                first = when
        return first

    def _make_heap(self) -> None:
        self._heap = [(when, each) for each, when in self._noted.items() if when < inf]
        heapify(self._heap)


def lowest(mask: int, count: int) -> int:
    """Return the `count` lowest set bits of a mask."""
    return mask ^ without_lowest(mask, count)


def without_lowest(mask: int, count: int) -> int:
    """Return the mask without its `count` lowest set bits."""
    if count > STEPS:
        begin, end = 0, mask.bit_length()
        while begin < end:
            middle = (begin + end) // 2
            if (mask & (1 << middle) - 1).bit_count() < count:
                begin = middle + 1
            else:
                end = middle
        return mask >> begin << begin
    for _ in range(count):
        mask &= mask - 1
    return mask


def bit_runs(mask: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of set bits, lowest first, as inclusive ranges."""
    while mask:
        low = mask & -mask
        # The sum has one bit behind the first run in its place.
        rest = mask & mask + low
        yield low.bit_length() - 1, (mask ^ rest).bit_length() - 1
        mask = rest


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
    there is none; `more` holds the others, and is None when there are none. A few others are a linked list in order, of nodes
    of this class; more of them are a dictionary.
    """

    __slots__ = ("item", "key", "more")

    def __init__(self, key: int = NONE, item: int = 0, more: "Others" = None) -> None:
        self.key = key
        self.item = item
        self.more = more

    def add(self, block: int, mask: int) -> None:
        """Add symbols of a block."""
        node, more, passed = self, self.more, 0
        while more is not None and node.key < block and isinstance(more, BlockBitmaps):
            node, more, passed = more, more.more, passed + 1
        if node.key == block:
            node.item |= mask
        elif more is None and NONE < node.key < block and passed < FEW:
            # Behind all others, the usual case.
            node.more = BlockBitmaps(block, mask)
        elif (new := self._node(block)) is not None:
            new.item |= mask
        else:
            self[block] = self.get(block, 0) | mask

    def get(self, block: int, default: int) -> int:
        """As `dict.get`."""
        node = self
        while node.key != block:
            more = node.more
            if more is None:
                return default
            if not isinstance(more, BlockBitmaps):
                return more.get(block, default)
            node = more
        return node.item

    def __len__(self) -> int:
        count, more = int(self.key != NONE), self.more
        while isinstance(more, BlockBitmaps):
            count += 1
            more = more.more
        return count if more is None else count + len(more)

    def has_more_than(self, most: float) -> bool:
        """Return whether there are more than `most` blocks behind the lowest; `most` is not below `FEW`."""
        more = self.more
        return more is not None and not isinstance(more, BlockBitmaps) and len(more) > most

    def __setitem__(self, block: int, mask: int) -> None:
        if block == self.key:
            self.item = mask
        elif (node := self._node(block)) is not None:
            node.item = mask
        else:
            assert isinstance(self.more, dict)
            if block < self.key:
                block, mask, self.key, self.item = self.key, self.item, block, mask
            self.more[block] = mask

    def _node(self, block: int) -> "BlockBitmaps | None":
        """Return the node of a block other than the lowest in a list, without symbols if it is new; None: in a dictionary."""
        node, more, passed = self, self.more, 0
        if isinstance(more, dict):
            return None
        if self.key == NONE:
            self.key = block
            return self
        if block < self.key and len(self) <= FEW:
            self.key, self.item, self.more = block, 0, BlockBitmaps(self.key, self.item, more)
            return self
        while isinstance(more, BlockBitmaps) and more.key <= block:
            node, more, passed = more, more.more, passed + 1
        if node.key == block:
            return node
        if passed >= FEW or (more is not None and len(self) > FEW):
            # Too many for a list.
            self.more = dict(self.items()[1:])
            return None
        new = node.more = BlockBitmaps(block, 0, more)
        return new

    def remove(self, block: int) -> None:
        """Remove a block, which must be there."""
        more = self.more
        if block == self.key and (more is None or isinstance(more, BlockBitmaps)):
            # The usual case.
            if more is None:
                self.key, self.item = NONE, 0
            else:
                self.key, self.item, self.more = more.key, more.item, more.more
            return
        if isinstance(more, dict):
            if block != self.key:
                del more[block]
            else:
                self.key, self.item = _take_lowest(more)
            if len(more) == 1:
                # A list from now on.
                ((key, item),) = more.items()
                self.more = BlockBitmaps(key, item)
            elif len(more) > MANY and not isinstance(more, _ManyBlocks):
                self.more = _ManyBlocks(more)
            return
        node = self
        while node.key != block:
            if not isinstance(more, BlockBitmaps):
                raise KeyError(block)
            if more.key == block and more.more is None:
                node.more = None
                return
            node, more = more, more.more
        assert isinstance(more, BlockBitmaps)
        node.key, node.item, node.more = more.key, more.item, more.more

    def items(self) -> list[tuple[int, int]]:
        """Return the entries there are now, the lowest block first."""
        more = self.more
        if more is None:
            return [(self.key, self.item)] if self.key != NONE else []
        if not isinstance(more, BlockBitmaps):
            return [(self.key, self.item), *more.items()]
        found = [(self.key, self.item), (more.key, more.item)]
        while more.more is not None:
            assert isinstance(more.more, BlockBitmaps)
            more = more.more
            found.append((more.key, more.item))
        return found


def _take_lowest(blocks: dict[int, int]) -> tuple[int, int]:
    """Remove the lowest of further blocks; return it and its mask."""
    lowest = blocks.lowest() if isinstance(blocks, _ManyBlocks) else min(blocks)
    return lowest, blocks.pop(lowest)


Others: TypeAlias = BlockBitmaps | dict[int, int] | None
