"""One direction of a link with everything it can do to packets, packet by packet.

The simulator uses a `Line` where a link does more than rate, constant delay, drop-tail by packets and plain loss; a link in
user space uses the same object for every packet. Order of things: loss is drawn as the packet arrives (a packet that is going
to be lost takes its place in the queue all the same), queue and sending, corruption, duplication, delay.

A packet's dice are keyed by its identity and occurrence on the link, a control packet's by its number on the link; only RED's,
which decides by the state of the queue, are drawn in order of arrival.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import expm1, log1p
from typing import Any, TypeAlias

from protocols.rng import extend, unit
from topologies.channels import LinkSampler, Scripted
from topologies.ethernet import MTU, wire_bytes
from topologies.ports import Departures, DropTailPort
from topologies.script import Script
from topologies.spec import LinkSpec

__all__ = ["Arrivals", "Line", "Tally", "frames_of"]

Arrivals: TypeAlias = Sequence[tuple[Any, float]]

# Words below a link's key.
_CONTENT = 0xFFFFFFFFFFFFFF11
_CONTROL = 0xFFFFFFFFFFFFFF12
_QUEUE = 0xFFFFFFFFFFFFFF13
# Draws of one packet; copies take the delays after the first.
_FRAGMENTS, _CORRUPTION, _DUPLICATE, _DELAY = 1, 2, 3, 4
_IP_AND_UDP, _IP = 28, 20


def frames_of(size: int, mtu: int | None) -> int:
    """IP packets that a UDP payload of `size` bytes travels in; all but the last carry a multiple of 8 bytes."""
    if mtu is None or size + _IP_AND_UDP <= mtu:
        return 1
    room = mtu - _IP
    return 1 - (room - (size + _IP_AND_UDP - _IP)) // (room // 8 * 8)


@lru_cache(maxsize=256)
def _odds_of_damage(corrupt: float, bit_errors: float, octets: int) -> float:
    """That a packet has a wrong bit, which the UDP checksum finds."""
    hit = -expm1(8 * octets * log1p(-bit_errors)) if bit_errors < 1 else 1.0
    return 1 - (1 - corrupt) * (1 - hit)


def _octets(size: int, frames: int, spec: LinkSpec) -> int:
    """Bytes a datagram takes on the line, the headers of all its frames included; the UDP header is in the first alone."""
    if isinstance(spec.overhead, int):
        return size + spec.overhead + (frames - 1) * max(0, spec.overhead - (_IP_AND_UDP - _IP))
    return wire_bytes(size, spec.overhead, MTU if spec.mtu is None else spec.mtu)


class Tally:
    """Counts how often each identity came."""

    __slots__ = ("_repeats", "_seen")

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._repeats: dict[int, int] = {}

    def count(self, identity: int) -> int:
        """This is the how manieth?"""
        window, bit = identity >> 8, 1 << (identity & 255)
        seen = self._seen.get(window, 0)
        if seen & bit:
            occurrence = self._repeats[identity] = self._repeats.get(identity, 1) + 1
            return occurrence
        self._seen[window] = seen | bit
        return 1


class _Passage:
    """A packet on the line: what it is, its dice, its place among its kind, and whether it will be lost."""

    __slots__ = ("item", "key", "lost", "octets", "place")

    def __init__(self, item: Any, key: int, place: int, octets: int, lost: bool) -> None:
        self.item = item
        self.key = key
        self.place = place
        self.octets = octets
        self.lost = lost


class Line:
    """Carries packets in order of time. `key` is the loss key of the link (`topologies.keys`), `member` its place in a group.

    `offer` and `wake` answer with what arrives at the far end, and when; what is not heard of again is counted in `dropped`,
    `lost` or `corrupt`. `marked` (ECN) and `duplicated` count packets that do arrive. `missed`, where set, is told of each item
    that is lost or corrupt.
    """

    __slots__ = (
        "_channel",
        "_controls",
        "_key",
        "_last",
        "_port",
        "_script",
        "_spec",
        "_tally",
        "corrupt",
        "duplicated",
        "lost",
        "missed",
        "offered",
    )

    def __init__(self, spec: LinkSpec, key: int, member: int = 0) -> None:
        self._spec = spec
        self._key = key
        scripted = isinstance(spec.loss, Scripted)
        self._script: Script | None = spec.loss.script(member) if isinstance(spec.loss, Scripted) else None
        self._channel: LinkSampler | None = None if scripted else spec.loss.link(key)
        port_key = extend(key, _QUEUE)
        self._port = (
            DropTailPort(spec.rate, spec.queue) if spec.discipline is None else spec.discipline.port(spec.rate, port_key)
        )
        self._tally = Tally()
        self._controls = 0
        self._last = 0.0
        self.offered = self.lost = self.corrupt = self.duplicated = 0
        self.missed: Callable[[Any], None] | None = None

    @property
    def deadline(self) -> float:
        """When `wake` is wanted; inf for never."""
        return self._port.deadline

    @property
    def dropped(self) -> int:
        """Packets the queue refused or threw away."""
        return self._port.dropped

    @property
    def marked(self) -> int:
        """Packets that go on with a mark of congestion."""
        return self._port.marked

    def waiting(self, now: float) -> int:
        """Packets in the queue; the one being sent does not wait."""
        return self._port.waiting(now)

    def offer(self, item: Any, size: int, identity: int | None, kind: str, now: float) -> Arrivals:
        """A packet of `size` bytes of UDP payload comes to the near end; `item` is handed back as it is."""
        self.offered += 1
        spec = self._spec
        if identity is None:
            self._controls += 1
            key, place = extend(extend(self._key, _CONTROL), self._controls), self._controls - 1
        else:
            occurrence = self._tally.count(identity)
            key = extend(extend(extend(self._key, _CONTENT), identity), occurrence)
            place = (identity & 0xFFFFFFFF) + occurrence - 1
        if self._script is not None:
            lost = self._script.lost(identity, kind)
        else:
            lost = self._channel is not None and self._channel.lost(identity)
        frames = frames_of(size, spec.mtu)
        if frames > 1:
            # The channel spoke of the first frame; the others are lost on their own, at the channel's mean rate.
            lost |= unit(key, _FRAGMENTS) >= (1 - spec.loss.rate) ** (frames - 1)
        octets = _octets(size, frames, spec)
        return self._arrivals(self._port.offer(_Passage(item, key, place, octets, lost), octets, now))

    def wake(self, now: float) -> Arrivals:
        """The deadline has come."""
        return self._arrivals(self._port.wake(now))

    def _arrivals(self, departures: Departures) -> Arrivals:
        arrivals: list[tuple[Any, float]] = []
        for passage, end in departures:
            if passage.lost:
                self.lost += 1
            elif self._damaged(passage):
                self.corrupt += 1
            else:
                self._propagate(passage, end, arrivals)
                continue
            if self.missed is not None:
                self.missed(passage.item)
        return arrivals

    def _damaged(self, passage: _Passage) -> bool:
        odds = _odds_of_damage(self._spec.corrupt, self._spec.bit_errors, passage.octets)
        return odds > 0 and unit(passage.key, _CORRUPTION) < odds

    def _propagate(self, passage: _Passage, end: float, arrivals: list[tuple[Any, float]]) -> None:
        spec = self._spec
        copies = 1
        if spec.duplicate and unit(passage.key, _DUPLICATE) < spec.duplicate:
            self.duplicated += 1
            copies = 2
        for copy in range(copies):
            if spec.jitter is None:
                arrivals.append((passage.item, end + spec.delay))
                continue
            when = end + spec.jitter.sample(unit(passage.key, _DELAY + copy), passage.place)
            if spec.jitter.order == "fifo":
                when = self._last = max(when, self._last)
            arrivals.append((passage.item, when))
