"""Dissect one captured frame with scapy, from the link layer to the last field of the NORM message."""

from collections.abc import Iterable, Iterator
from typing import Any

from scapy.fields import ShortField
from scapy.layers import inet, inet6, l2
from scapy.packet import NoPayload, Packet, Raw

from protocols.norm.dissector.layers import Norm

__all__ = ["frame_layers"]

_LINKS: dict[int, type[Packet]] = {
    0: l2.Loopback,
    1: l2.Ether,
    108: l2.Loopback,
    113: l2.CookedLinux,
    276: l2.CookedLinuxV2,
}


def frame_layers(data: bytes, link: int, messages: Iterable[tuple[bytes, int]]) -> list[dict[str, Any]]:
    """Return the layers of a frame, each with its fields as {name, value, shown}.

    `messages` are the NORM messages it carries, each with m of FEC id 2. They are passed separately, because a frame that
    completes a fragmented datagram holds only its last fragment.
    """
    layers = []
    for layer in _layers(_Frame(link.to_bytes(2) + data).payload):
        layers.append(_layer(layer))
        # Do not let dissectors of other protocols interpret the UDP payload.
        if isinstance(layer, inet.UDP):
            break
    for message, element_bits in messages:
        layers += [_layer(layer) for layer in _layers(Norm(message, element_bits=element_bits))]
    return layers


class _Frame(Packet):
    """Pseudo-layer around a frame, because scapy shows undissected bytes only as the payload of a layer."""

    fields_desc = [ShortField("link", 1)]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _LINKS.get(self.link) or (inet6.IPv6 if payload[:1] and payload[0] >> 4 == 6 else inet.IP)


def _layers(layer: Any) -> Iterator[Any]:
    while not isinstance(layer, NoPayload):
        yield layer
        layer = layer.payload


def _layer(layer: Any) -> dict[str, Any]:
    if isinstance(layer, Raw):
        return {"layer": "payload", "fields": [_field("bytes", layer.load, f"{len(layer.load)} bytes")]}
    fields = []
    for field in layer.fields_desc:
        value = layer.fields.get(field.name)
        if value is not None:
            fields.append(_field(field.name, value, str(field.i2repr(layer, value))))
    return {"layer": layer.name, "fields": fields}


def _field(name: str, value: Any, shown: str) -> dict[str, Any]:
    if isinstance(value, list) and value and isinstance(value[0], Packet):
        return {"name": name, "parts": [_layer(part) for part in value]}
    return {"name": name, "value": _plain(value), "shown": shown}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str) else int(value) if hasattr(value, "__int__") else str(value)
