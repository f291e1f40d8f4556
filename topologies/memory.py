"""Losses with memory: Gilbert-Elliott bursts and periodic or recorded sequences, keyed by the identity of packets.

The index of a Markov chain or a sequence is the packet's identity, which is consecutive per source and kind, and not its time
of arrival; so the same packets are lost whatever else the link carries. Each occurrence number of identities is a stream of its
own, and so are control packets, indexed by their ordinal on the link. All links of a group are drawn together, in windows of
256 packets, with 64-bit integers only.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from protocols.rng import extend
from protocols.rng_arrays import Words
from topologies.draws import FEW, WINDOW, Table, extend_all, listed, tabulate, threshold_of
from topologies.losses import TABLES, GroupSampler

__all__ = ["GilbertElliottLoss", "SequenceLoss", "SingleLink"]

Bools = npt.NDArray[np.bool_]

# Words that extend a link's key.
_MEMORY = 0xFFFFFFFFFFFFFF03
_PHASE = 0xFFFFFFFFFFFFFF04
# Words that extend the key of a window; transitions between states are numbered from 0.
_START = 1 << 20
_EMIT = 1 << 21
# Number of the stream of control packets; those of content are occurrence numbers, from 1.
_CONTROL = 0
# Chains restart every 256 windows (65,536 packets), which bounds the work to reach any packet.
_EPOCH = 255
# Links drawn at once: as many as keep the intermediate arrays in the CPU's cache.
_CHUNK = 4096


class SingleLink:
    """Loss sampler of one link, made of a group of one."""

    __slots__ = ("_group",)

    def __init__(self, group: GroupSampler) -> None:
        self._group = group

    def lost(self, identity: int | None) -> bool:
        """Return whether the packet arriving now is lost. Counts its occurrence."""
        return len(self._group.losers(identity)) > 0


class GilbertElliottLoss(GroupSampler):
    """Gilbert-Elliott losses of N links.

    `p` and `r` are the probabilities per packet of the transitions good to bad and bad to good, `loss_bad` and `loss_good` the
    loss probabilities in these states. Each chain starts in its stationary distribution.
    """

    __slots__ = ("_begins", "_emits", "_exits", "_roots", "_states", "_tables")

    def __init__(self, keys: Words, p: float, r: float, loss_bad: float, loss_good: float) -> None:
        super().__init__(keys)
        self._exits = (threshold_of(p), threshold_of(r))
        self._begins = threshold_of(p / (p + r)).passing
        # Least 64-bit draw by which a packet is lost, by state; None if none is.
        self._emits = tuple(threshold_of(e).passing if e else None for e in (loss_good, loss_bad))
        self._roots: dict[int, Words] = {}
        # State of each link (a bit) at the begin of a window, by stream and window.
        self._states: dict[tuple[int, int], npt.NDArray[np.uint8]] = {}
        self._tables: dict[tuple[int, int], Table] = {}

    def first_losers(self, identity: int) -> Sequence[int]:
        """See `GroupSampler`."""
        return self._losers(1, identity)

    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        return self._losers(occurrence, identity)

    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        return member in self._losers(occurrence, identity)

    def _control_lost(self, ordinal: int, member: int) -> bool:
        return member in self._losers(_CONTROL, ordinal)

    def _control_losers(self, skip: int) -> Sequence[int]:
        ordinals = self._ordinals()
        ordinal = int(ordinals.max())
        losers = self._losers(_CONTROL, ordinal)
        behind = np.flatnonzero(ordinals != np.uint64(ordinal)).tolist()
        if not behind and skip < 0:
            return losers
        right = set(losers).difference(behind)
        right.update(member for member in behind if self._control_lost(int(ordinals[member]), member))
        right.discard(skip)
        return sorted(right)

    def _losers(self, stream: int, index: int) -> Sequence[int]:
        table = self._tables.get((stream, index >> 8))
        starts, members = self._draw(stream, index >> 8) if table is None else table
        offset = index & 255
        begin, end = starts[offset], starts[offset + 1]
        return listed(members[begin:end])

    def _window_keys(self, stream: int, window: int) -> Words:
        root = self._roots.get(stream)
        if root is None:
            root = self._roots[stream] = extend_all(extend_all(self._keys, np.uint64(_MEMORY)), np.uint64(stream))
        return extend_all(root, np.uint64(window))

    def _draw(self, stream: int, window: int) -> Table:
        """Draw the losses of a window, after those before it that were not drawn since the chain's restart."""
        if len(self._tables) >= TABLES:
            self._tables.clear()
        first = window
        while first & _EPOCH and (stream, first) not in self._states:
            first -= 1
        for passed in range(first, window + 1):
            lost = self._walk(stream, passed)
        (table,) = tabulate(lost)
        self._tables[stream, window] = table
        return table

    def _walk(self, stream: int, window: int) -> npt.NDArray[np.int64]:
        """Return the losses of a window as offset * 2**32 + member, and store the states at its end."""
        keys, states = self._window_keys(stream, window), self._states
        count = len(keys)
        if window & _EPOCH:
            bad = np.unpackbits(states[stream, window], count=count).astype(np.bool_)
        else:
            bad = extend_all(keys, np.uint64(_START)) >= np.uint64(self._begins)
        if count < FEW:
            lost, after = self._walk_few(keys, bad)
        else:
            parts = [self._walk_many(keys, bad, at) for at in range(0, count, _CHUNK)]
            lost, after = (np.concatenate(part) for part in zip(*parts, strict=True))
        if (window + 1) & _EPOCH:
            states[stream, window + 1] = np.packbits(after)
        return lost

    def _walk_few(self, keys: Words, begins: Bools) -> tuple[npt.NDArray[np.int64], Bools]:
        pairs: list[int] = []
        after = begins.copy()
        for member, key in enumerate(keys.tolist()):
            bad, position, draw = bool(begins[member]), 0, 0
            while position < WINDOW:
                end = position + 1 + WINDOW - bisect_right(self._exits[bad].ascending, extend(key, draw))
                draw += 1
                emit = self._emits[bad]
                if emit is not None:
                    offsets = range(position, min(end, WINDOW))
                    pairs.extend((at << 32) | member for at in offsets if not emit or extend(key, _EMIT + at) >= emit)
                # A sojourn that ends within the window, or exactly with it, changes the state.
                bad ^= end <= WINDOW
                position = end
            after[member] = bad
        return np.array(pairs, np.int64), after

    def _walk_many(self, keys: Words, begins: Bools, first: int) -> tuple[npt.NDArray[np.int64], Bools]:
        """`_walk_few` for up to 4096 links from `first`, with one numpy call per transition."""
        keys = keys[first : first + _CHUNK]
        after = begins[first : first + _CHUNK].copy()
        members = np.arange(len(keys), dtype=np.int64)
        position = np.zeros(len(keys), np.int64)
        found, draw = [np.zeros(0, np.int64)], 0
        leave, back = self._exits
        while len(members):
            bad, words = after[members], extend_all(keys[members], np.uint64(draw))
            passed = np.where(bad, np.searchsorted(back.array, words, "right"), np.searchsorted(leave.array, words, "right"))
            end = position + (1 + WINDOW) - passed
            found += [self._emitted(keys, members, position, end, bad, state) for state in (0, 1)]
            after[members] = bad ^ (end <= WINDOW)
            inside = end < WINDOW
            members, position = members[inside], end[inside]
            draw += 1
        return np.concatenate(found) + first, after

    def _emitted(
        self,
        keys: Words,
        members: npt.NDArray[np.int64],
        begin: npt.NDArray[np.int64],
        end: npt.NDArray[np.int64],
        bad: Bools,
        state: int,
    ) -> npt.NDArray[np.int64]:
        """Return the losses during sojourns in one state, as offset * 2**32 + member."""
        emit = self._emits[state]
        if emit is None:
            return np.zeros(0, np.int64)
        mine = bad if state else ~bad
        members, begin = members[mine], begin[mine]
        lengths = np.minimum(end[mine], WINDOW) - begin
        within = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        offsets, losers = within + np.repeat(begin, lengths), np.repeat(members, lengths)
        if emit:
            lost = extend_all(keys[losers], (offsets + _EMIT).astype(np.uint64)) >= np.uint64(emit)
            offsets, losers = offsets[lost], losers[lost]
        return (offsets << 32) | losers


class SequenceLoss(GroupSampler):
    """A periodic sequence of losses on N links; `lost` holds one period, true where a packet is lost.

    The index of a content packet is its number within its kind and object (the low 32 bits of its identity) plus the number of
    earlier occurrences; that of a control packet is its ordinal on the link. With `shift` each link, object and kind starts at
    a random position, else all start at the first.
    """

    __slots__ = ("_lost", "_phases", "_shift")

    def __init__(self, keys: Words, lost: Bools, shift: bool) -> None:
        super().__init__(keys)
        self._lost = lost
        self._shift = shift
        self._phases = lru_cache(maxsize=TABLES)(self._draw_phases)

    def _draw_phases(self, run: int) -> npt.NDArray[np.int64]:
        if not self._shift:
            return np.zeros(len(self._keys), np.int64)
        words = extend_all(extend_all(self._keys, np.uint64(_PHASE)), np.uint64(run))
        return (words % np.uint64(len(self._lost))).astype(np.int64)

    def first_losers(self, identity: int) -> Sequence[int]:
        """See `GroupSampler`."""
        return self._repeat_losers(identity, 1)

    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        place = (identity & 0xFFFFFFFF) + occurrence - 1
        if not self._shift:
            return range(len(self._keys)) if self._lost[place % len(self._lost)] else ()
        lost = self._lost[(self._phases(identity >> 32) + place) % len(self._lost)]
        losers: list[int] = np.flatnonzero(lost).tolist()
        return losers

    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        place = int(self._phases(identity >> 32)[member]) + (identity & 0xFFFFFFFF) + occurrence - 1
        return bool(self._lost[place % len(self._lost)])

    def _control_losers(self, skip: int) -> Sequence[int]:
        places = self._phases(1 << 32) + self._ordinals().astype(np.int64) - 1
        losers: list[int] = np.flatnonzero(self._lost[places % len(self._lost)]).tolist()
        if skip in losers:
            losers.remove(skip)
        return losers

    def _control_lost(self, ordinal: int, member: int) -> bool:
        return bool(self._lost[(int(self._phases(1 << 32)[member]) + ordinal - 1) % len(self._lost)])
