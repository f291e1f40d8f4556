"""The parts of an object that a request names, read from the entries that `Message.asks` lists."""

import re
from collections.abc import Iterable

__all__ = ["parts_asked"]

_MOST = 4096
"""Parts of a range that are listed at most."""
_ENTRY = re.compile(r"(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-(\d+))?")
"""An object, block or symbol, like 0, 0.2 or 0.2.17; of a range the last number of its end follows, as in 0.2.17-19."""


def parts_asked(entries: Iterable[str], object_id: int) -> frozenset[str]:
    """Return the names of the parts of an object that a request names; "*" stands for all of them."""
    found: set[str] = set()
    for entry in entries:
        number = entry.removeprefix("info ")
        match = _ENTRY.fullmatch(number)
        if match is None:
            continue
        first, block, last = int(match[1]), match[2], match[3]
        if block is None:
            if first <= object_id <= int(last or first):
                found.add("info" if number != entry else "*")
        elif first == object_id:
            # With two dots the range is one of symbols within the block.
            end = int(last) if last and number.count(".") == 1 else int(block)
            found.update(map(str, range(int(block), min(end, int(block) + _MOST) + 1)))
    return frozenset(found)
