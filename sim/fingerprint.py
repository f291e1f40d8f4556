"""The fingerprint of a run: one hash that is equal when everything a protocol or an application could notice is equal."""

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Final

from protocols.events import Event
from protocols.traffic import Traffic

__all__ = ["Fingerprint"]

_STAMP: Final = struct.Struct("<dII")
_NUMBER: Final = struct.Struct("<q")
# So many records are hashed together.
_MANY: Final = 256
_WHEN: Final = itemgetter(0)
_NODE: Final = itemgetter(1)


@lru_cache(maxsize=256)
def _text(event: Event) -> bytes:
    """Return the record of an event; many receivers have equal events, so it is made once."""
    return b"E" + repr(event).encode()


@lru_cache(maxsize=256)
def _sent(kind: str, size: int) -> bytes:
    """Return the rest of the record of a control packet; many are equal."""
    return b"C" + _NUMBER.pack(size) + kind.encode()


class Fingerprint:
    """BLAKE2b (16 bytes) over a run, the same on every machine, Python and PYTHONHASHSEED, and in both wire modes.

    Hashed are records, each as time (little-endian double), node (32 bits: place in `Topology.hosts`), length of the rest (32
    bits), then the rest: for a control packet sent (identity None) "C", its UDP payload in bytes (64 bits), its kind; for an
    event of an application "E" and the `repr` of the event. Records come in order of time; those of one instant in order
    of node, and those of one node as they happened. At the end come the records of the end time: per node that runs a machine
    "M" and the sorted items of `counts()`, then as node 2**32 - 1 "T" and the sorted items of the totals of traffic.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        # Time, node, rest; in order of time, and of one instant as they happened.
        self._records: list[tuple[float, int, bytes]] = []
        # Nodes that received the event of the last record, too, at the same instant: 8 bytes for each instead of 72.
        self._also: list[int] = []
        self._instant = 0.0
        self._event: Event | None = None
        self._event_text = b""

    def control(self, now: float, node: int, kind: str, size: int) -> None:
        """Record a control packet that was sent."""
        if now != self._instant or self._also:
            self._begin(now)
        self._records.append((now, node, _sent(kind, size)))

    def controls(self, now: float, nodes: Iterable[int], kind: str, size: int) -> None:
        """Record equal control packets that several nodes sent, in order of node."""
        if now != self._instant or self._also:
            self._begin(now)
        text = _sent(kind, size)
        self._records += [(now, node, text) for node in nodes]

    def notified(self, now: float, node: int, event: Event) -> None:
        """Record an event that an application received."""
        records = self._records
        if event is self._event and now == self._instant and records and records[-1][2] is self._event_text:
            self._also.append(node)
            return
        if now != self._instant or self._also:
            self._begin(now)
        if event is not self._event:
            # The same object has the same text; comparing equal objects costs more.
            self._event, self._event_text = event, _text(event)
        records.append((now, node, self._event_text))

    def _begin(self, now: float) -> None:
        """Begin an instant, or go on with one; the records before it are hashed when there are enough of them."""
        if self._also:
            self._end_event(is_over=now != self._instant)
        if now == self._instant:
            return
        self._instant = now
        if len(self._records) > _MANY:
            self._write(self._hash)
            self._records.clear()

    def _end_event(self, is_over: bool) -> None:
        """Record the nodes that received the event of the last record, too; hash them at once if its instant `is_over`."""
        records, (now, first, rest) = self._records, self._records[-1]
        nodes, self._also = [first, *self._also], []
        if not is_over or len(nodes) <= _MANY or (len(records) > 1 and records[-2][0] >= now):
            records += [(now, node, rest) for node in nodes[1:]]
            return
        records.pop()
        self._write(self._hash)
        records.clear()
        nodes.sort()
        for begin in range(0, len(nodes), _MANY):
            self._hash.update(b"".join([_STAMP.pack(now, node, len(rest)) + rest for node in nodes[begin : begin + _MANY]]))

    def _write(self, onto: blake2b) -> None:
        records, pack = self._records, _STAMP.pack
        records.sort(key=_NODE)
        records.sort(key=_WHEN)
        for begin in range(0, len(records), _MANY):
            piece = records[begin : begin + _MANY]
            onto.update(b"".join([pack(now, node, len(rest)) + rest for now, node, rest in piece]))

    def hexdigest(self, end: float, counts: Iterable[tuple[int, Mapping[str, int]]], traffic: Traffic) -> str:
        """Return the fingerprint of the run so far, which may go on; `counts` are in order of node."""
        if self._also:
            self._end_event(is_over=False)
        total = self._hash.copy()
        self._write(total)
        for node, counted in counts:
            total.update(_last(end, node, b"M", counted))
        totals = {f"packets {kind}": n for kind, n in traffic.packets.items()}
        totals |= {f"bytes {kind}": n for kind, n in traffic.octets.items()}
        total.update(_last(end, 2**32 - 1, b"T", totals))
        return total.hexdigest()


def _last(end: float, node: int, letter: bytes, counted: Mapping[str, int]) -> bytes:
    rest = letter + repr(sorted(counted.items())).encode()
    return _STAMP.pack(end, node, len(rest)) + rest
