"""The parts of an object that a message requests, read from the whole message."""

from typing import Any

from protocols.norm.messages import FORM_RANGES, LEVEL_BLOCK, LEVEL_INFO, LEVEL_OBJECT, LEVEL_SEGMENT, Nack, RepairAdv

__all__ = ["parts_requested"]

_MOST = 4096
"""Blocks of a range that are listed at most."""


def parts_requested(message: Any, object_id: int) -> frozenset[str]:
    """Return the names of the parts of an object that a NORM_NACK or a REPAIR_ADV requests; "*" stands for all of them."""
    if not isinstance(message, (Nack, RepairAdv)):
        return frozenset()
    found: set[str] = set()
    for request in message.requests:
        step = 2 if request.form == FORM_RANGES else 1
        for place in range(0, len(request.items) - step + 1, step):
            first, last = request.items[place], request.items[place + step - 1]
            if not first.object_id <= object_id <= last.object_id:
                continue
            if request.level & LEVEL_INFO:
                found.add("info")
            if request.level & LEVEL_OBJECT:
                found.add("*")
            elif request.level & (LEVEL_BLOCK | LEVEL_SEGMENT):
                found.update(map(str, range(first.block, min(last.block, first.block + _MOST) + 1)))
    return frozenset(found)
