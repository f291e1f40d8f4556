"""Bernoulli losses of many links and packets drawn at once with numpy, bit-identical to draws of `protocols.rng` one by one.

Identities are divided into windows of 256. The draw with key (link, window, n) gives the number of packets that are not lost
before the n-th loss of the window (geometric skip). All steps are 64-bit integer operations, so results don't depend on the
platform.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.rng import GOLDEN, MASK, extend
from protocols.rng_arrays import Words, mix_all

__all__ = [
    "BULK",
    "FEW",
    "WINDOW",
    "Losers",
    "Threshold",
    "Table",
    "draw_windows",
    "extend_all",
    "kept",
    "listed",
    "lost_offsets",
    "member_keys",
    "parts_of",
    "threshold_of",
    "tabulate",
    "units",
]

Losers: TypeAlias = list[int] | npt.NDArray[np.int32]
"""Members of a group (by index) that lose packets."""
Table: TypeAlias = tuple[Sequence[int], Losers]
"""The losses of a window of 256 packets: (starts, losers). Packet i is lost by the members losers[starts[i]:starts[i + 1]]."""

WINDOW: Final = 256
FEW: Final = 24
"""Number of links below which numpy calls cost more than scalar draws."""
LANES: Final = 16
"""As `FEW`, for the losses of windows: the number of links times the number of windows."""
BULK: Final = 4096
"""Number of entries up to which lists are used instead of arrays, and up to which the cost of a numpy call hardly grows."""

_GOLDEN: Final = np.uint64(GOLDEN)
_S11: Final = np.uint64(11)
_ZERO: Final = np.uint64(0)
_TO_UNIT: Final = 2.0**-53


def extend_all(keys: Words, words: Words | np.uint64) -> Words:
    """Return `protocols.rng.extend` of many keys at once."""
    x: Words = keys ^ words
    x += _GOLDEN
    return mix_all(x)


def units(keys: Words, number: int) -> npt.NDArray[np.float64]:
    """Return `protocols.rng.unit(key, number)` of many keys at once; numbers count from 1."""
    # `extend` adds the first multiple of the constant.
    words = extend_all(keys + np.uint64((number - 1) * GOLDEN & MASK), _ZERO) >> _S11
    return words.astype(np.float64) * np.float64(_TO_UNIT)


def parts_of(links: int) -> list[slice]:
    """Return the links in parts of `BULK`: to draw for all of a large group at once takes much memory, and is not faster."""
    return [slice(begin, min(begin + BULK, links)) for begin in range(0, links, BULK)]


def member_keys(key: int, count: int) -> Words:
    """Return the keys of `count` links of a group: `extend(key, member)` for each member from 0."""
    return extend_all(np.full(count, key, np.uint64), np.arange(count, dtype=np.uint64))


class Threshold:
    """A loss probability, 0 < p <= 1, as integers: a packet with a 64-bit draw u is not lost if u < `passing`.

    `ascending[255 - k]` is 2**64 * (1 - p) ** (k + 1), so the number of entries above u is the length of the geometric skip.
    All but a few windows have less than `most_draws` losses.
    """

    __slots__ = ("array", "ascending", "most_draws", "passing")

    def __init__(self, p: float) -> None:
        self.passing = min(int((1 - Fraction(p)) * 2**64), 2**64 - 1)
        powers = [self.passing]
        while len(powers) < WINDOW:
            powers.append(powers[-1] * self.passing >> 64)
        self.ascending = powers[::-1]
        self.array: Words = np.array(self.ascending, np.uint64)
        mean = WINDOW * (1 - self.passing / 2**64)
        # Two standard deviations more than the mean.
        self.most_draws = ceil(mean + 2 * sqrt(mean)) + 1


threshold_of: Final = lru_cache(maxsize=64)(Threshold)
"""Return the cached `Threshold` of a probability."""


def lost_offsets(key: int, window: int, threshold: Threshold) -> list[int]:
    """Return the offsets lost among the 256 identities of a window, ascending."""
    key = extend(key, window)
    ascending, position, draw = threshold.ascending, 0, 0
    lost: list[int] = []
    while True:
        position += WINDOW - bisect_right(ascending, extend(key, draw))
        if position >= WINDOW:
            return lost
        lost.append(position)
        position += 1
        draw += 1


def tabulate(lost: npt.NDArray[np.int64], windows: int = 1) -> list[Table]:
    """Return a table per window for losses given as offset * 2**32 + member; offsets count from the first window's begin."""
    lost.sort()
    ends = np.zeros(WINDOW * windows + 1, np.int64)
    np.bincount(lost >> 32, minlength=WINDOW * windows).cumsum(out=ends[1:])
    starts = array("q", ends.tobytes())
    # Lists are faster to slice and take ten times the memory.
    lost &= 0xFFFFFFFF
    members: Losers = lost.tolist() if len(lost) <= BULK else lost.astype(np.int32)
    return [(starts[begin : begin + WINDOW + 1], members) for begin in range(0, WINDOW * windows, WINDOW)]


def kept(losers: Sequence[int]) -> Losers:
    """Return a copy of losers to be kept for long: an array takes a ninth of the memory of a list, and more time to be made."""
    return list(losers) if len(losers) <= FEW else np.array(losers, np.int32)


def listed(losers: Losers) -> list[int]:
    """Return losers as a list. Convert slices only, since a whole array may be large."""
    return losers if isinstance(losers, list) else losers.tolist()


def draw_windows(keys: Words, window: int, count: int, threshold: Threshold) -> list[Table]:
    """Return the tables of `count` windows, from `window`, over all links."""
    if len(keys) * count >= LANES:
        return tabulate(_draw_many(keys, window, count, threshold), count)
    pairs = [
        (offset + at * WINDOW << 32) | member
        for member, key in enumerate(keys.tolist())
        for at in range(count)
        for offset in lost_offsets(key, window + at, threshold)
    ]
    return tabulate(np.array(pairs, np.int64), count)


def _draw_many(keys: Words, window: int, count: int, threshold: Threshold) -> npt.NDArray[np.int64]:
    """Return losses as offset * 2**32 + member."""
    found: list[npt.NDArray[np.int64]] = []
    for part in parts_of(len(keys)):
        _draw_part(keys, part, window, count, threshold, found)
    return np.concatenate(found)


def _draw_part(
    keys: Words, part: slice, window: int, count: int, threshold: Threshold, found: list[npt.NDArray[np.int64]]
) -> None:
    """Add the losses of some links; each numpy call draws for all of them and all windows that are not yet exhausted.

    Where these are few, it makes several draws for each: about as many as most need.
    """
    # offset * 2**32 + member of each link and window, without the offset within the window.
    begins = np.arange(0, count * WINDOW << 32, WINDOW << 32, dtype=np.int64)[:, np.newaxis]
    lanes = (begins + np.arange(part.start, part.stop, dtype=np.int64)).ravel()
    words = extend_all(keys[part], np.arange(window, window + count, dtype=np.uint64)[:, np.newaxis]).ravel()
    at_once = max(1, min(threshold.most_draws, BULK // len(lanes)))
    draws = np.arange(at_once, dtype=np.uint64)
    before: np.int64 | npt.NDArray[np.int64] = np.int64(-1)
    while len(words):
        # Offsets of lost packets, a row for each link and window; those after its last loss are behind the window.
        places = WINDOW + 1 - threshold.array.searchsorted(extend_all(words[:, np.newaxis], draws), "right")
        if at_once > 1:
            places = places.cumsum(1)
        places += before
        lost = (places.ravel() < WINDOW).nonzero()[0]
        found.append((places.ravel()[lost] << 32) + lanes[lost // at_once])
        unfinished = lost if at_once == 1 else (places[:, -1] < WINDOW).nonzero()[0]
        words, lanes, before = words[unfinished], lanes[unfinished], places[unfinished, -1:]
        draws += np.uint64(at_once)
