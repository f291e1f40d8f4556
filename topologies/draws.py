"""Draws of losses for many links and many packets at once, to the bit those of `protocols.rng` one by one.

Identities are taken in windows of 256. Key (link, window, draw) gives the length of the run of packets that pass before the
next loss. Every step is a 64-bit integer operation and no floating-point function takes part.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.rng import GOLDEN, extend

__all__ = [
    "BULK",
    "FEW",
    "WINDOW",
    "Losers",
    "Odds",
    "Table",
    "Words",
    "draw_windows",
    "extend_all",
    "listed",
    "lost_offsets",
    "member_keys",
    "odds_of",
    "tabulate",
]

Words: TypeAlias = npt.NDArray[np.uint64]
Losers: TypeAlias = list[int] | npt.NDArray[np.int32]
Table: TypeAlias = tuple[Sequence[int], Losers]
"""The losers of a window of 256 packets: where each packet's losers begin, and all losers packet by packet."""

WINDOW = 256
FEW = 24
"""Below this many links a numpy call costs more than the draws themselves."""
BULK = 4096
"""A list of so many weighs little, and so many numbers in one numpy call cost not much more than one."""

_GOLDEN = np.uint64(GOLDEN)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


def extend_all(keys: Words, words: Words | np.uint64) -> Words:
    """`protocols.rng.extend` of many keys at once."""
    x: Words = keys ^ words
    x += _GOLDEN
    x ^= x >> _S30
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    x ^= x >> _S31
    return x


def member_keys(key: int, count: int) -> Words:
    """Keys of `count` sibling links below one key: `extend(key, member)` for each member from 0."""
    return extend_all(np.full(count, key, np.uint64), np.arange(count, dtype=np.uint64))


class Odds:
    """A loss probability, 0 < p <= 1, as integers: a 64-bit draw u passes when u < `passing`.

    `ascending[255 - k]` is 2**64 * (1 - p) ** (k + 1), so the number of entries above u is the run that passes.
    """

    __slots__ = ("array", "ascending", "passing")

    def __init__(self, p: float) -> None:
        self.passing = min(int((1 - Fraction(p)) * 2**64), 2**64 - 1)
        powers = [self.passing]
        while len(powers) < WINDOW:
            powers.append(powers[-1] * self.passing >> 64)
        self.ascending = powers[::-1]
        self.array: Words = np.array(self.ascending, np.uint64)


odds_of = lru_cache(maxsize=64)(Odds)
"""`Odds`, made once for each probability."""


def lost_offsets(key: int, window: int, odds: Odds) -> list[int]:
    """Offsets lost among the 256 identities of a window, ascending."""
    key = extend(key, window)
    ascending, position, draw = odds.ascending, 0, 0
    lost: list[int] = []
    while True:
        position += WINDOW - bisect_right(ascending, extend(key, draw))
        if position >= WINDOW:
            return lost
        lost.append(position)
        position += 1
        draw += 1


def tabulate(lost: npt.NDArray[np.int64], windows: int = 1) -> list[Table]:
    """Losses of so many windows given as offset * 2**32 + member, offsets going on from window to window."""
    lost.sort()
    starts = array("q", lost.searchsorted(np.arange(WINDOW * windows + 1, dtype=np.int64) << 32).tobytes())
    # Lists are quicker to take pieces of, and weigh ten times as much.
    members: Losers = (lost & 0xFFFFFFFF).tolist() if len(lost) <= BULK else (lost & 0xFFFFFFFF).astype(np.int32)
    return [(starts[begin : begin + WINDOW + 1], members) for begin in range(0, WINDOW * windows, WINDOW)]


def listed(losers: Losers) -> list[int]:
    """These as a list; of the many there may be, only those that are about to be looked at should be."""
    return losers if isinstance(losers, list) else losers.tolist()


def draw_windows(keys: Words, window: int, count: int, odds: Odds) -> list[Table]:
    """The losers of all links in each of `count` windows."""
    if len(keys) >= FEW:
        return tabulate(_draw_many(keys, window, count, odds), count)
    pairs = [
        (offset + at * WINDOW << 32) | member
        for member, key in enumerate(keys.tolist())
        for at in range(count)
        for offset in lost_offsets(key, window + at, odds)
    ]
    return tabulate(np.array(pairs, np.int64), count)


def _draw_many(keys: Words, window: int, count: int, odds: Odds) -> npt.NDArray[np.int64]:
    """Losses as offset * 2**32 + member, with one numpy call per draw over all links that are still inside a window."""
    members, windows = np.arange(len(keys), dtype=np.int64), np.arange(count, dtype=np.int64)[:, np.newaxis]
    # What each is, but for the offset within its window.
    lanes = (members + (windows * WINDOW << 32)).ravel()
    words = extend_all(keys, (windows + window).astype(np.uint64)).ravel()
    found, position, draw = [], np.zeros(len(lanes), np.int64), 0
    while len(words):
        position += WINDOW - odds.array.searchsorted(extend_all(words, np.uint64(draw)), "right")
        inside = (position < WINDOW).nonzero()[0]
        words, lanes, position = words[inside], lanes[inside], position[inside]
        found.append((position << 32) + lanes)
        position += 1
        draw += 1
    return np.concatenate(found)
