"""The part of a receiver that its sender states use: its base class, since an object of its own would take 150 bytes more."""

from functools import lru_cache
from operator import add
from typing import Final

from protocols.acknowledgement import AckAnswerer
from protocols.machine import Address, Group, Machine, Packet, Ports
from protocols.norm.config import NormConfig
from protocols.norm.limits import NEW_SENDERS, SourceLimit
from protocols.norm.messages import Ack, Fti, Nack
from protocols.norm.nack_modes import NackModes
from protocols.norm.position import TransmitPosition
from protocols.norm.rx_object import RxObject
from protocols.norm.wire.sizes import AUTH_SIZE, size_of
from protocols.stream import StreamAcceptor

__all__ = ["Session", "SessionExtras", "later"]


@lru_cache(maxsize=8)
def later(now: float, period: float) -> float:
    """Return `now + period`: one object for the many receivers that heard the same message."""
    return now + period


@lru_cache(maxsize=8)
def _preset(config: NormConfig) -> Fti:
    return Fti(config.fec, config.preset_size, config.segment, config.block, config.parity, config.fec_m)


_sum: Final = lru_cache(maxsize=8)(add)
"""The sum of two numbers: one object for the many receivers that received the same."""


class SessionExtras:
    """What only some sessions have: choices of the application, and what other hosts did wrong."""

    __slots__ = ("ack_answerer", "boundary", "clashes", "nacking", "newcomers", "stream_acceptor")

    def __init__(self, config: NormConfig) -> None:
        self.stream_acceptor: StreamAcceptor | None = None
        """Returns the sinks of streams; None while they are ignored."""
        self.nacking, self.boundary = config.nacking, config.repair_boundary
        """The modes of senders that are heard from now on (see `NackModes`)."""
        self.ack_answerer: AckAnswerer | None = None
        """Returns the application data of ACKs; None while requests with data are acknowledged without any."""
        self.clashes: tuple[Address, ...] = ()
        """Hosts that use this node's id."""
        self.newcomers = SourceLimit(NEW_SENDERS)
        """How many new senders each host may bring."""


class Session(Machine):
    """One node's membership in a session: ports, parameters and counters. `node` is its 32-bit id."""

    __slots__ = (
        "_counts",
        "_extras",
        "config",
        "group",
        "nacks_heard",
        "nacks_suppressed",
        "node",
        "objects_received",
        "octets_received",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports)
        self.config = config
        self.node = node
        self.group = group
        # None while none is needed: a large group has a session for each receiver.
        self._extras: SessionExtras | None = None
        self.nacks_suppressed = self.objects_received = self.nacks_heard = 0
        self.octets_received = 0
        """Bytes received of objects that have ended, complete or not."""
        # The counters few receivers of a large group need.
        self._counts: dict[str, int] | None = None

    @property
    def is_silent(self) -> bool:
        """Whether no feedback is sent."""
        return self.config.feedback == "none"

    @property
    def window(self) -> int:
        """The objects of a sender that may be pending: of a silent receiver few, as it can't request what is missing."""
        config = self.config
        return min(config.window, config.silent_delay + 1) if self.is_silent else config.window

    @property
    def extras(self) -> SessionExtras:
        """What only some sessions have; made when it is asked for first."""
        if self._extras is None:
            self._extras = SessionExtras(self.config)
        return self._extras

    @property
    def stream_acceptor(self) -> StreamAcceptor | None:
        """Returns the sinks of streams; None while they are ignored."""
        return None if self._extras is None else self._extras.stream_acceptor

    @property
    def ack_answerer(self) -> AckAnswerer | None:
        """Returns the application data of ACKs; None while requests with data are acknowledged without any."""
        return None if self._extras is None else self._extras.ack_answerer

    @property
    def preset(self) -> Fti | None:
        """Describes objects whose messages carry no FTI; None where none is known."""
        return _preset(self.config) if self.config.preset_size else None

    def count(self, name: str, number: int = 1) -> None:
        """Add `number` to the counter `name`."""
        if self._counts is None:
            self._counts = {}
        self._counts[name] = self._counts.get(name, 0) + number

    def counted(self, name: str) -> int:
        """Return the counter `name`."""
        return 0 if self._counts is None else self._counts.get(name, 0)

    def trace(self, name: str, key: str = "", time: float = 0.0) -> None:
        """Trace a decision, if traces are on, and a time of it in seconds under `key`."""
        if self.ports.trace is not None:
            self.ports.trace(name, {key: time} if key else {})

    def modes(self) -> NackModes | None:
        """Return the modes of a sender that is heard for the first time; None for the usual ones."""
        config, choices = self.config, self._extras
        nacking = config.nacking if choices is None else choices.nacking
        boundary = config.repair_boundary if choices is None else choices.boundary
        is_usual = nacking == "normal" and boundary == "block" and config.join != "all"
        return None if is_usual else NackModes(nacking, boundary)

    def note_end(self, item: RxObject, position: TransmitPosition | None) -> None:
        """Count an object that has ended: it was given up while its sender was at `position`, or is complete (None)."""
        self.objects_received += position is None
        self.octets_received = _sum(self.octets_received, item.octets_at(position))
        if item.parity_used:
            self.count("parity_used", item.parity_used)

    def say(self, message: Nack | Ack, sender: Address | None) -> None:
        """Send feedback to the group, or with `feedback` "unicast" to the address of the sender it is for."""
        config = self.config
        size = size_of(message) + (AUTH_SIZE if config.key_file else 0)
        self.ports.send(Packet(message, size, self.group if sender is None or config.feedback != "unicast" else sender))
