"""The list of a registry: nodes with leases, what they report of themselves, and the time stamp of the last change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from protocols.admin.node import Node
from protocols.admin.registration import LARGEST_ID, Registration, Renewal
from protocols.snapshot import increase

__all__ = ["Entry", "NodeTable"]

_GAUGES: Final = ("ring_used", "ring_size")
"""Numbers of a tunnel that go up and down; all others are counters."""


@dataclass(slots=True)
class Entry:
    """A node of the list, with times in seconds of the registry's clock."""

    node: Node
    udp: int
    """The port that takes advertisements."""
    since: float
    """When it registered."""
    heard_at: float
    """When it registered or renewed last."""
    told_at: float = inf
    """Time of its last renewal with the values below; inf: never."""
    counters: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    """Growth of its counters per second between the last two renewals."""
    cpu: float = 0.0
    """Seconds of processor time."""
    load: float = 0.0
    """Share of a processor between the last two renewals."""
    memory: int = 0

    def take(self, renewal: Renewal, now: float) -> None:
        """Store the values of a renewal."""
        seconds = now - self.told_at
        if seconds > 0:
            before = self.counters
            self.rates = {
                name: increase(value, before.get(name, 0.0)) / seconds
                for name, value in renewal.counters.items()
                if name not in _GAUGES
            }
            self.load = increase(renewal.cpu, self.cpu) / seconds
        self.heard_at = self.told_at = now
        self.counters, self.cpu, self.memory = renewal.counters, renewal.cpu, renewal.memory


class NodeTable:
    """At most `most` nodes, each for `lease` seconds after it was last heard; ids begin behind `first_id`.

    `stamp` is the time of the last change of the list in milliseconds. It only grows, so a list with a lower one is outdated.
    """

    __slots__ = ("_entries", "_next", "_places", "lease", "most", "stamp")

    def __init__(self, lease: float, most: int, first_id: int = 0) -> None:
        self.lease, self.most = lease, most
        self.stamp = 0
        self._next = first_id + 1
        self._entries: dict[int, Entry] = {}
        self._places: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    @property
    def next_id(self) -> int:
        """The id of the next node that is new."""
        return self._next

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The list."""
        return tuple(entry.node for entry in self._entries.values())

    def get(self, number: int) -> Entry | None:
        """Return the node of an id; None for one that is not in the list."""
        return self._entries.get(number)

    def register(self, registration: Registration, source: str, now: float) -> tuple[Entry, Entry | None] | None:
        """Put a node in the list; return it, and its entry before if there was one. None: there are too many.

        `source` is the address that it has if it names none. One at a place that is known is the same node, come again: it
        keeps its id, and stays paused if it was.
        """
        address = registration.address or source
        known = self._places.get((address, registration.port))
        if known is None and (len(self._entries) >= self.most or self._next > LARGEST_ID):
            return None
        number = self._next if known is None else known
        old = None if known is None else self._entries[known]
        node = Node(
            number,
            registration.name,
            registration.site,
            address,
            registration.port,
            registration.group,
            old is not None and old.node.paused,
        )
        udp = registration.port if registration.udp is None else registration.udp
        entry = Entry(node, udp, now, now)
        self.put(entry)
        return entry, old

    def put(self, entry: Entry) -> None:
        """Put an entry in the list, in the place of one with the same id."""
        node = entry.node
        self._entries[node.id] = entry
        self._places[node.address, node.port] = node.id
        self._next = max(self._next, node.id + 1)

    def continue_at(self, number: int) -> None:
        """Give no id below `number`."""
        self._next = number

    def remove(self, number: int) -> Entry | None:
        """Remove a node; return it, None if there is none."""
        entry = self._entries.pop(number, None)
        if entry is not None:
            del self._places[entry.node.address, entry.node.port]
        return entry

    def pause(self, number: int, paused: bool) -> bool:
        """Pause or resume a node, which must be in the list; return whether that changed anything."""
        entry = self._entries[number]
        changed = entry.node.paused != paused
        entry.node = replace(entry.node, paused=paused)
        return changed

    def touch(self, milliseconds: int) -> None:
        """Note that the list changed, at `milliseconds` since 1970."""
        self.stamp = max(self.stamp + 1, milliseconds)

    def overdue(self, now: float) -> list[int]:
        """Return the ids of the nodes whose lease is over."""
        return [number for number, entry in self._entries.items() if entry.heard_at + self.lease <= now]

    @property
    def first_end(self) -> float:
        """When the first lease is over, in seconds; inf for an empty list."""
        return min((entry.heard_at for entry in self._entries.values()), default=inf) + self.lease
