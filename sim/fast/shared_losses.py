"""Predictions of losses on the links to a group of hosts, for those on which packets have an effect."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from typing import Final

from topologies.draws import WINDOW, Losers, listed
from topologies.losses import GroupLoss, LinkLoss

__all__ = ["SharedLosses"]

TABLES: Final = 64
"""Windows of identities of which losses are kept."""


class _Window:
    """Which members lose the packets of one window of identities: places of packets, ascending, and the members of each."""

    __slots__ = ("apart", "gone", "losers", "places")

    def __init__(self, losses: Iterable[tuple[int, Losers]], unconcerned: Collection[int], listeners: int) -> None:
        self.places: list[int] = []
        self.losers: list[list[int]] = []
        """Of each of these packets, the members that lose it and on which packets have an effect."""
        self.gone: list[int] = []
        """The places of packets that all members lose on which packets have an effect."""
        self.apart: list[tuple[int, list[int]]] = []
        """Place and losers of each packet that unconcerned members lose."""
        for place, members in losses:
            lost_by = listed(members)
            concerned = [member for member in lost_by if member not in unconcerned]
            if concerned:
                self.places.append(place)
                self.losers.append(concerned)
            if len(concerned) == listeners:
                self.gone.append(place)
            if len(concerned) < len(lost_by):
                self.apart.append((place, [member for member in lost_by if member in unconcerned]))


class SharedLosses:
    """Predicts the losses of the hosts on which packets have an effect; `listeners` is their number."""

    __slots__ = ("_sampler", "_windows", "listeners", "unconcerned")

    def __init__(self, sampler: GroupLoss | LinkLoss | None) -> None:
        self._sampler = sampler
        self._windows: dict[int, _Window] = {}
        self.unconcerned: Collection[int] = ()
        """The other members of the group."""
        self.listeners = 0

    def set_members(self, present: int, unconcerned: Collection[int]) -> None:
        """Set how many members listen, and those of them that are unconcerned."""
        self._windows.clear()
        self.unconcerned = unconcerned
        self.listeners = present - len(unconcerned)

    def _window(self, identity: int) -> _Window:
        """Return the window of an identity."""
        number = identity // WINDOW
        found = self._windows.get(number)
        if found is None:
            if len(self._windows) >= TABLES:
                # The one that was made first.
                del self._windows[next(iter(self._windows))]
            losses = [] if self._sampler is None else self._sampler.predict(number * WINDOW, WINDOW)
            found = self._windows[number] = _Window(losses, self.unconcerned, self.listeners)
        return found

    @property
    def is_uniform(self) -> bool:
        """False: the link of a sender does not carry what that sends."""
        return False

    def predictable(self, identity: int, count: int) -> int:
        """As of `GroupLoss`."""
        return count if self._sampler is None else self._sampler.predictable(identity, count)

    def predict(self, identity: int, count: int) -> list[tuple[int, Losers]]:
        """As of `GroupLoss`."""
        window, offset = self._window(identity), identity % WINDOW
        places = window.places
        begin = bisect_left(places, offset)
        end = bisect_left(places, offset + count, begin)
        return [(places[at] - offset, window.losers[at]) for at in range(begin, end)]

    def predict_apart(self, identity: int, count: int) -> list[tuple[int, list[int]]]:
        """Return what unconcerned members lose, as `predict`."""
        offset = identity % WINDOW
        apart = self._window(identity).apart
        return [(place - offset, members) for place, members in apart if offset <= place < offset + count]

    def count(self, identity: int, count: int) -> Losers:
        """As of `GroupLoss`, with the losses of all members."""
        return [] if self._sampler is None else self._sampler.count(identity, count)

    def first_losers(self, identity: int) -> list[int]:
        """As of `GroupLoss`."""
        return [member for _, losers in self.predict(identity, 1) for member in losers]

    def first_lost(self, identity: int, count: int) -> int:
        """As of `GroupLoss`."""
        found = self.predict(identity, count)
        return found[0][0] if found else count

    def first_lost_by_all(self, identity: int, count: int) -> int:
        """As of `GroupLoss`."""
        gone, offset = self._window(identity).gone, identity % WINDOW
        at = bisect_left(gone, offset)
        return min(gone[at] - offset, count) if at < len(gone) else count
