"""Messages of tunnels: packets of a site for others, PRESENCE, REPORT and BRAKE.

Those made for every packet are not frozen dataclasses, which take three times as long to make; they are not modified either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from protocols.machine import Message
from protocols.norm.wire.preview import KINDS, kind_in

__all__ = ["FULL_SHARE", "Brake", "Carried", "Opaque", "Presence", "Report", "opaque"]

FULL_SHARE: Final = 65_535
"""The number in a BRAKE that stands for a share of 1."""


@dataclass(slots=True)
class Opaque(Message):
    """A packet that a tunnel carries without reading it."""

    kind: ClassVar[str] = "opaque"
    data: bytes


def _named(kind: str) -> type[Opaque]:
    """Return the class of packets of one kind, under which they are counted."""
    values = {"__slots__": (), "kind": kind, "is_feedback": kind in ("nack", "ack")}
    return type(f"Opaque{kind.title()}", (Opaque,), values)


_CLASSES = {kind: _named(kind) for kind in sorted(KINDS)}


def opaque(data: bytes) -> Opaque:
    """Return a packet; one of NORM has the kind of its message."""
    return _CLASSES.get(kind_in(data), Opaque)(data)


@dataclass(slots=True)
class Carried(Message):
    """A packet of a site's group on its way to another site.

    `site` is where it comes from, `hops` how many tunnels may multicast it, this datagram's receiver included, `group` the 6
    bytes that name its group. `requests_reports`: the sender requests reports of losses.
    """

    kind: ClassVar[str] = "tunnel"
    site: int
    sequence: int
    hops: int
    group: bytes
    message: Message
    requests_reports: bool = False

    @property
    def identity(self) -> int | None:
        """See `Message.identity`: that of the packet, so that losses by key are those of the packet."""
        return self.message.identity

    @property
    def repair(self) -> bool:
        """See `Message.repair`."""
        return self.message.repair

    @property
    def brief(self) -> str:
        """See `Message.brief`."""
        return self.message.brief

    @property
    def asks(self) -> Sequence[str]:
        """See `Message.asks`."""
        return self.message.asks


@dataclass(frozen=True, slots=True)
class Presence(Message):
    """PRESENCE: a tunnel of the site serves it, `since` so many microseconds after 1970."""

    kind: ClassVar[str] = "presence"
    site: int
    node: int
    since: int


@dataclass(frozen=True, slots=True)
class Report(Message):
    """REPORT to another tunnel: how many of its datagrams came, and how many are missing, in all (modulo 2**32)."""

    kind: ClassVar[str] = "report"
    is_feedback: ClassVar[bool] = True
    site: int
    received: int
    lost: int


@dataclass(frozen=True, slots=True)
class Brake(Message):
    """BRAKE to the publishers of a site: shares of the ring in use and of lost packets, in 1/`FULL_SHARE`."""

    kind: ClassVar[str] = "brake"
    is_feedback: ClassVar[bool] = True
    site: int
    ring: int
    lost: int
