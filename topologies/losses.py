"""Which packets a lossy link loses: draws keyed by what a packet is, never by when it comes.

A packet with an identity (content) that comes to a link for the first time is lost or not by a *keyed geometric skip*:
identities are taken in windows of 256, and key (link, window, draw) gives the length of the run of packets that pass before
the next loss. The window length is part of every fingerprint. Later occurrences of an identity are drawn one by one, keyed
(link, identity, occurrence), and control packets (identity None) keyed (link, ordinal of the control packet on this link).
So the same packets are lost whatever the timing, the protocol variant or the world (simulator, emulator).

`LinkLoss` serves one link and counts in pure Python; `BundleLoss` serves N sibling links at once with numpy. Both give
identical numbers, because every step is a 64-bit integer operation and no floating-point function takes part.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from mypy_extensions import mypyc_attr

from protocols.rng import GOLDEN, extend

__all__ = [
    "BundleLoss",
    "LinkLoss",
    "Losers",
    "Odds",
    "Siblings",
    "Table",
    "Words",
    "extend_all",
    "member_keys",
    "odds_of",
    "tabulate",
]

Words: TypeAlias = npt.NDArray[np.uint64]
Losers: TypeAlias = list[int] | npt.NDArray[np.int64]
Table: TypeAlias = tuple[list[int], npt.NDArray[np.int64]]
"""The losers of a window of 256 packets: where each packet's losers begin, and all losers packet by packet."""

WINDOW = 256
# Words below a link's key that no window number can have: identities have 64 bits, so windows have 56.
_REPEAT = 0xFFFFFFFFFFFFFF01
_CONTROL = 0xFFFFFFFFFFFFFF02
# Tables of losers are a pure function of the window, so an old one is forgotten and drawn again if it is ever needed.
TABLES = 16
# Below this many links a numpy call costs more than the draws themselves.
FEW = 24

_GOLDEN = np.uint64(GOLDEN)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


def extend_all(keys: Words, words: Words | np.uint64) -> Words:
    """`protocols.rng.extend` of many keys at once."""
    x: Words = (keys ^ words) + _GOLDEN
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


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


def _window(key: int, window: int, odds: Odds) -> list[int]:
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


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkLoss:
    """The losses of one link. `key` is `key_of(seed, "loss", from, to)`, extended by the member in a group of leaves."""

    __slots__ = ("_controls", "_key", "_lost", "_odds", "_repeats", "_seen")

    def __init__(self, key: int, p: float) -> None:
        self._key = key
        self._odds = odds_of(p)
        self._controls = 0
        self._seen: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._repeats: dict[int, int] = {}

    def lost(self, identity: int | None) -> bool:
        """Is the packet arriving now lost? Counts its occurrence."""
        if identity is None:
            self._controls += 1
            return extend(extend(self._key, _CONTROL), self._controls) >= self._odds.passing
        window, bit = identity >> 8, 1 << (identity & 255)
        seen = self._seen.get(window, 0)
        if seen & bit:
            occurrence = self._repeats[identity] = self._repeats.get(identity, 1) + 1
            return extend(extend(extend(self._key, _REPEAT), identity), occurrence) >= self._odds.passing
        self._seen[window] = seen | bit
        lost = self._lost.get(window)
        if lost is None:
            lost = self._draw(window)
        return lost & bit != 0

    def _draw(self, window: int) -> int:
        if len(self._lost) >= TABLES:
            self._lost.clear()
        lost = self._lost[window] = sum(1 << offset for offset in _window(self._key, window, self._odds))
        return lost


def tabulate(lost: npt.NDArray[np.int64]) -> Table:
    """Losses of a window given as offset * 2**32 + member: members by offset, and where each offset begins."""
    lost.sort()
    starts: list[int] = np.searchsorted(lost, np.arange(WINDOW + 1, dtype=np.int64) << 32).tolist()
    return starts, lost & 0xFFFFFFFF


@mypyc_attr(allow_interpreted_subclasses=True)
class Siblings(ABC):
    """The losses of N sibling links that nearly always carry the same packets: counts what came, leaves the drawing to others.

    Links that saw other traffic (a multicast does not return to its sender, a unicast goes to one) are remembered as the
    difference of their count of occurrences. A subclass answers for one packet of a known occurrence.
    """

    __slots__ = ("_controls", "_differ", "_keys", "_repeats", "_seen")

    def __init__(self, keys: Words) -> None:
        self._keys = keys
        self._controls = np.zeros(len(keys), np.uint64)
        self._seen: dict[int, int] = {}
        self._repeats: dict[int, int] = {}
        self._differ: dict[int, dict[int, int]] = {}

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Members that lose the packet arriving now on every link but that of `skip`; ascending."""
        if identity is None:
            self._controls += np.uint64(1)
            if skip >= 0:
                self._controls[skip] -= np.uint64(1)
            return self._control_losers(skip)
        window, bit = identity >> 8, 1 << (identity & 255)
        seen = self._seen.get(window, 0)
        if seen & bit:
            occurrence = self._repeats[identity] = self._repeats.get(identity, 1) + 1
            losers = self._repeat_losers(identity, occurrence)
        else:
            self._seen[window] = seen | bit
            occurrence = 1
            losers = self._first_losers(identity)
        if skip >= 0 or identity in self._differ:
            losers = self._apart(losers, identity, occurrence, skip)
        return losers

    def lost(self, identity: int | None, member: int) -> bool:
        """Does this one member lose the packet that comes on its link alone?"""
        if identity is None:
            self._controls[member] += np.uint64(1)
            return self._control_lost(int(self._controls[member]), member)
        differ = self._differ.setdefault(identity, {})
        differ[member] = differ.get(member, 0) + 1
        return self._single(identity, self._occurrence(identity) + differ[member], member)

    def _occurrence(self, identity: int) -> int:
        """How often the bundle as a whole carried this identity."""
        if not self._seen.get(identity >> 8, 0) >> (identity & 255) & 1:
            return 0
        return self._repeats.get(identity, 1)

    def _apart(self, losers: Sequence[int], identity: int, occurrence: int, skip: int) -> Sequence[int]:
        """`losers` corrected for links whose count of this identity differs from the bundle's."""
        differ = self._differ.setdefault(identity, {})
        right = set(losers)
        for member, extra in differ.items():
            right.discard(member)
            if member != skip and self._single(identity, occurrence + extra, member):
                right.add(member)
        if skip >= 0:
            right.discard(skip)
            differ[skip] = differ.get(skip, 0) - 1
        return sorted(right)

    @abstractmethod
    def _first_losers(self, identity: int) -> Sequence[int]:
        """Who loses the first occurrence, ascending."""

    @abstractmethod
    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        """Who loses a later occurrence, ascending."""

    @abstractmethod
    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        """Does one member lose this occurrence?"""

    @abstractmethod
    def _control_losers(self, skip: int) -> Sequence[int]:
        """Who loses the control packet that `_controls` just counted, `skip` left out; ascending."""

    @abstractmethod
    def _control_lost(self, ordinal: int, member: int) -> bool:
        """Does one member lose its control packet of this number?"""


@mypyc_attr(allow_interpreted_subclasses=True)
class BundleLoss(Siblings):
    """Independent losses of N sibling links, drawn together: the answers of N `LinkLoss` with `keys[member]`."""

    __slots__ = ("_odds", "_roots", "_tables")

    def __init__(self, keys: Words, p: float) -> None:
        super().__init__(keys)
        self._odds = odds_of(p)
        # Repeat and control keys of every link, made when the first such packet comes.
        self._roots: dict[int, Words] = {}
        self._tables: dict[int, Table] = {}

    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        if occurrence == 1:
            losers = self._first_losers(identity)
            at = bisect_left(losers, member)
            return at < len(losers) and losers[at] == member
        key = extend(int(self._keys[member]), _REPEAT)
        return extend(extend(key, identity), occurrence) >= self._odds.passing

    def _control_lost(self, ordinal: int, member: int) -> bool:
        return extend(extend(int(self._keys[member]), _CONTROL), ordinal) >= self._odds.passing

    def _root(self, purpose: int) -> Words:
        root = self._roots.get(purpose)
        if root is None:
            root = self._roots[purpose] = extend_all(self._keys, np.uint64(purpose))
        return root

    def _control_losers(self, skip: int) -> Sequence[int]:
        draws = extend_all(self._root(_CONTROL), self._controls)
        losers: list[int] = np.flatnonzero(draws >= np.uint64(self._odds.passing)).tolist()
        if skip in losers:
            losers.remove(skip)
        return losers

    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        draws = extend_all(extend_all(self._root(_REPEAT), np.uint64(identity)), np.uint64(occurrence))
        losers: list[int] = np.flatnonzero(draws >= np.uint64(self._odds.passing)).tolist()
        return losers

    def _first_losers(self, identity: int) -> Sequence[int]:
        window, offset = identity >> 8, identity & 255
        table = self._tables.get(window)
        if table is None:
            table = self._draw(window)
        starts, members = table
        begin, end = starts[offset], starts[offset + 1]
        if begin == end:
            return ()
        losers: list[int] = members[begin:end].tolist()
        return losers

    def foretell(self, identity: int, count: int) -> tuple[int, list[tuple[int, Losers]]]:
        """Which of `count` packets with consecutive identities that come now are lost, from 0, in order, and who loses them.

        First of how many it tells: fewer where that is not simple. Counts nothing: `count` does, when they have come. Arrays,
        for lists of all of them would weigh too much.
        """
        window, offset = identity >> 8, identity & 255
        count = min(count, WINDOW - offset)
        if self._differ or self._seen.get(window, 0) >> offset & (1 << count) - 1:
            return 0, []
        starts, members = self._tables.get(window) or self._draw(window)
        losers: list[tuple[int, Losers]] = []
        at, end = starts[offset], starts[offset + count]
        while at < end:
            behind = bisect_right(starts, at)
            losers.append((behind - 1 - offset, members[at : starts[behind]]))
            at = starts[behind]
        return count, losers

    def count(self, identity: int, count: int) -> None:
        """`count` packets with consecutive identities came to all links for the first time, as foretold."""
        window, offset = identity >> 8, identity & 255
        self._seen[window] = self._seen.get(window, 0) | (1 << count) - 1 << offset

    def _draw(self, window: int) -> Table:
        """The losers of all 256 identities of a window: members by offset, and where each offset begins."""
        if len(self._tables) >= TABLES:
            self._tables.clear()
        table = self._tables[window] = tabulate(self._draw_few(window) if len(self._keys) < FEW else self._draw_many(window))
        return table

    def _draw_few(self, window: int) -> npt.NDArray[np.int64]:
        """Losses of a window as offset * 2**32 + member, link by link."""
        keys: list[int] = self._keys.tolist()
        pairs = [(at << 32) | m for m, key in enumerate(keys) for at in _window(key, window, self._odds)]
        return np.array(pairs, np.int64)

    def _draw_many(self, window: int) -> npt.NDArray[np.int64]:
        """The same with one numpy call per draw over all links that are still inside the window."""
        keys = extend_all(self._keys, np.uint64(window))
        members = np.arange(len(keys), dtype=np.int64)
        position = np.zeros(len(keys), np.int64)
        found, draw = [], 0
        while len(keys):
            position = position + (WINDOW - np.searchsorted(self._odds.array, extend_all(keys, np.uint64(draw)), "right"))
            inside = position < WINDOW
            keys, members, position = keys[inside], members[inside], position[inside]
            found.append((position << 32) | members)
            position = position + 1
            draw += 1
        return np.concatenate(found)
