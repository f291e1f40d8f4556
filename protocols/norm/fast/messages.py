"""The messages of a fast sender: what the wire holds, and the positions before and after them."""

from typing import Any, Final, TypeAlias

from protocols.fast.contract import FastMessage
from protocols.norm.messages import FLAG_REPAIR, Data, Flush, Info, Probe, Squelch
from protocols.norm.position import Point

__all__ = ["Effect", "FastData", "FastFlush", "FastInfo", "FastProbe", "FastSquelch", "Loss"]

Effect: TypeAlias = tuple[int, int, Point, Point | None]
"""Of a message with `expects_if_complete`: object, block it may fill (-1: none), point before which all was sent, and the point
the sender rewound to."""

Loss: TypeAlias = tuple[int, ...]
"""Object, block, and bit mask of the source symbols that did not arrive."""

_CHAIN: Final = ("expects", "expects_if_complete", "next_state")


class FastData(Data, FastMessage):
    """NORM_DATA between two positions."""

    __slots__ = _CHAIN

    @property
    def redundant(self) -> bool:
        """Whether it is a repair or parity, which a receiver that lacks nothing has no use for."""
        return bool(self.flags & FLAG_REPAIR) or self.symbol >= self.block_length

    def effect(self) -> Effect:
        """Return its effect: a repair or parity fills its block; a repair rewinds, too."""
        reach = (self.object_id, self.block, 0)
        if self.flags & FLAG_REPAIR and self.next_state is not None:
            return self.object_id, self.block, reach, self.next_state.tx_point
        return self.object_id, self.block if self.redundant else -1, reach, None

    def is_irrelevant_to(self, waiting: Any) -> bool:
        """Whether it comes before the first block with missing symbols (object, block), or is that block's first symbol."""
        block = waiting[1]
        return bool(waiting[0] == self.object_id and (block > self.block or (block == self.block and not self.redundant)))


class FastInfo(Info, FastMessage):
    """NORM_INFO between two positions."""

    __slots__ = _CHAIN


class FastFlush(Flush, FastMessage):
    """CMD(FLUSH) between two positions."""

    __slots__ = _CHAIN

    def effect(self) -> Effect:
        """Return its effect: everything through the end of its block was sent."""
        return self.object_id, -1, (self.object_id, self.block + 1, 0), None

    def is_irrelevant_to(self, waiting: Any) -> bool:
        """Whether it comes before the first block with missing symbols (object, block)."""
        return bool(waiting[0] == self.object_id and waiting[1] > self.block)


class FastSquelch(Squelch, FastMessage):
    """CMD(SQUELCH) between two positions."""

    __slots__ = _CHAIN


class FastProbe(Probe, FastMessage):
    """CMD(CC) between two positions."""

    __slots__ = _CHAIN
