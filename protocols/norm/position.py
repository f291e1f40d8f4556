"""Points in the order of transmission, and the position of a sender in it."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from protocols.serial import ahead

__all__ = ["START", "Point", "TransmitPosition", "is_before"]

Point: TypeAlias = tuple[int, ...]
"""(object id, block, symbol). As a bound it stands for everything before it in transmission order.

The type does not say that there are three, because mypyc would take such a tuple apart, and make it again for every comparison.
"""


def is_before(a: Point, b: Point) -> bool:
    """Return whether `a` comes before `b` in transmission order; object ids are serial numbers."""
    if a[0] == b[0]:
        return a < b
    return ahead(a[0], b[0]) < 0


@dataclass(slots=True, eq=False)
class TransmitPosition:  # noqa: PLW1641 (it is not hashed)
    """The position of a sender after a message, as far as known. Not modified once made.

    `object_id`, `block`, `symbol` name the next new source symbol; behind the last of an object `block` is the number of its
    blocks. `sequence` is the next sequence number. `tx_point` is where the sender transmits: the next new symbol too, or the
    repair it sent last.
    """

    object_id: int
    block: int
    symbol: int
    sequence: int
    tx_point: Point

    # Both are written, because mypyc does not compile generated ones.
    def __init__(self, object_id: int, block: int, symbol: int, sequence: int, tx_point: Point) -> None:
        self.object_id = object_id
        self.block = block
        self.symbol = symbol
        self.sequence = sequence
        self.tx_point = tx_point

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TransmitPosition)
            and self.sequence == other.sequence
            and self.tx_point == other.tx_point
            and self.symbol == other.symbol
            and self.block == other.block
            and self.object_id == other.object_id
        )


START: Final = TransmitPosition(0, 0, 0, 0, (0, 0, 0))
"""The position before the first message."""
