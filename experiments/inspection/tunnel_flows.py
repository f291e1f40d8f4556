"""The datagrams of tunnels in a capture: who sends to whom, what is in them, and which are missing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.captures.datagrams import CapturedDatagram, endpoint_text
from protocols.tunnel.memory import LossMeter
from protocols.tunnel.messages import Carried, Opaque
from protocols.tunnel.wire import HEADER, KEYED, MAC_SIZE, PACKET, TunnelCodec

__all__ = ["TunnelFlow", "TunnelFlows", "unwrapped"]

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


class TunnelFlows:
    """The flows of a capture, in the order in which they begin."""

    def __init__(self) -> None:
        self._codec = TunnelCodec()
        self._flows: dict[tuple[str, str], TunnelFlow] = {}

    def __iter__(self) -> Iterator[TunnelFlow]:
        return iter(self._flows.values())

    def __bool__(self) -> bool:
        return bool(self._flows)

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
