"""Which packets a lossy link loses: draws keyed by what a packet is, never by when it comes.

A packet with an identity (content) that comes to a link for the first time is lost or not by a *keyed geometric skip*:
identities are taken in windows of 256, and key (link, window, draw) gives the length of the run of packets that pass before
the next loss. The window length is part of every fingerprint. Later occurrences of an identity are drawn one by one, keyed
(link, identity, occurrence), and control packets (identity None) keyed (link, ordinal of the control packet on this link).
So the same packets are lost whatever the timing, the protocol variant or the world (simulator, emulator).

`LinkLoss` serves one link and counts in pure Python; `GroupLoss` serves N sibling links at once with numpy. Both give
identical numbers, because every step is a 64-bit integer operation and no floating-point function takes part.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from mypy_extensions import mypyc_attr

from protocols.rng import extend
from topologies.draws import BULK, WINDOW, Losers, Table, Words, draw_windows, extend_all, listed, lost_offsets, odds_of

__all__ = ["TABLES", "GroupLoss", "LinkLoss", "Siblings"]

# Words below a link's key that no window number can have: identities have 64 bits, so windows have 56.
_REPEAT = 0xFFFFFFFFFFFFFF01
_CONTROL = 0xFFFFFFFFFFFFFF02
TABLES = 16
"""Tables of losers are a pure function of the window, so an old one is forgotten and drawn again if it is ever needed."""
# So many windows of a stream of packets are drawn at once at most.
STREAM = 8
# So many control packets are drawn ahead at most, and so many draws made for them.
AHEAD, DRAWS = 64, 16384
_STEPS: Words = np.arange(AHEAD, dtype=np.uint64)[::-1, np.newaxis]


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
        lost = self._lost[window] = sum(1 << offset for offset in lost_offsets(self._key, window, self._odds))
        return lost


@mypyc_attr(allow_interpreted_subclasses=True)
class Siblings(ABC):
    """The losses of N sibling links that nearly always carry the same packets: counts what came, leaves the drawing to others.

    Links that saw other traffic (a multicast does not return to its sender, a unicast goes to one) are remembered as the
    difference of their count of occurrences. A subclass answers for one packet of a known occurrence.
    """

    __slots__ = ("_behind", "_controls", "_differ", "_keys", "_lags", "_repeats", "_seen")

    def __init__(self, keys: Words) -> None:
        self._keys = keys
        # Control packets that came on nearly all links, and how many fewer of them came on each.
        self._controls = 0
        self._behind = array("q", bytes(8 * len(keys)))
        # The same, as words to calculate with.
        self._lags: Words = np.frombuffer(self._behind, np.uint64)
        self._seen: dict[int, int] = {}
        self._repeats: dict[int, int] = {}
        self._differ: dict[int, dict[int, int]] = {}

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Members that lose the packet arriving now on every link but that of `skip`; ascending."""
        if identity is None:
            self._controls += 1
            if skip >= 0:
                self._behind[skip] += 1
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
            self._behind[member] -= 1
            return self._control_lost(self._controls - self._behind[member], member)
        differ = self._differ.setdefault(identity, {})
        differ[member] = differ.get(member, 0) + 1
        return self._single(identity, self._occurrence(identity) + differ[member], member)

    def _ordinals(self) -> Words:
        """How many control packets came on each link."""
        return np.uint64(self._controls) - self._lags

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
        """Who loses the control packet just counted, `skip` left out; ascending."""

    @abstractmethod
    def _control_lost(self, ordinal: int, member: int) -> bool:
        """Does one member lose its control packet of this number?"""


class _Coming:
    """Who will lose each of the next control packets, as long as they come on all links."""

    __slots__ = ("_fates", "_packets")

    def __init__(self, packets: list[list[int]]) -> None:
        # The last first.
        self._packets = packets
        # Member -> which of them it will lose, and maybe some that have come already.
        self._fates: dict[int, list[int]] = {}
        for at, losers in enumerate(packets):
            for member in losers:
                self._fates.setdefault(member, []).append(at)

    def __len__(self) -> int:
        return len(self._packets)

    def pop(self) -> list[int]:
        """Who loses the next."""
        return self._packets.pop()

    def delay(self, member: int) -> None:
        """The next does not come on its link: it loses what follows instead."""
        fates = self._fates.get(member)
        if fates:
            self._move(member, fates, -1)

    def advance(self, member: int, last: bool) -> bool:
        """One more came on its link: is it lost? It will lose what comes before instead, and the `last`."""
        count, fates = len(self._packets), self._fates.setdefault(member, [])
        lost = count - 1 in fates if count else last
        self._move(member, fates, 1)
        if last and count:
            fates.append(0)
            insort(self._packets[0], member)
        return lost

    def _move(self, member: int, fates: list[int], step: int) -> None:
        packets = self._packets
        count = len(packets)
        old = [at for at in fates if at < count]
        fates[:] = [at + step for at in old if 0 <= at + step < count]
        for at in old:
            packets[at].remove(member)
        for at in fates:
            insort(packets[at], member)


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupLoss(Siblings):
    """Independent losses of N sibling links, drawn together: the answers of N `LinkLoss` with `keys[member]`."""

    __slots__ = ("_coming", "_odds", "_roots", "_tables")

    def __init__(self, keys: Words, p: float) -> None:
        super().__init__(keys)
        self._coming = _Coming([])
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
        # Its link is one packet further than the others; only for the last of those drawn ahead there is one to be drawn.
        last = extend(extend(int(self._keys[member]), _CONTROL), ordinal + len(self._coming))
        return self._coming.advance(member, last >= self._odds.passing)

    def _root(self, purpose: int) -> Words:
        root = self._roots.get(purpose)
        if root is None:
            root = self._roots[purpose] = extend_all(self._keys, np.uint64(purpose))
        return root

    def _control_losers(self, skip: int) -> Sequence[int]:
        coming = self._coming
        if not coming:
            # `skip` counts as behind already.
            coming = self._coming = _Coming(self._draw_controls())
            return [member for member in coming.pop() if member != skip]
        if skip >= 0:
            coming.delay(skip)
        return coming.pop()

    def _draw_controls(self) -> list[list[int]]:
        """Who loses each of the next control packets, the last of them first, if all come on all links."""
        links = len(self._keys)
        count = max(1, min(AHEAD, DRAWS // links))
        draws = extend_all(self._root(_CONTROL), self._ordinals() + _STEPS[-count:])
        coming: list[list[int]] = [[] for _ in range(count)]
        for at in (draws.ravel() >= np.uint64(self._odds.passing)).nonzero()[0].tolist():
            coming[at // links].append(at % links)
        return coming

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
        return listed(members[begin:end])

    def predict_losses(self, identity: int, count: int, first: int) -> tuple[int, list[tuple[int, Losers]]]:
        """Which of `count` packets with consecutive identities that come now are lost, in order, and who loses them.

        They are numbered from `first`. Before that, of how many it tells: fewer where that is not simple. Counts nothing:
        `count` does, when they have come. Arrays where lists of all of them would weigh too much.
        """
        window, offset = identity >> 8, identity & 255
        count = min(count, WINDOW - offset)
        if self._differ or self._seen.get(window, 0) >> offset & (1 << count) - 1:
            return 0, []
        starts, members = self._tables.get(window) or self._draw(window)
        spans = enumerate(pairwise(starts[offset : offset + count + 1]), first)
        return count, [(at, members[begin:end]) for at, (begin, end) in spans if begin < end]

    def count(self, identity: int, count: int) -> Losers:
        """`count` packets with consecutive identities came for the first time, as foretold; who lost one, once for each."""
        window, offset = identity >> 8, identity & 255
        self._seen[window] = self._seen.get(window, 0) | (1 << count) - 1 << offset
        starts, members = self._tables.get(window) or self._draw(window)
        return members[starts[offset] : starts[offset + count]]

    def _draw(self, window: int) -> Table:
        """The losers of all 256 identities of a window; of a stream of packets the windows that follow are drawn, too."""
        tables, count = self._tables, 1
        while count < min(STREAM, BULK // len(self._keys)) and window - count in tables:
            # As many as there are of it.
            count += 1
        for old in list(tables)[: max(len(tables) + count - max(TABLES, 6 * count), 0)]:
            del tables[old]
        drawn = draw_windows(self._keys, window, count, self._odds)
        tables.update(zip(range(window, window + count), drawn, strict=True))
        return drawn[0]
