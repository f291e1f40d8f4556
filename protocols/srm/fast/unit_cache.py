"""Caches of units that have in common what the members of a group received at the same time.

New units of the source are numbered in a list of the group (`GroupUnits`). A member that received all of them remembers the
first and the last number, and keeps by itself only what it received otherwise: repairs.
"""

from collections.abc import Sequence
from typing import Final

from protocols.arq.fast.messages import FastData
from protocols.arq.messages import Data, Nack, identity_of
from protocols.range_set import RangeSet
from protocols.srm.unit_cache import UnitCache

__all__ = ["FastUnitCache", "GroupUnits", "share_units"]

Origin = tuple[int, int]
"""Node id and instance of a source."""


class GroupUnits:
    """New units of one source, in the order in which members of a group received them, numbered from 0."""

    __slots__ = ("_identities", "_messages", "_numbers", "_origin", "end", "in_use", "is_mixed", "sharers", "start")

    def __init__(self) -> None:
        self._identities: list[int | None] = []
        self._messages: list[Data] = []
        """The message that brought each unit, or one of the same object, from which it is made when it is asked for."""
        self._numbers: dict[int | None, int] = {}
        """Numbers by identity."""
        self._origin: Origin | None = None
        self.is_mixed = False
        """Whether units of several sources are among them, or of one that has restarted; identities may repeat."""
        self.start = self.end = 0
        """The numbers of the first unit, and after the last one."""
        self.in_use = True
        """Whether units that the members of the lockstep group receive are still added here."""
        self.sharers: list[FastUnitCache] = []
        """The caches that may refer to units by their numbers."""

    def add(self, message: Data) -> bool:
        """Add a unit; False if each member has to put it into its cache."""
        origin = message.sender, message.instance
        if self._origin is None:
            self._origin = origin
            self.is_mixed = any(each.has_others(origin) for each in self.sharers)
        if self.is_mixed or origin != self._origin:
            self.is_mixed = True
            return False
        number = self._numbers.setdefault(message.identity, self.end)
        if number != self.end:
            if self._messages[number - self.start] is message:
                # Members with processors receive one packet at several times; the first of them added the unit.
                return True
            self._numbers[message.identity] = self.end
        self._identities.append(message.identity)
        self._messages.append(message)
        self.end += 1
        return True

    def add_run(self, model: FastData, first: int, count: int) -> None:
        """Add units from `first` on of an object in the middle of which `model` is; none was received on its own."""
        assert model.identity is not None
        begin, self.end = self.end, self.end + count
        identity = model.identity + first - model.unit
        identities = list(range(identity, identity + count))
        self._identities += identities
        self._messages += [model] * count
        self._numbers.update(zip(identities, range(begin, self.end), strict=True))

    def unit(self, number: int) -> Data:
        """Return the unit of a number."""
        at = number - self.start
        message, identity = self._messages[at], self._identities[at]
        if message.identity != identity:
            assert isinstance(message, FastData)
            assert identity is not None
            assert message.identity is not None
            message = self._messages[at] = message.of_unit(message.unit + identity - message.identity)
        return message

    def find(self, identity: int | None) -> int:
        """Return the number of a unit; -1 for none."""
        return self._numbers.get(identity, -1)

    def number_of(self, nack: Nack) -> int:
        """Return the number of the unit that a request names; -1 for none."""
        number = self.find(identity_of(nack.sender, nack.object_id, nack.unit))
        found = self.unit(number) if number >= 0 else None
        return number if found is not None and found.instance == nack.instance and found.object_id == nack.object_id else -1

    def trim(self) -> None:
        """Forget the first units that no cache holds."""
        self.sharers = [each for each in self.sharers if each.shared is self]
        start = min([each.begin for each in self.sharers], default=self.end)
        for identity in self._identities[: start - self.start]:
            del self._numbers[identity]
        del self._identities[: start - self.start], self._messages[: start - self.start]
        self.start = start


class FastUnitCache(UnitCache):
    """As `UnitCache`: the units of `shared` from `begin` to before `end` but for the absent ones, and `_others`."""

    __slots__ = ("_absent", "_count", "_others", "begin", "end", "shared")

    def __init__(self, most: int) -> None:
        # Not that of `UnitCache`: its dictionary is not used.
        self._most = most
        self.shared = NO_UNITS
        self.begin = self.end = 0
        self._absent: RangeSet | None = None
        self._others: dict[int | None, tuple[Data, int]] | None = None
        """Units by identity, each with the number before which it was put."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def share(self, shared: GroupUnits) -> None:
        """Refer to the units of a group from now on."""
        if self.shared is shared:
            return
        held = self._in_order()
        self._others = {message.identity: (message, shared.end) for message in held} or None
        self._absent = None
        self.begin = self.end = shared.end
        self.shared = shared
        shared.sharers.append(self)

    def has_others(self, origin: Origin) -> bool:
        """Return whether there is a unit of another source."""
        return any((message.sender, message.instance) != origin for message in self._in_order())

    def _in_order(self) -> list[Data]:
        """Return the units, the oldest first."""
        numbers = [number for number in range(self.begin, self.end) if self.holds(number)]
        held = [(number, 1, self.shared.unit(number)) for number in numbers]
        others = [(before, 0, message) for message, before in (self._others or {}).values()]
        return [message for _, _, message in sorted(others + held, key=lambda each: each[:2])]

    def holds(self, number: int) -> bool:
        """Return whether the unit of a number is in the cache, and none that was put otherwise took its place."""
        return self.begin <= number < self.end and (self._absent is None or number not in self._absent)

    def get(self, identity: int | None) -> Data | None:
        """Return the message that brought a unit; None if the unit is not in the cache."""
        if self._others is not None and identity in self._others:
            return self._others[identity][0]
        number = self.shared.find(identity)
        return self.shared.unit(number) if self.holds(number) else None

    def put(self, message: Data) -> None:
        """Add a new unit."""
        if not self._most:
            return
        identity, shared = message.identity, self.shared
        number = shared.find(identity)
        if number >= self.end and shared.unit(number) is message:
            self.skip(number)
            self.advance(number + 1)
            return
        others = self._others
        if others is None:
            others = self._others = {}
        if identity in others:
            others[identity] = message, others[identity][1]
        elif self.holds(number):
            # A source that has restarted sends it again; it takes the place that it had.
            self._set_absent(number, number)
            in_order = sorted([*others.items(), (identity, (message, number))], key=lambda each: each[1][1])
            self._others = dict(in_order)
        else:
            others[identity] = message, self.end
            self._count += 1
            if self._count > self._most:
                self._evict()

    def advance(self, end: int) -> None:
        """Add the units of the group before number `end`."""
        if end <= self.end:
            return
        if self._most:
            self._count += end - self.end
            self.end = end
            if self._count > self._most:
                self._evict()
        else:
            self.begin = self.end = end

    def skip(self, end: int) -> None:
        """Leave out the units of the group before number `end` that were not put."""
        if end > self.end and self._most:
            self._set_absent(self.end, end - 1)
            self.end = end
        elif end > self.end:
            self.begin = self.end = end

    def _set_absent(self, first: int, last: int) -> None:
        if self._absent is None:
            self._absent = RangeSet()
        self._absent.add(first, last)

    def _evict(self) -> None:
        """Remove the oldest units beyond the limit."""
        while self._count > self._most:
            others, begin = self._others, self.begin
            oldest = next(iter(others)) if others else None
            if others and others[oldest][1] <= begin:
                del others[oldest]
                self._count -= 1
                continue
            if self._absent is not None and begin in self._absent:
                self._absent.remove(begin)
            else:
                self._count -= 1
            self.begin = begin + 1
        if self._others is not None and not self._others:
            self._others = None
        if self._absent is not None and not self._absent:
            self._absent = None


NO_UNITS: Final = GroupUnits()
"""Shared by the caches without a group; never modified."""


def share_units(caches: Sequence[FastUnitCache]) -> GroupUnits:
    """Return the units that these caches, those of a new group, share from now on."""
    first = caches[0].shared
    shared = GroupUnits() if first is NO_UNITS or first.in_use else first
    shared.in_use = True
    for each in caches:
        each.share(shared)
    return shared
