"""The part of a receiver that its sender states use."""

from functools import lru_cache

from protocols.acknowledgement import AckAnswerer
from protocols.machine import Address, Group, Packet, Ports
from protocols.norm.config import NormConfig
from protocols.norm.messages import Ack, Fti, Nack
from protocols.norm.nack_modes import NackModes
from protocols.norm.position import TransmitPosition
from protocols.norm.rx_object import RxObject
from protocols.norm.wire.sizes import AUTH_SIZE, size_of
from protocols.stream import StreamAcceptor

__all__ = ["Session", "later"]


@lru_cache(maxsize=8)
def later(now: float, period: float) -> float:
    """Return `now + period`: one object for the many receivers that heard the same message."""
    return now + period


@lru_cache(maxsize=8)
def _preset(config: NormConfig) -> Fti:
    return Fti(config.fec, config.preset_size, config.segment, config.block, config.parity, config.fec_m)


class Session:
    """One node's membership in a session: ports, parameters and counters. `node` is its 32-bit id."""

    __slots__ = (
        "_counts",
        "ack_answerer",
        "boundary",
        "config",
        "group",
        "nacking",
        "nacks_heard",
        "nacks_suppressed",
        "node",
        "objects_received",
        "octets_received",
        "ports",
        "preset",
        "stream_acceptor",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        self.ports = ports
        self.config = config
        self.node = node
        self.group = group
        self.stream_acceptor: StreamAcceptor | None = None
        """Returns the sinks of streams; None while they are ignored."""
        self.nacking, self.boundary = config.nacking, config.repair_boundary
        """The modes of senders that are heard from now on (see `NackModes`)."""
        self.preset = _preset(config) if config.preset_size else None
        """Describes objects whose messages carry no FTI; None where none is known."""
        self.ack_answerer: AckAnswerer | None = None
        """Returns the application data of ACKs; None while requests with data are acknowledged without any."""
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

    def count(self, name: str, number: int = 1) -> None:
        """Add `number` to the counter `name`."""
        if self._counts is None:
            self._counts = {}
        self._counts[name] = self._counts.get(name, 0) + number

    def counted(self, name: str) -> int:
        """Return the counter `name`."""
        return 0 if self._counts is None else self._counts.get(name, 0)

    def modes(self) -> NackModes | None:
        """Return the modes of a sender that is heard for the first time; None for the usual ones."""
        is_usual = self.nacking == "normal" and self.boundary == "block" and self.config.join != "all"
        return None if is_usual else NackModes(self.nacking, self.boundary)

    def note_end(self, item: RxObject, position: TransmitPosition | None) -> None:
        """Count an object that has ended: it was given up while its sender was at `position`, or is complete (None)."""
        self.objects_received += position is None
        self.octets_received += item.octets_at(position)
        if item.parity_used:
            self.count("parity_used", item.parity_used)

    def say(self, message: Nack | Ack, sender: Address | None) -> None:
        """Send feedback to the group, or with `feedback` "unicast" to the address of the sender it is for."""
        config = self.config
        size = size_of(message) + (AUTH_SIZE if config.key_file else 0)
        self.ports.send(Packet(message, size, self.group if sender is None or config.feedback != "unicast" else sender))
