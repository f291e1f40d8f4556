"""The datagrams of tunnels in a capture: their sources and targets, content and losses, and the control messages."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.captures.datagrams import CapturedDatagram, endpoint_text
from protocols.errors import WireError
from protocols.tunnel.memory import LossMeter
from protocols.tunnel.messages import FULL_SHARE, Brake, Carried, Opaque, Presence, Report
from protocols.tunnel.wire import BRAKE, HEADER, KEYED, MAC_SIZE, PACKET, PRESENCE, REPORT, TunnelCodec, read_told

__all__ = ["TunnelFlow", "TunnelFlows", "TunnelSignals", "is_signal", "unwrapped"]

_KINDS = {1: "info", 2: "data", 3: "cmd", 4: "nack", 5: "ack", 6: "report"}
_NORM = 1
_MOST = 256
"""Flows that are told apart; further ones are counted together."""


@dataclass(slots=True)
class TunnelFlow:
    """The datagrams of one tunnel to another; `kinds` counts the packets in them."""

    source: str
    target: str
    sites: dict[int, None] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    datagrams: int = 0
    octets: int = 0
    keyed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    meter: LossMeter = field(default_factory=lambda: LossMeter(32))

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        told = {"from": self.source, "to": self.target, "sites": list(self.sites), "groups": list(self.groups)}
        counts = {"datagrams": self.datagrams, "bytes": self.octets, "missing": self.meter.lost, "keyed": self.keyed}
        return told | counts | {"packets": dict(self.kinds.most_common())}


@dataclass(slots=True)
class TunnelSignals:
    """PRESENCE, REPORT and BRAKE messages from one address to another.

    `ring` and `lost` are the largest shares, from 0 to 1, of the ring in use and of lost packets in a BRAKE.
    """

    source: str
    target: str
    sites: dict[int, None] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    ring: float = 0.0
    lost: float = 0.0

    def take(self, told: Presence | Report | Brake) -> None:
        """Count a message."""
        self.sites[told.site] = None
        self.kinds[told.kind] += 1
        if isinstance(told, Brake):
            self.ring, self.lost = max(self.ring, told.ring / FULL_SHARE), max(self.lost, told.lost / FULL_SHARE)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        told = {"from": self.source, "to": self.target, "sites": list(self.sites), "messages": dict(self.kinds.most_common())}
        return told | ({"ring": round(self.ring, 4), "lost": round(self.lost, 4)} if self.kinds[Brake.kind] else {})


class TunnelFlows:
    """The flows of a capture, in the order in which they begin, and the signals of tunnels."""

    def __init__(self) -> None:
        self._codec = TunnelCodec()
        self._flows: dict[tuple[str, str], TunnelFlow] = {}
        self._signals: dict[tuple[str, str], TunnelSignals] = {}

    def __iter__(self) -> Iterator[TunnelFlow]:
        return iter(self._flows.values())

    def __bool__(self) -> bool:
        return bool(self._flows)

    @property
    def signals(self) -> list[TunnelSignals]:
        """The PRESENCE, REPORT and BRAKE messages, by source and destination address."""
        return list(self._signals.values())

    def add_signal(self, datagram: CapturedDatagram) -> bool:
        """Count a PRESENCE, REPORT or BRAKE. Returns whether the datagram is one."""
        told = _told(datagram)
        if told is None:
            return False
        ends = endpoint_text(datagram.source, datagram.sport), endpoint_text(datagram.target, datagram.port)
        if ends not in self._signals and len(self._signals) >= _MOST:
            ends = "others", "others"
        self._signals.setdefault(ends, TunnelSignals(*ends)).take(told)
        return True

    def add(self, datagram: CapturedDatagram) -> None:
        """Count a datagram, if it is one of a tunnel."""
        carried = _carried(self._codec, datagram)
        if carried is None:
            return
        assert isinstance(carried.message, Opaque)
        ends = endpoint_text(datagram.source, datagram.sport), endpoint_text(datagram.target, datagram.port)
        if ends not in self._flows and len(self._flows) >= _MOST:
            ends = "others", "others"
        flow = self._flows.setdefault(ends, TunnelFlow(*ends))
        flow.sites[carried.site] = None
        flow.groups[endpoint_text(*_group(carried))] = None
        flow.datagrams += 1
        flow.octets += datagram.size
        flow.keyed += datagram.payload[0] & KEYED != 0
        flow.kinds[_kind(carried.message.data)] += 1
        flow.meter.take(None, carried.sequence)


def _carried(codec: TunnelCodec, datagram: CapturedDatagram) -> Carried | None:
    """Return the datagram of a tunnel that holds a packet of NORM; None for any other."""
    data = datagram.payload
    if len(data) < HEADER + 4 or data[0] & ~KEYED != PACKET or data[HEADER] >> 4 != _NORM or data[HEADER] & 15 not in _KINDS:
        return None
    message = codec.decode(data)
    return message if isinstance(message, Carried) else None


def _told(datagram: CapturedDatagram) -> Presence | Report | Brake | None:
    """Return the control message of a tunnel in a datagram; None for any other."""
    data = datagram.payload
    if not data or data[0] & ~KEYED not in (PRESENCE, REPORT, BRAKE):
        return None
    end = -MAC_SIZE if data[0] & KEYED else None
    try:
        told = read_told(bytes([data[0] & ~KEYED]) + data[1:end])
    except WireError:
        return None
    assert isinstance(told, Presence | Report | Brake)
    return told


def is_signal(datagram: CapturedDatagram) -> bool:
    """Return whether a datagram is a PRESENCE, REPORT or BRAKE of a tunnel."""
    return _told(datagram) is not None


def unwrapped(datagrams: Iterator[CapturedDatagram]) -> Iterator[CapturedDatagram]:
    """Yield the packets in the datagrams of tunnels, as if they were sent to their group."""
    codec = TunnelCodec()
    for datagram in datagrams:
        carried = _carried(codec, datagram)
        if carried is not None:
            assert isinstance(carried.message, Opaque)
            address, port = _group(carried)
            size = datagram.size - HEADER - (MAC_SIZE if datagram.payload[0] & KEYED else 0)
            yield replace(datagram, payload=carried.message.data, size=size, target=address, port=port)


def _group(carried: Carried) -> tuple[str, int]:
    return ".".join(map(str, carried.group[:4])), int.from_bytes(carried.group[4:])


def _kind(data: bytes) -> str:
    return _KINDS[data[0] & 15]
