"""The messages of a fast sender: what the wire holds, and the positions before and after them."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, TypeAlias

from protocols.fast.contract import FastMessage
from protocols.norm.messages import FLAG_INFO, FLAG_REPAIR, Application, Data, Flush, Info, Probe, RepairAdv, Squelch
from protocols.norm.position import Point, TransmitPosition, is_before

__all__ = [
    "Effect",
    "FastApplication",
    "FastData",
    "FastFlush",
    "FastInfo",
    "FastProbe",
    "FastRepairAdv",
    "FastSquelch",
    "Loss",
]

Effect: TypeAlias = tuple[int, int, Point]
"""Of a message with `expects_if_complete`: object, block it may fill (-1: none), and the point before which all was sent."""

Loss: TypeAlias = tuple[int, ...]
"""Object, block, and bit mask of the source symbols that did not arrive."""

_CHAIN: Final = ("expects", "expects_if_complete", "next_state", "redundant")


class FastData(Data, FastMessage):
    """NORM_DATA between two positions. It is redundant if it is a repair or parity.

    An object without parity that can be decoded (`Fti.is_coded`) is indexed: receivers are found by the symbols of it that they
    miss, since its repairs are source symbols, each of which few receivers miss. Parity concerns most of those that miss
    anything, and so does a request for it.
    """

    __slots__ = _CHAIN

    def effect(self) -> Effect:
        """Return its effect: a repair or parity fills its block."""
        key, block = self.object_id, self.block
        return key, block if self.redundant else -1, (key, block, 0)

    def keeps_lockstep(self, position: Any) -> bool:
        """Return whether it is the first or last symbol of an object, and the next message for receivers at a position."""
        if self.redundant or not _is_expected(self.next_state, position):
            return False
        if self.opens:
            return _is_next(self.object_id, position)
        fti = self.fti
        return fti is not None and self.block + 1 == fti.partition.blocks and self.symbol + 1 == self.block_length

    @property
    def opens(self) -> bool:
        """Whether it is the first message of an object that has no NORM_INFO."""
        return not (self.block or self.symbol or self.redundant or self.flags & FLAG_INFO)

    def rewound_to(self) -> Point | None:
        """Return the point of a repair, to which the sender rewound; None for others."""
        return _rewound_to(self.flags, self.next_state)

    def concerned(self, waiting: Iterable[Any]) -> list[Any]:
        """Return the blocks (object, block) that it shows to be over; its own, too, if it repairs one without an index."""
        key, end = self.object_id, self.block
        if self.redundant and (self.fti is None or self.fti.is_coded):
            end += 1
        return [each for each in waiting if each is None or each[0] != key or each[1] < end]

    def brings(self) -> tuple[Hashable, int] | None:
        """Return the block and the symbol, as a bit mask, that it repairs; None if they are not indexed."""
        if self.fti is None or self.fti.is_coded or not self.flags & FLAG_REPAIR or self.symbol >= self.block_length:
            return None
        return (self.object_id, self.block), 1 << self.symbol

    def hides_from(self, positions: Iterable[TransmitPosition]) -> bool:
        """Return whether it repairs what is before the next new symbol of each of these receivers."""
        key, point = self.object_id, (self.object_id, self.block, self.symbol)
        for position in positions:
            next_new = position.object_id, position.block, position.symbol
            if not (point < next_new if position.object_id == key else is_before(point, next_new)):
                return False
        return self.flags & FLAG_REPAIR > 0

    def rewinds(self) -> bool:
        """Return whether the sender rewound: a hold-off may end."""
        return _rewinds(self.rewound_to(), self.expects_if_complete)


class FastInfo(Info, FastMessage):
    """NORM_INFO between two positions. One that is repeated concerns those that lack it, or something of another object."""

    __slots__ = _CHAIN

    def keeps_lockstep(self, position: Any) -> bool:
        """Return whether it is the first message of an object, and the next message for receivers at a position."""
        is_next = not self.flags & FLAG_REPAIR and _is_expected(self.next_state, position)
        return is_next and _is_next(self.object_id, position)

    def concerned(self, waiting: Iterable[Any]) -> list[Any]:
        """Return the blocks (object, block) of other objects."""
        return [each for each in waiting if each is None or each[0] != self.object_id]

    def rewound_to(self) -> Point | None:
        """Return the beginning of the object, to which the sender rewound if this is a repair; else None."""
        return _rewound_to(self.flags, self.next_state)

    def rewinds(self) -> bool:
        """Return whether the sender rewound: a hold-off may end."""
        return _rewinds(self.rewound_to(), self.expects_if_complete)


class FastFlush(Flush, FastMessage):
    """CMD(FLUSH) between two positions."""

    __slots__ = _CHAIN

    def effect(self) -> Effect:
        """Return its effect: everything through the end of its block was sent."""
        return self.object_id, -1, (self.object_id, self.block + 1, 0)

    def concerned(self, waiting: Iterable[Any]) -> list[Any]:
        """Return the blocks (object, block) that it shows to be over."""
        key, end = self.object_id, self.block
        return [each for each in waiting if each is None or each[0] != key or each[1] <= end]


class FastSquelch(Squelch, FastMessage):
    """CMD(SQUELCH) between two positions."""

    __slots__ = _CHAIN


class FastProbe(Probe, FastMessage):
    """CMD(CC) between two positions."""

    __slots__ = _CHAIN

    def keeps_lockstep(self, position: Any) -> bool:
        """Return whether it is the next message for receivers at a position: they note its clock, and answer later."""
        return _is_expected(self.next_state, position)


class FastApplication(Application, FastMessage):
    """CMD(APPLICATION) between two positions."""

    __slots__ = _CHAIN


class FastRepairAdv(RepairAdv, FastMessage):
    """CMD(REPAIR_ADV) between two positions."""

    __slots__ = _CHAIN


def _rewound_to(flags: int, following: TransmitPosition | None) -> Point | None:
    return None if following is None or not flags & FLAG_REPAIR else following.tx_point


def _rewinds(point: Point | None, before: TransmitPosition | None) -> bool:
    return point is not None and (before is None or is_before(point, before.tx_point))


def _is_expected(following: TransmitPosition | None, position: Any) -> bool:
    """Return whether a message that leads to `following` is the next one for receivers at a position of a group."""
    return following is not None and isinstance(position, TransmitPosition) and following.sequence == position.sequence + 1


def _is_next(object_id: int, position: TransmitPosition) -> bool:
    """Return whether an object follows the one at a position."""
    return object_id == (position.object_id + 1) & 0xFFFF
