"""Bernoulli losses of links, keyed by the identity of packets and not by the order in which they arrive.

The first occurrence of an identity (content) on a link is decided by a *keyed geometric skip*: identities are divided into
windows of 256, and the draw with key (link, window, n) gives the number of packets that are not lost before the n-th loss. The
window length is part of every fingerprint. Later occurrences are drawn one by one with key (link, identity, occurrence),
control packets (identity None) with key (link, ordinal of the control packet on the link). So the same packets are lost
whatever the timing and the protocol variant, in the simulator and in Mininet.

`LinkLoss` decides for one link in plain Python, `GroupLoss` for the N links of a counted group at once with numpy. Both give
identical results, since all steps are 64-bit integer operations.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Final

import numpy as np
from mypy_extensions import mypyc_attr

from protocols.rng import extend
from protocols.rng_arrays import Words
from topologies.draws import (
    BULK,
    WINDOW,
    Losers,
    Table,
    draw_windows,
    extend_all,
    listed,
    lost_offsets,
    parts_of,
    threshold_of,
)
from topologies.group_counter import GroupCounter
from topologies.repeats import Repeats, count_occurrence

__all__ = ["CONTROL", "TABLES", "GroupLoss", "GroupSampler", "LinkLoss"]

# Words that extend a link's key; no window number is equal to one, since windows have 56 bits.
_REPEAT: Final = 0xFFFFFFFFFFFFFF01
CONTROL: Final = 0xFFFFFFFFFFFFFF02
"""Extends a link's key to that of its control packets; the ordinal follows."""
TABLES: Final = 16
"""Tables kept. A table is a pure function of its window, so one that was removed can be drawn again."""
STREAM: Final = 8
"""Most windows of a stream of packets that are drawn at once."""
STREAM_LANES: Final = 64
"""Number of links times windows up to which several windows take hardly more time than one."""
# Most control packets that are drawn ahead, and most draws made for them.
AHEAD: Final = 128
DRAWS: Final = 16384
_STEPS: Words = np.arange(AHEAD, dtype=np.uint64)[::-1, np.newaxis]


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkLoss:
    """Bernoulli loss of one link. `key` is `key_of(seed, "loss", from, to)`, in a counted group extended by the member."""

    __slots__ = ("_controls", "_key", "_lost", "_repeats", "_seen", "_threshold")

    def __init__(self, key: int, p: float) -> None:
        self._key = key
        self._threshold = threshold_of(p)
        self._controls = 0
        self._seen: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._repeats = Repeats()

    def lost(self, identity: int | None) -> bool:
        """Return whether the packet arriving now is lost. Counts its occurrence."""
        if identity is None:
            self._controls += 1
            return extend(extend(self._key, CONTROL), self._controls) >= self._threshold.passing
        window, bit = identity >> 8, 1 << (identity & 255)
        seen = self._seen.get(window, 0)
        if seen & bit:
            return self._is_repeat_lost(identity, self._repeats.count(identity))
        self._seen[window] = seen | bit
        lost = self._lost.get(window)
        if lost is None:
            lost = self._draw(window)
        return lost & bit != 0

    def predictable(self, identity: int, count: int) -> int:
        """As of `GroupLoss`."""
        window, offset = identity >> 8, identity & 255
        count = min(count, WINDOW - offset)
        return 0 if self._seen.get(window, 0) >> offset & (1 << count) - 1 else count

    def predict(self, identity: int, count: int) -> list[tuple[int, Losers]]:
        """As of `GroupLoss`, with the link as member 0."""
        lost = self._bits(identity, count)
        losses: list[tuple[int, Losers]] = []
        while lost:
            place = (lost & -lost).bit_length() - 1
            losses.append((place, [0]))
            lost &= lost - 1
        return losses

    def first_losers(self, identity: int) -> list[int]:
        """As of `GroupSampler`, with the link as member 0."""
        return [0] if self._bits(identity, 1) else []

    @property
    def is_uniform(self) -> bool:
        """As of `GroupSampler`."""
        return True

    def next_losers(self, identity: int) -> list[int]:
        """As of `GroupSampler`, with the link as member 0."""
        if not self._seen.get(identity >> 8, 0) >> (identity & 255) & 1:
            return self.first_losers(identity)
        return [0] if self._is_repeat_lost(identity, self._repeats.occurrences(identity) + 1) else []

    def count_next(self, identity: int) -> None:
        """As of `GroupSampler`."""
        count_occurrence(self._seen, self._repeats, identity)

    def _is_repeat_lost(self, identity: int, occurrence: int) -> bool:
        return extend(extend(extend(self._key, _REPEAT), identity), occurrence) >= self._threshold.passing

    def first_lost(self, identity: int, count: int) -> int:
        """As of `GroupLoss`."""
        lost = self._bits(identity, count)
        return (lost & -lost).bit_length() - 1 if lost else count

    def first_lost_by_all(self, identity: int, count: int) -> int:
        """As of `GroupLoss`: the link is the only one."""
        return self.first_lost(identity, count)

    def count(self, identity: int, count: int) -> Losers:
        """As of `GroupLoss`."""
        window, offset = identity >> 8, identity & 255
        self._seen[window] = self._seen.get(window, 0) | (1 << count) - 1 << offset
        return [0] * self._bits(identity, count).bit_count()

    def _bits(self, identity: int, count: int) -> int:
        """Return a bit for each of `count` packets of a window, set where the first occurrence is lost."""
        window = identity >> 8
        lost = self._lost.get(window)
        if lost is None:
            lost = self._draw(window)
        return lost >> (identity & 255) & (1 << count) - 1

    def _draw(self, window: int) -> int:
        if len(self._lost) >= TABLES:
            self._lost.clear()
        lost = self._lost[window] = sum(1 << offset for offset in lost_offsets(self._key, window, self._threshold))
        return lost


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupSampler(GroupCounter, ABC):
    """Decides which of the N links of a counted group lose a packet; subclasses draw the losses."""

    __slots__ = ()

    def losers(self, identity: int | None, skip: int = -1) -> Sequence[int]:
        """Return the members that lose the packet arriving now on all links but that of `skip`, ascending. Counts it."""
        if identity is None:
            self._controls += 1
            if skip >= 0:
                self._behind[skip] += 1
            return self._control_losers(skip)
        window, bit = identity >> 8, 1 << (identity & 255)
        seen = self._seen.get(window, 0)
        if seen & bit:
            occurrence = self._repeats.count(identity)
            losers = self._repeat_losers(identity, occurrence)
        else:
            self._seen[window] = seen | bit
            occurrence = 1
            losers = self.first_losers(identity)
        if skip >= 0 or (self._differ and self._differ.among(identity, 1)):
            losers = self._apart(losers, identity, occurrence, skip)
        return losers

    def lost(self, identity: int | None, member: int) -> bool:
        """Return whether a member loses the packet arriving now on its link only. Counts its occurrence."""
        if identity is None:
            self._behind[member] -= 1
            return self._control_lost(self._controls - self._behind[member], member)
        return self._single(identity, self._occurrence(identity) + self._differ.change(identity, member, 1), member)

    def next_losers(self, identity: int) -> Sequence[int]:
        """Return the members that lose the next occurrence on all links, ascending; nothing is counted (`count_next`)."""
        occurrence = self._occurrence(identity) + 1
        return self.first_losers(identity) if occurrence == 1 else self._repeat_losers(identity, occurrence)

    def _apart(self, losers: Sequence[int], identity: int, occurrence: int, skip: int) -> Sequence[int]:
        """Return `losers` corrected for links whose count of this identity differs from the group's."""
        right = set(losers)
        for member, extra in self._differ.of(identity):
            right.discard(member)
            if member != skip and self._single(identity, occurrence + extra, member):
                right.add(member)
        if skip >= 0:
            right.discard(skip)
            self._differ.change(identity, skip, -1)
        return sorted(right)

    @abstractmethod
    def first_losers(self, identity: int) -> Sequence[int]:
        """Return the members that lose the first occurrence, ascending; nothing is counted."""

    @abstractmethod
    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        """Return the members that lose a later occurrence, ascending."""

    @abstractmethod
    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        """Return whether a member loses this occurrence."""

    @abstractmethod
    def _control_losers(self, skip: int) -> Sequence[int]:
        """Return the members other than `skip` that lose the control packet just counted, ascending."""

    @abstractmethod
    def _control_lost(self, ordinal: int, member: int) -> bool:
        """Return whether a member loses the control packet with this ordinal on its link."""


class _ControlLosses:
    """Losses of the next control packets, drawn ahead for the case that all links carry them."""

    __slots__ = ("_by_member", "_packets")

    def __init__(self, packets: list[list[int]]) -> None:
        # Members that lose each packet, the last packet first.
        self._packets = packets
        # Indices in `_packets` that each member loses; indices of packets already popped may remain.
        self._by_member: dict[int, list[int]] = {}
        for at, losers in enumerate(packets):
            for member in losers:
                self._by_member.setdefault(member, []).append(at)

    def __len__(self) -> int:
        return len(self._packets)

    def pop(self) -> list[int]:
        """Remove the next packet; returns the members that lose it."""
        return self._packets.pop()

    def delay(self, member: int) -> None:
        """Shift a member's losses to the packets after them, since its link does not carry the next packet."""
        indices = self._by_member.get(member)
        if indices:
            self._move(member, indices, -1)

    def advance(self, member: int, last: bool) -> bool:
        """Shift a member's losses to the packets before them, since its link carries one packet more than the others.

        `last` says whether the packet is lost that becomes the last one drawn ahead. Returns whether the one more packet is
        lost.
        """
        count, indices = len(self._packets), self._by_member.setdefault(member, [])
        lost = count - 1 in indices if count else last
        self._move(member, indices, 1)
        if last and count:
            indices.append(0)
            insort(self._packets[0], member)
        return lost

    def _move(self, member: int, indices: list[int], step: int) -> None:
        packets = self._packets
        count = len(packets)
        old = [at for at in indices if at < count]
        indices[:] = [at + step for at in old if 0 <= at + step < count]
        for at in old:
            packets[at].remove(member)
        for at in indices:
            insort(packets[at], member)


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupLoss(GroupSampler):
    """Independent Bernoulli losses of N links, equal to those of N `LinkLoss` with `keys[member]`."""

    __slots__ = ("_ahead", "_alone", "_gone", "_repeated", "_tables", "_threshold", "_together")

    def __init__(self, keys: Words, p: float) -> None:
        super().__init__(keys)
        self._ahead = _ControlLosses([])
        self._threshold = threshold_of(p)
        self._tables: dict[int, Table] = {}
        # By window and member: the offsets that one link loses, for packets that no other carries.
        self._alone: dict[tuple[int, int], list[int]] = {}
        # By first identity and occurrence: who loses a later occurrence of this identity and of those behind it, of which so
        # many are drawn together, by the distance from the first.
        self._repeated: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._together = max(1, min(WINDOW, BULK // len(keys)))
        # By window: the places of the packets that all links lose.
        self._gone: dict[int, list[int]] = {}

    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        if occurrence == 1:
            if identity >> 8 not in self._tables:
                return identity & 255 in self._lost_alone(identity >> 8, member)
            losers = self.first_losers(identity)
            at = bisect_left(losers, member)
            return at < len(losers) and losers[at] == member
        key = extend(int(self._keys[member]), _REPEAT)
        return extend(extend(key, identity), occurrence) >= self._threshold.passing

    def _lost_alone(self, window: int, member: int) -> list[int]:
        """Return the offsets of a window that a member's link loses, without drawing those of all other links."""
        lost = self._alone.get((window, member))
        if lost is None:
            if len(self._alone) >= TABLES:
                # The one that was drawn first.
                del self._alone[next(iter(self._alone))]
            lost = self._alone[window, member] = lost_offsets(int(self._keys[member]), window, self._threshold)
        return lost

    def _control_lost(self, ordinal: int, member: int) -> bool:
        # The member's link is one packet ahead of the others, so one more draw is needed: for the last packet drawn ahead.
        last = extend(extend(int(self._keys[member]), CONTROL), ordinal + len(self._ahead))
        return self._ahead.advance(member, last >= self._threshold.passing)

    def _control_losers(self, skip: int) -> Sequence[int]:
        ahead = self._ahead
        if not ahead:
            # The ordinals account for `skip` already.
            ahead = self._ahead = _ControlLosses(self._draw_controls())
            return [member for member in ahead.pop() if member != skip]
        if skip >= 0:
            ahead.delay(skip)
        return ahead.pop()

    def _draw_controls(self) -> list[list[int]]:
        """Draw the members that lose each of the next control packets if all links carry them; the last packet comes first."""
        links = len(self._keys)
        count = max(1, min(AHEAD, DRAWS // links))
        root, passing = self._root(CONTROL), np.uint64(self._threshold.passing)
        ahead: list[list[int]] = [[] for _ in range(count)]
        for part in parts_of(links):
            draws = extend_all(root[part], self._ordinals(part) + _STEPS[-count:])
            width = draws.shape[1]
            for at in (draws.ravel() >= passing).nonzero()[0].tolist():
                ahead[at // width].append(part.start + at % width)
        return ahead

    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        count = self._together
        first = identity // count * count
        repeated = self._repeated.get((first, occurrence))
        if repeated is None:
            if len(self._repeated) >= TABLES:
                # The one that was drawn first.
                del self._repeated[next(iter(self._repeated))]
            repeated = self._repeated[first, occurrence] = self._draw_repeats(first, count, occurrence)
        return repeated.get(identity - first, ())

    def _draw_repeats(self, first: int, count: int, occurrence: int) -> dict[int, list[int]]:
        """Draw the members that lose this occurrence of some of `count` identities, by their distance from `first`."""
        root, passing = self._root(_REPEAT), np.uint64(self._threshold.passing)
        identities = np.uint64(first) + np.arange(count, dtype=np.uint64)[:, np.newaxis]
        repeated: dict[int, list[int]] = {}
        for part in parts_of(len(root)):
            draws = extend_all(extend_all(root[part], identities), np.uint64(occurrence))
            width = draws.shape[1]
            for at in (draws.ravel() >= passing).nonzero()[0].tolist():
                repeated.setdefault(at // width, []).append(part.start + at % width)
        return repeated

    def first_losers(self, identity: int) -> list[int]:
        """See `GroupSampler`."""
        window, offset = identity >> 8, identity & 255
        starts, members = self._tables.get(window) or self._draw(window)
        return listed(members[starts[offset] : starts[offset + 1]])

    def predictable(self, identity: int, count: int) -> int:
        """Return how many of `count` packets with consecutive identities from `identity` on can be predicted.

        Fewer at the end of a window, none where links carried different packets or one of them was carried before.
        """
        window, offset = identity >> 8, identity & 255
        count = min(count, WINDOW - offset)
        if self._seen.get(window, 0) >> offset & (1 << count) - 1:
            return 0
        return 0 if self._differ and self._differ.among(identity, count) else count

    def predict(self, identity: int, count: int) -> list[tuple[int, Losers]]:
        """Predict which of `count` packets of one window are lost at their first occurrence; nothing is counted (`count`).

        Returns pairs of a packet's place from `identity` on, ascending, and the members that lose it.
        """
        window, offset = identity >> 8, identity & 255
        starts, members = self._tables.get(window) or self._draw(window)
        begin, end, first = starts[offset], starts[offset + count], offset
        losses: list[tuple[int, Losers]] = []
        while begin < end:
            # Losses are few, so looking for the next one is faster than looking at every packet.
            offset = bisect_right(starts, begin, offset)
            behind = starts[offset]
            losses.append((offset - 1 - first, members[begin:behind]))
            begin = behind
        return losses

    def first_lost(self, identity: int, count: int) -> int:
        """Return the place of the first of `count` packets of one window that any link loses; `count` if there is none."""
        window, offset = identity >> 8, identity & 255
        starts, _ = self._tables.get(window) or self._draw(window)
        begin = starts[offset]
        return count if begin == starts[offset + count] else bisect_right(starts, begin, offset) - 1 - offset

    def first_lost_by_all(self, identity: int, count: int) -> int:
        """Return the place of the first of `count` packets of one window that all links lose; `count` if there is none."""
        window, offset = identity >> 8, identity & 255
        gone = self._gone.get(window)
        if gone is None:
            starts, _ = self._tables.get(window) or self._draw(window)
            if len(self._gone) >= TABLES:
                self._gone.clear()
            links = len(self._keys)
            # Losses are listed by packet: of those of a packet that all links lose, one is at one of these places.
            candidates = [bisect_right(starts, at) - 1 for at in range(starts[0] + links - 1, starts[WINDOW], links)]
            gone = self._gone[window] = [at for at in candidates if starts[at + 1] - starts[at] == links]
        at = bisect_left(gone, offset)
        return min(gone[at] - offset, count) if at < len(gone) else count

    def count(self, identity: int, count: int) -> Losers:
        """Count the first occurrences of predicted packets; returns the members that lost them, once per packet lost."""
        window, offset = identity >> 8, identity & 255
        self._seen[window] = self._seen.get(window, 0) | (1 << count) - 1 << offset
        starts, members = self._tables.get(window) or self._draw(window)
        return members[starts[offset] : starts[offset + count]]

    def leave_out(self, identity: int, count: int, member: int) -> None:
        """Note that a member's link did not carry packets that were counted."""
        self._differ.leave_out(identity, count, member)

    def _draw(self, window: int) -> Table:
        """Draw the losses of a window; if those before it were drawn, too, as in a stream, also of the windows that follow."""
        tables, links, count = self._tables, len(self._keys), 1
        while count < min(STREAM, BULK // links) and window - count in tables:
            # As many windows ahead as there are before it.
            count += 1
        if count > 1:
            count = max(count, min(STREAM, STREAM_LANES // links))
        for old in list(tables)[: max(len(tables) + count - max(TABLES, 6 * count), 0)]:
            del tables[old]
        drawn = draw_windows(self._keys, window, count, self._threshold)
        tables.update(zip(range(window, window + count), drawn, strict=True))
        return drawn[0]
