"""The repair requests of NACKs (RFC 5740 4.3.1): their forms, levels and items, and names of what they ask for, for people."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = [
    "FORM_ERASURES",
    "FORM_ITEMS",
    "FORM_RANGES",
    "LEVEL_BLOCK",
    "LEVEL_INFO",
    "LEVEL_OBJECT",
    "LEVEL_SEGMENT",
    "Item",
    "Request",
    "names_of",
]

FORM_ITEMS: Final = 1
FORM_RANGES: Final = 2
FORM_ERASURES: Final = 3
LEVEL_SEGMENT: Final = 1
LEVEL_BLOCK: Final = 2
LEVEL_INFO: Final = 4
LEVEL_OBJECT: Final = 8


class Item(NamedTuple):
    """One symbol, block or object named in a repair request; `block_length` travels with fec_id 129 only."""

    fec_id: int
    object_id: int
    block: int = 0
    symbol: int = 0
    block_length: int = 0


@dataclass(slots=True, unsafe_hash=True)
class Request:
    """One repair request of a NACK: for RANGES the items come in pairs (first, last), both inclusive. Never modified."""

    form: int
    level: int
    """LEVEL_ bits: SEGMENT, BLOCK or OBJECT, and INFO beside them."""
    items: tuple[Item, ...]
    m: int = field(default=0, compare=False, repr=False)
    """`Fti.m` of the objects, by which items of fec_id 2 are written; 0: not known here, as in a NACK that was received."""

    def __init__(self, form: int, level: int, items: tuple[Item, ...], m: int = 0) -> None:
        self.form = form
        self.level = level
        self.items = items
        self.m = m


def names_of(requests: Iterable[Request]) -> list[str]:
    """Return the name of each item of some `Request`s, like 0.2.17 or info 3; a range is one, like 0.2.17-19."""
    return [name for request in requests for name in _names(request)]


def _names(request: Request) -> list[str]:
    if request.level == LEVEL_INFO:
        return [f"info {item.object_id}" for item in request.items]
    depth = 3 if request.level & LEVEL_SEGMENT else 2 if request.level & LEVEL_BLOCK else 1
    names = [(str(item.object_id), str(item.block), str(item.symbol))[:depth] for item in request.items]
    if request.form == FORM_RANGES:
        return [f"{'.'.join(low)}-{high[-1]}" for low, high in zip(names[::2], names[1::2], strict=False)]
    return [".".join(name) for name in names]
