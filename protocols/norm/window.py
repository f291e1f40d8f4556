"""The sender's window: the objects that can be repaired, and those still waiting for a place in it (RFC 5740 5.1)."""

from collections import deque
from collections.abc import Iterator
from math import inf

from protocols.norm.config import NormConfig
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.tx_object import TxObject
from protocols.serial import ahead, before

__all__ = ["IDS", "Window"]

IDS = 0x10000
"""Object ids count up to here and begin again."""


class Window:
    """Objects in the order of their ids. `objects` can be asked for; `backlog` waits until old ones may be forgotten."""

    __slots__ = ("_config", "backlog", "objects", "octets")

    def __init__(self, config: NormConfig) -> None:
        self._config = config
        self.objects: dict[int, TxObject] = {}
        self.backlog: deque[TxObject] = deque()
        self.octets = 0

    def admit(self, now: float, rest: float) -> Iterator[tuple[TxObject | None, TxObject | None]]:
        """Move objects from the backlog into the window while there is room: pairs (purged, admitted), one of them None.

        An object makes room when nothing of it is to be sent and it was neither sent nor asked for during `rest` seconds.
        """
        while self.backlog:
            if self._has_room(self.backlog[0]):
                item = self.backlog.popleft()
                item.active_at = now
                self.objects[item.object_id] = item
                self.octets += item.partition.size
                yield None, item
            elif self.vacancy_at(rest) <= now:
                yield self.drop(next(iter(self.objects))), None
            else:
                return

    def vacancy_at(self, rest: float) -> float:
        """When the oldest object may make room: inf while it is still being sent."""
        if not self.objects:
            return inf
        oldest = next(iter(self.objects.values()))
        return inf if oldest.unsent or oldest.repairing or oldest.wanted or oldest.info_wanted else oldest.active_at + rest

    def asked(self, demand: RequestedRepairs) -> list[TxObject]:
        """The objects that the demand names, lowest first."""
        objects, named = self.objects, demand.owners()
        if demand.objects or demand.infos:
            return [item for key, item in objects.items() if key in named or demand.has_info(key)]
        if len(named) == 1:
            # Nearly always, and the window may be long.
            item = objects.get(named.pop())
            return [] if item is None else [item]
        return [item for key, item in objects.items() if key in named]

    def refused(self, demand: RequestedRepairs, next_id: int) -> set[int] | None:
        """The objects asked for that are gone from amid the window; None when nothing at all is asked for that is gone."""
        objects, named = self.objects, demand.owners()
        if not demand.objects and not demand.infos and named <= objects.keys():
            return None
        first = next(iter(objects), next_id)
        ranges = [*demand.objects, *demand.infos, *((owner, owner) for owner in named)]
        gone: set[int] = set()
        span = (next(reversed(objects), first) - first) % IDS + 1
        if objects and len(objects) < span:
            holes = [key for key in ((first + i) % IDS for i in range(span)) if key not in objects]
            gone = {key for key in holes if any(ahead(low, key) <= 0 <= ahead(high, key) for low, high in ranges)}
        return gone if gone or any(before(low, first) for low, _ in ranges) else None

    def activate(self) -> list[TxObject]:
        """What was wanted is now to be sent again: the objects with repairs."""
        for item in self.objects.values():
            if item.wanted or item.info_wanted:
                item.activate()
        return [item for item in self.objects.values() if item.repairing]

    def drop(self, object_id: int) -> TxObject:
        """Forget an object."""
        item = self.objects.pop(object_id)
        self.octets -= item.partition.size
        return item

    def _has_room(self, item: TxObject) -> bool:
        count = len(self.objects)
        if count < self._config.cache_min:
            return True
        return count < self._config.cache_max and self.octets + item.partition.size <= self._config.cache_size
