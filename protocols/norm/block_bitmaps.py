"""Bit masks of symbols by block, which take a quarter of the memory of a dict while there is one block."""

from heapq import heappop, heappush

from protocols.norm.small_dict import NONE

__all__ = ["BlockBitmaps"]

MANY = 64
"""Blocks from which on finding the lowest takes a heap."""


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
    """A mapping from blocks to bit masks with the methods that are used.

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
