"""The sender's window: the objects that can be repaired, and those waiting for room in it (RFC 5740 5.1)."""

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Final

from protocols.norm.config import NormConfig
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.requests import FORM_ERASURES, FORM_ITEMS, FORM_RANGES, LEVEL_BLOCK, LEVEL_SEGMENT, Request
from protocols.norm.tx_object import TxObject
from protocols.serial import before

__all__ = ["IDS", "Window", "without"]

IDS: Final = 0x10000
"""Number of object ids; after the last they begin again at 0."""
MOST_REFUSED: Final = 1024
"""Missing objects named for one NACK; a SQUELCH of a segment of 1400 bytes has room for 700, and receivers request again."""


def without(items: deque[TxObject], gone: TxObject) -> deque[TxObject]:
    """Return the objects but one."""
    return deque(item for item in items if item is not gone)


def _vacant_at(item: TxObject, rest: float) -> float:
    """Return when an object can be purged; inf while it is being sent."""
    return inf if item.is_open or item.unsent or item.repairing or item.requested else item.active_at + rest


class Window:
    """Objects in the order of their ids. `objects` can be repaired; `backlog` waits until old objects can be dropped."""

    __slots__ = ("_asked", "_config", "backlog", "objects", "octets", "octets_gone")

    def __init__(self, config: NormConfig) -> None:
        self._config = config
        self.objects: dict[int, TxObject] = {}
        self.backlog: deque[TxObject] = deque()
        # Those of the objects that may be requested or repaired now, so that a NACK costs nothing for the others.
        self._asked: dict[int, TxObject] = {}
        self.octets = 0
        self.octets_gone = 0
        """Bytes sent of objects that were removed."""

    def configure(self, config: NormConfig) -> None:
        """Have other bounds from now on; objects beyond them are purged when others need the room."""
        self._config = config

    def admit(self, now: float, rest: float) -> Iterator[tuple[TxObject | None, TxObject | None]]:
        """Move objects from the backlog into the window while there is room; yield pairs (purged, admitted), one of them None.

        An object can be purged when nothing of it is to be sent and it was neither sent nor requested during `rest` seconds.
        """
        while self.backlog:
            if self._has_room(self.backlog[0]):
                item = self.backlog.popleft()
                item.active_at = item.began_at = now
                self.objects[item.object_id] = item
                self.octets += item.partition.size
                yield None, item
            elif self.vacancy_at(rest) <= now:
                yield self.drop_oldest(), None
            else:
                return

    def vacancy_at(self, rest: float) -> float:
        """Return when the oldest object can be purged; inf while it is being sent."""
        if not self.objects:
            return inf
        return _vacant_at(self._oldest(), rest)

    def first_kept(self, item: TxObject, now: float, rest: float) -> TxObject:
        """Return the first object that is still needed, `item` at the latest: those before it could be purged now."""
        return next(each for each in self.objects.values() if each is item or _vacant_at(each, rest) > now)

    def _oldest(self) -> TxObject:
        """Return the oldest object that is not an open stream, if there is one; the window must not be empty."""
        oldest = next(iter(self.objects.values()))
        if not oldest.is_open:
            return oldest
        return next((item for item in self.objects.values() if not item.is_open), oldest)

    def resolve_erasures(self, requests: tuple[Request, ...]) -> tuple[Request, ...]:
        """Return repair requests with symbols and blocks in place of numbers of erasures (RFC 5740 4.3.1)."""
        for request in requests:
            if request.form == FORM_ERASURES:
                return tuple([each for one in requests for each in self._resolved(one)])
        return requests

    def _resolved(self, request: Request) -> Iterator[Request]:
        """Yield a request as it is, or for each number of erasures one for as many parity symbols, or for the block."""
        if request.form != FORM_ERASURES or not request.level & LEVEL_SEGMENT:
            yield request
            return
        for item in request.items:
            owner, count = self.objects.get(item.object_id), item.symbol
            if owner is None or count > owner.fti.parity or (owner.is_open and item.block == owner.block):
                yield Request(FORM_ITEMS, request.level & ~LEVEL_SEGMENT | LEVEL_BLOCK, (item,))
            elif count:
                length = owner.partition.length(item.block)
                ends = item._replace(symbol=length), item._replace(symbol=length + count - 1)
                yield Request(FORM_RANGES, request.level, ends)

    def asked(self, requested: RequestedRepairs, now: float) -> list[TxObject]:
        """Return the objects that are requested, lowest id first, but those that are too old to be repaired."""
        found = self._named(requested)
        if self._config.cache_age:
            found = {key: item for key, item in found.items() if not self._is_old(item, now)}
        self._asked.update(found)
        return self._in_order(found)

    def _named(self, requested: RequestedRepairs) -> dict[int, TxObject]:
        """Return the objects of the window that are requested, in any order."""
        objects = self.objects
        found: dict[int, TxObject] = {}
        for key in requested.owners():
            if key in objects:
                found[key] = objects[key]
        if requested.objects or requested.infos:
            for key in requested.whole_ids(objects):
                found[key] = objects[key]
        return found

    def _is_old(self, item: TxObject, now: float) -> bool:
        return now - item.began_at > self._config.cache_age

    def _in_order(self, items: dict[int, TxObject]) -> list[TxObject]:
        """Return objects of the window, the oldest first."""
        if len(items) < 2:
            return list(items.values())
        oldest = next(iter(self.objects))
        return [items[key] for key in sorted(items, key=lambda key: key - oldest & 0xFFFF)]

    def refused(self, requested: RequestedRepairs, next_id: int, now: float) -> set[int] | None:
        """Return the requested objects that are too old, or were dropped from within the window.

        None if none of the requested ones is too old or was dropped.
        """
        dropped = self._dropped(requested, next_id)
        if not self._config.cache_age:
            return dropped
        old = {key for key, item in self._named(requested).items() if self._is_old(item, now)}
        return old | (dropped or set()) if old else dropped

    def _dropped(self, requested: RequestedRepairs, next_id: int) -> set[int] | None:
        objects, named = self.objects, requested.owners()
        if not requested.objects and not requested.infos and named <= objects.keys():
            return None
        first = next(iter(objects), next_id)
        span = (next(reversed(objects), first) - first) % IDS + 1
        gone = self._holes(requested, first, span) if len(objects) < span else set()
        if gone:
            return gone
        lows = named | {row[0] for row in requested.objects} | {row[0] for row in requested.infos}
        return gone if any(before(low, first) for low in lows) else None

    def _holes(self, requested: RequestedRepairs, first: int, span: int) -> set[int]:
        """Return the requested ids that are missing among `span` ids from `first` on; at most `MOST_REFUSED`."""
        objects = self.objects
        if not objects:
            return set()
        found = {key for key in requested.owners() if key not in objects and (key - first) % IDS < span}
        for low, high in requested.whole_ranges():
            # The part of the span before ids begin again at 0, and that behind it.
            for start, end in ((first, min(first + span, IDS)), (0, first + span - IDS)):
                for key in range(max(low, start), min(high + 1, end)):
                    if len(found) >= MOST_REFUSED:
                        return found
                    if key not in objects:
                        found.add(key)
        return found

    def activate(self) -> list[TxObject]:
        """Make repairs of what was requested; return the objects that have any."""
        for item in self._asked.values():
            if item.requested:
                item.activate()
        self._asked = {key: item for key, item in self._asked.items() if item.repairing}
        return self._in_order(self._asked)

    def drop_oldest(self) -> TxObject:
        """Remove and return the oldest object that is not an open stream; the window must not be empty."""
        return self.drop(self._oldest().object_id)

    def drop(self, object_id: int) -> TxObject:
        """Remove and return an object."""
        item = self.objects.pop(object_id)
        self._asked.pop(object_id, None)
        self.octets -= item.partition.size
        self.octets_gone += item.octets_sent
        return item

    def _has_room(self, item: TxObject) -> bool:
        count = len(self.objects)
        if count < self._config.cache_min:
            return True
        return count < self._config.cache_max and self.octets + item.partition.size <= self._config.cache_size
