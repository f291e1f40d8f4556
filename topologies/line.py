"""One direction of a link with all its impairments, packet by packet.

The simulator uses a `Line` for links that are not plain (`LinkSpec.plain`), Mininet for links in user space. Loss is drawn when
a packet arrives, although a lost packet still occupies the queue and the transmitter; then follow queueing and transmission,
corruption, duplication and propagation.

Random numbers of a packet are keyed by its identity and occurrence on the link, of a control packet by its ordinal on the link.
Only RED, which decides by the state of its queue, draws in order of arrival.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import expm1, log1p
from typing import Any, Final, TypeAlias

from protocols.rng import extend, unit
from topologies.channels import LinkSampler, Scripted
from topologies.ethernet import MTU, UDP, frames_of, wire_bytes
from topologies.ports import Departures, DropTailPort, Markable, PriorityPort
from topologies.repeats import Repeats, count_occurrence
from topologies.script import Script
from topologies.spec import LinkSpec

__all__ = [
    "CONTENT",
    "CONTROL",
    "CORRUPTION",
    "DELAY",
    "DUPLICATE",
    "FRAGMENTS",
    "Arrivals",
    "Line",
    "damage_probability",
    "frames_of",
    "octets_of",
]

Arrivals: TypeAlias = Sequence[tuple[Any, float]]
"""Packets and their times of arrival at the far end, in seconds."""

CONTENT: Final = 0xFFFFFFFFFFFFFF11
"""Extends a link's key to that of its content packets; identity and occurrence follow."""
CONTROL: Final = 0xFFFFFFFFFFFFFF12
"""Extends a link's key to that of its control packets; the ordinal follows."""
_QUEUE: Final = 0xFFFFFFFFFFFFFF13
FRAGMENTS, CORRUPTION, DUPLICATE, DELAY = 1, 2, 3, 4
"""Numbers of a packet's draws; the second copy of a duplicated packet takes the delay that follows."""


@lru_cache(maxsize=256)
def damage_probability(corrupt: float, bit_errors: float, octets: int) -> float:
    """Return the probability that a packet of `octets` bytes is damaged, which the UDP checksum detects."""
    hit = -expm1(8 * octets * log1p(-bit_errors)) if bit_errors < 1 else 1.0
    return 1 - (1 - corrupt) * (1 - hit)


def octets_of(size: int, frames: int, spec: LinkSpec) -> int:
    """Return the bytes of a datagram on the line, with the headers of all its frames; only the first has a UDP header."""
    if isinstance(spec.overhead, int):
        return size + spec.overhead + (frames - 1) * max(0, spec.overhead - UDP)
    return wire_bytes(size, spec.overhead, MTU if spec.mtu is None else spec.mtu)


def _default_class(item: Any) -> int:
    """Stand for items without a class of service."""
    del item
    return 0


class _Transit(Markable):
    """A packet on the line: the key of its random stream, its index for recorded delays, and whether it is lost."""

    __slots__ = ("item", "key", "lost", "octets", "place")

    def __init__(self, item: Any, key: int, place: int, octets: int, lost: bool, dscp: int) -> None:
        super().__init__(dscp)
        self.item = item
        self.key = key
        self.place = place
        self.octets = octets
        self.lost = lost


class Line:
    """Carries packets, offered in order of time. `key` is the loss key of the link, `member` its index in a counted group.

    `offer` and `wake` return the arrivals at the far end that became known. Other packets are counted in `dropped` (by the
    queue), `lost` or `corrupt`; `marked` (ECN) and `duplicated` count packets that arrive. `missed`, if set, is called with
    each item that is lost or corrupt.
    """

    __slots__ = (
        "_channel",
        "_classed",
        "_controls",
        "_draws",
        "_key",
        "_last",
        "_port",
        "_repeats",
        "_script",
        "_seen",
        "_spec",
        "class_of",
        "corrupt",
        "duplicated",
        "lost",
        "mark",
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
        varies = spec.jitter is not None or spec.mtu is not None
        self._draws = bool(varies or spec.duplicate or spec.corrupt or spec.bit_errors)
        """Whether packets have random numbers of their own, beside those of the channel and of the queue."""
        self._seen: dict[int, int] = {}
        self._repeats = Repeats()
        self._controls = 0
        self._last = 0.0
        self.offered = self.lost = self.corrupt = self.duplicated = 0
        self.missed: Callable[[Any], None] | None = None
        self.mark: Callable[[Any], Any] | None = None
        """Returns an item with a mark of congestion (ECN), which arrives in the place of one that the queue marked."""
        self._classed = isinstance(self._port, PriorityPort)
        self.class_of: Callable[[Any], int] = _default_class
        """Returns the DSCP of an item, for a queue of priorities."""

    @property
    def deadline(self) -> float:
        """When `wake` is wanted, in seconds; inf for never."""
        return self._port.deadline

    @property
    def dropped(self) -> int:
        """Packets dropped by the queue."""
        return self._port.dropped

    @property
    def marked(self) -> int:
        """Packets marked with congestion experienced (ECN)."""
        return self._port.marked

    def waiting(self, now: float) -> int:
        """Return the number of packets in the queue, without the one in transmission."""
        return self._port.waiting(now)

    def offer(self, item: Any, size: int, identity: int | None, kind: str, now: float) -> Arrivals:
        """Offer a packet of `size` bytes of UDP payload and of a message kind; `item` is returned with its arrival."""
        self.offered += 1
        spec = self._spec
        key, place = self._numbered(identity) if self._draws else (0, 0)
        if self._script is not None:
            lost = self._script.lost(identity, kind)
        else:
            lost = self._channel is not None and self._channel.lost(identity)
        frames = frames_of(size, spec.mtu)
        if frames > 1 and (identity is not None or spec.loss.loses_control):
            # The channel decided on the first fragment; the others are lost independently, at its mean rate.
            lost |= unit(key, FRAGMENTS) >= (1 - spec.loss.rate) ** (frames - 1)
        octets = octets_of(size, frames, spec)
        dscp = self.class_of(item) if self._classed else 0
        return self._arrivals(self._port.offer(_Transit(item, key, place, octets, lost, dscp), octets, now))

    def _numbered(self, identity: int | None) -> tuple[int, int]:
        """Return the key of a packet's random numbers, and its index for recorded delays."""
        if identity is None:
            self._controls += 1
            return extend(extend(self._key, CONTROL), self._controls), self._controls - 1
        occurrence = count_occurrence(self._seen, self._repeats, identity)
        return extend(extend(extend(self._key, CONTENT), identity), occurrence), (identity & 0xFFFFFFFF) + occurrence - 1

    def wake(self, now: float) -> Arrivals:
        """Serve the queue when `deadline` is reached."""
        return self._arrivals(self._port.wake(now))

    def _arrivals(self, departures: Departures) -> Arrivals:
        arrivals: list[tuple[Any, float]] = []
        for transit, end in departures:
            if transit.lost:
                self.lost += 1
            elif self._draws and self._damaged(transit):
                self.corrupt += 1
            else:
                self._propagate(transit, end, arrivals)
                continue
            if self.missed is not None:
                self.missed(transit.item)
        return arrivals

    def _damaged(self, transit: _Transit) -> bool:
        probability = damage_probability(self._spec.corrupt, self._spec.bit_errors, transit.octets)
        return probability > 0 and unit(transit.key, CORRUPTION) < probability

    def _propagate(self, transit: _Transit, end: float, arrivals: list[tuple[Any, float]]) -> None:
        spec = self._spec
        copies, item = 1, transit.item
        if transit.is_marked and self.mark is not None:
            item = self.mark(item)
        if spec.duplicate and unit(transit.key, DUPLICATE) < spec.duplicate:
            self.duplicated += 1
            copies = 2
        for copy in range(copies):
            if spec.jitter is None:
                arrivals.append((item, end + spec.delay))
                continue
            when = end + spec.jitter.sample(unit(transit.key, DELAY + copy), transit.place)
            if spec.jitter.order == "fifo":
                when = self._last = max(when, self._last)
            arrivals.append((item, when))
