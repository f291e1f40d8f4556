"""Counts how often packets with the same identity were repeated on a link, in little memory for long runs."""

from typing import Final

__all__ = ["Repeats", "count_occurrence"]

_BITS: Final = 3
"""Binary logarithm of the bits of each count."""
_MOST: Final = 255
"""The highest count that has room there."""


class Repeats:
    """Counts occurrences of identities after their first one: 8 bits for each, 256 neighbours in one number."""

    __slots__ = ("_beyond", "_packed")

    def __init__(self) -> None:
        self._packed: dict[int, int] = {}
        # Occurrences of the few identities whose count has no room.
        self._beyond: dict[int, int] = {}

    def count(self, identity: int) -> int:
        """Count a further occurrence of an identity and return its number; the first of these is 2."""
        window, place = identity >> 8, (identity & 255) << _BITS
        packed = self._packed.get(window, 0)
        times = packed >> place & _MOST
        if times < _MOST:
            self._packed[window] = packed + (1 << place)
            return times + 2
        occurrence = self._beyond[identity] = self._beyond.get(identity, _MOST + 1) + 1
        return occurrence

    def occurrences(self, identity: int) -> int:
        """Return how often an identity came that came at least once."""
        times = self._packed.get(identity >> 8, 0) >> ((identity & 255) << _BITS) & _MOST
        return times + 1 if times < _MOST else self._beyond.get(identity, _MOST + 1)


def count_occurrence(seen: dict[int, int], repeats: Repeats, identity: int) -> int:
    """Count an occurrence of an identity, and return its number (1 = first).

    `seen` are the identities that came before, as a bit mask by window of 256; `repeats` counts their further occurrences.
    """
    window, bit = identity >> 8, 1 << (identity & 255)
    known = seen.get(window, 0)
    if known & bit:
        return repeats.count(identity)
    seen[window] = known | bit
    return 1
