"""Forms and levels of repair requests (RFC 5740 4.3.1), and the names of what a request asks for, for people."""

from collections.abc import Iterable
from typing import Any, Final

__all__ = [
    "FORM_ERASURES",
    "FORM_ITEMS",
    "FORM_RANGES",
    "LEVEL_BLOCK",
    "LEVEL_INFO",
    "LEVEL_OBJECT",
    "LEVEL_SEGMENT",
    "names_of",
]

FORM_ITEMS: Final = 1
FORM_RANGES: Final = 2
FORM_ERASURES: Final = 3
LEVEL_SEGMENT: Final = 1
LEVEL_BLOCK: Final = 2
LEVEL_INFO: Final = 4
LEVEL_OBJECT: Final = 8


def names_of(requests: Iterable[Any]) -> list[str]:
    """Return the name of each item of some `Request`s, like 0.2.17 or info 3; a range is one, like 0.2.17-19."""
    return [name for request in requests for name in _names(request)]


def _names(request: Any) -> list[str]:
    if request.level == LEVEL_INFO:
        return [f"info {item.object_id}" for item in request.items]
    depth = 3 if request.level & LEVEL_SEGMENT else 2 if request.level & LEVEL_BLOCK else 1
    names = [(str(item.object_id), str(item.block), str(item.symbol))[:depth] for item in request.items]
    if request.form == FORM_RANGES:
        return [f"{'.'.join(low)}-{high[-1]}" for low, high in zip(names[::2], names[1::2], strict=False)]
    return [".".join(name) for name in names]
