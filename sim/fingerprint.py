"""The fingerprint of a run: a hash of all control packets, all events of applications and the final counters."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import compress, islice, repeat
from operator import is_not, itemgetter
from typing import Final, TypeAlias

from protocols.events import Event
from protocols.traffic import Traffic

__all__ = ["Fingerprint"]

_STAMP: Final = struct.Struct("<dII")
# The parts of a stamp.
_TIME: Final = struct.Struct("<d")
_COUNT: Final = struct.Struct("<I")
_NUMBER: Final = struct.Struct("<q")
# So many records are hashed together.
_MANY: Final = 256
# More records of one instant are hashed without those of others: neighbours with an equal rest are packed at once.
_AT_ONCE: Final = 16
# The least mean length of such neighbours for which that is faster than to pack each record.
_LONG: Final = 8
# Events of which the texts are kept.
_FEW: Final = 8
_WHEN: Final = itemgetter(0)
_NODE: Final = itemgetter(1)

_Record: TypeAlias = tuple[float, int, bytes]
"""Time, node, and the rest."""


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
        # Those of earlier instants that are not hashed, in order of time.
        self._earlier: list[_Record] = []
        # Those of the present instant, as they happened: 16 bytes for each instead of 72, since thousands may come at once.
        self._nodes: list[int] = []
        self._rests: list[bytes] = []
        self._instant = 0.0
        # Events of the present instant by their ids, with their texts.
        self._texts: dict[int, tuple[Event, bytes]] = {}

    def control(self, now: float, node: int, kind: str, size: int) -> None:
        """Record a control packet that was sent."""
        if now != self._instant:
            self._begin(now)
        self._nodes.append(node)
        self._rests.append(_sent(kind, size))

    def controls(self, now: float, nodes: Sequence[int], kind: str, size: int) -> None:
        """Record equal control packets that several nodes sent."""
        if now != self._instant:
            self._begin(now)
        self._nodes += nodes
        self._rests += [_sent(kind, size)] * len(nodes)

    def notified(self, now: float, node: int, event: Event) -> None:
        """Record an event that an application received."""
        if now != self._instant:
            self._begin(now)
        # Many receivers get the same object; hashing and comparing equal objects costs more than comparing ids.
        known = self._texts.get(id(event))
        if known is None:
            if len(self._texts) >= _FEW:
                self._texts.clear()
            known = self._texts[id(event)] = event, _text(event)
        self._nodes.append(node)
        self._rests.append(known[1])

    def _begin(self, now: float) -> None:
        """Begin an instant; the records before it are hashed when there are enough of them."""
        if len(self._nodes) > _AT_ONCE or len(self._earlier) + len(self._nodes) > _MANY:
            self._write(self._hash)
            self._earlier.clear()
        elif len(self._nodes) == 1:
            # As below, for what is usual.
            self._earlier.append((self._instant, self._nodes[0], self._rests[0]))
        else:
            self._earlier += self._present()
        self._nodes.clear()
        self._rests.clear()
        if self._texts:
            self._texts.clear()
        self._instant = now

    def _present(self) -> Iterable[_Record]:
        """Return the records of the present instant, as they happened."""
        return zip(repeat(self._instant), self._nodes, self._rests)

    def _write(self, onto: blake2b) -> None:
        """Hash all records in order of time and node."""
        self._earlier.sort(key=_NODE)
        self._earlier.sort(key=_WHEN)
        _update(onto, self._earlier)
        nodes, rests = self._nodes, self._rests
        if sorted(nodes) != nodes:
            if rests.count(rests[0]) < len(rests):
                rests = [rests[at] for at in sorted(range(len(nodes)), key=nodes.__getitem__)]
            nodes = sorted(nodes)
        _update_instant(onto, self._instant, nodes, rests)

    def hexdigest(self, end: float, counts: Iterable[tuple[int, Mapping[str, int]]], traffic: Traffic) -> str:
        """Return the fingerprint of the run so far, which may go on; `counts` are in order of node."""
        total = self._hash.copy()
        self._write(total)
        for node, counted in counts:
            total.update(_last(end, node, b"M", counted))
        totals = {f"packets {kind}": n for kind, n in traffic.packets.items()}
        totals |= {f"bytes {kind}": n for kind, n in traffic.octets.items()}
        total.update(_last(end, 2**32 - 1, b"T", totals))
        return total.hexdigest()


def _update(onto: blake2b, records: Iterable[_Record]) -> None:
    """Hash records, which are in order."""
    pack, left = _STAMP.pack, iter(records)
    while piece := [pack(now, node, len(rest)) + rest for now, node, rest in islice(left, _MANY)]:
        onto.update(b"".join(piece))


def _update_instant(onto: blake2b, now: float, nodes: Sequence[int], rests: Sequence[bytes]) -> None:
    """Hash the records of one instant, which are in order."""
    if len(rests) <= _AT_ONCE or (1 + sum(map(is_not, rests, islice(rests, 1, None)))) * _LONG > len(rests):
        _update(onto, zip(repeat(now), nodes, rests))
        return
    first = 0
    for end in [*compress(range(1, len(rests)), map(is_not, rests, islice(rests, 1, None))), len(rests)]:
        _update_equal(onto, now, nodes[first:end], rests[first])
        first = end


def _update_equal(onto: blake2b, now: float, nodes: Sequence[int], rest: bytes) -> None:
    """Hash equal records of several nodes at one instant."""
    when, tail = _TIME.pack(now), _COUNT.pack(len(rest)) + rest
    between = tail + when
    for first in range(0, len(nodes), _MANY):
        onto.update(when + between.join(map(_COUNT.pack, nodes[first : first + _MANY])) + tail)


def _last(end: float, node: int, letter: bytes, counted: Mapping[str, int]) -> bytes:
    rest = letter + repr(sorted(counted.items())).encode()
    return _STAMP.pack(end, node, len(rest)) + rest
