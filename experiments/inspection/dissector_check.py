"""Compare every field of a message as decoded by the codec with the independent scapy dissector."""

from collections.abc import Iterable, Mapping
from typing import Any

from protocols.errors import UnsupportedError
from protocols.norm.messages import Ack, CcFeedback, CcNode, Fti, NormMessage
from protocols.norm.requests import Item

__all__ = ["MISSING", "differences", "dissected"]

MISSING = "scapy is not installed; get it: pip install 'mcastlab[inspect]'"

_SMALL_BLOCK, _GENERAL = 129, 2
_HETS = {"fti": 64, "cc": 3, "rate": 128}
_ORIGIN = ("source_id", "instance_id", "grtt", "backoff", "gsize")
_KINDS = {
    "NormData": "data",
    "NormInfo": "info",
    "NormFlush": "flush",
    "NormEot": "eot",
    "NormSquelch": "squelch",
    "NormCc": "cc",
    "NormRepairAdv": "repair_adv",
    "NormAckReq": "ack_req",
    "NormApplication": "application",
    "NormNack": "nack",
    "NormAck": "ack",
    "NormReport": "report",
}
_NUMBERS = {
    "sequence": "sequence",
    "source_id": "source_id",
    "flags": "flags",
    "fec_id": "fec_id",
    "object_id": "object_transport_id",
    "block": "source_block_number",
    "symbol": "encoding_symbol_id",
    "sender_id": "sender_id",
    "instance_id": "instance_id",
    "response_sec": "grtt_response_sec",
    "response_usec": "grtt_response_usec",
    "cc_sequence": "cc_sequence",
    "send_sec": "send_time_sec",
    "send_usec": "send_time_usec",
    "reserved": "reserved",
    "ack_type": "ack_type",
    "ack_id": "ack_id",
}
"""Integer fields: the codec's name and the dissector's."""


def dissected(data: bytes, element_bits: int = 16) -> Any:
    """Dissect a UDP payload with scapy.

    `element_bits` is m of FEC id 2. Raises UnsupportedError without scapy, and scapy's own errors for invalid NORM.
    """
    try:
        from protocols.norm.dissector.layers import Norm
    except ImportError as error:
        raise UnsupportedError(MISSING) from error
    return Norm(data, element_bits=element_bits)


def differences(message: NormMessage, layer: Any) -> list[str]:
    """Return the fields that differ, as `field: codec value, scapy value`; empty if there are none."""
    decoded = _decoded(message)
    seen = _seen(layer, decoded)
    return [f"{name}: {value!r}, {seen[name]!r}" for name, value in decoded.items() if seen[name] != value]


# -- the codec's view --------------------------------------------------------------------------------------------------


def _decoded(message: Any) -> dict[str, object]:
    decoded: dict[str, object] = {"kind": message.kind}
    decoded |= {name: getattr(message, name) for name in _NUMBERS if hasattr(message, name)}
    if hasattr(message, "origin"):
        decoded |= {name: getattr(message.origin, name) for name in _ORIGIN}
    if getattr(message, "fec_id", None) == _SMALL_BLOCK and hasattr(message, "block_length"):
        decoded["block_length"] = message.block_length
    decoded |= {name: _list(getattr(message, name)) for name in ("acking", "invalid", "nodes") if hasattr(message, name)}
    if hasattr(message, "requests"):
        decoded["requests"] = [(each.form, each.level, [_item(item) for item in each.items]) for each in message.requests]
    if hasattr(message, "payload") or hasattr(message, "content"):
        decoded["payload"] = message.payload if hasattr(message, "payload") else message.content
    if isinstance(message, Ack) and message.flushed is not None:
        decoded["flushed"] = _item(message.flushed)
        del decoded["payload"]
    decoded |= {name: _shared(getattr(message, name)) for name in _HETS if hasattr(message, name)}
    if hasattr(message, "extensions"):
        decoded["extensions"] = [(each.het, each.content) for each in message.extensions]
    return decoded


def _list(entries: Iterable[int | CcNode]) -> list[object]:
    return [node if isinstance(node, int) else (node.node_id, node.flags, node.rtt, node.rate) for node in entries]


def _item(item: Item) -> tuple[int, ...]:
    return item.fec_id, item.object_id, item.block, item.symbol, item.block_length


def _shared(part: Fti | CcFeedback | int | None) -> object:
    if isinstance(part, Fti):
        return part.object_size, part.segment, part.block, part.parity, part.m if part.fec_id == _GENERAL else 8
    if isinstance(part, CcFeedback):
        return part.sequence, part.flags, part.rtt, part.loss, part.rate, part.loss_low
    return part


# -- scapy's view ------------------------------------------------------------------------------------------------------


def _seen(layer: Any, wanted: Iterable[str]) -> dict[str, object]:
    """Return the dissector's values under the codec's names; None for absent fields."""
    fields = layer.fields
    seen: dict[str, object] = {name: _number(fields, theirs) for name, theirs in _NUMBERS.items()}
    seen |= {name: _number(fields, name) for name in _ORIGIN}
    seen["kind"] = _KINDS.get(type(layer).__name__)
    seen["block_length"] = _number(fields, "source_block_length")
    if "adv_flags" in fields:
        seen["flags"] = _number(fields, "adv_flags")
    seen["acking"] = seen["nodes"] = list(fields.get("acking_nodes", ()))
    seen["invalid"] = list(fields.get("invalid_objects", ()))
    if "cc_nodes" in fields:
        seen["nodes"] = [(n.node, int(n.cc_flags), n.cc_rtt, n.cc_rate) for n in fields["cc_nodes"]]
    seen["requests"] = [
        (each.form, int(each.flags), [_seen_item(item) for item in each.items]) for each in fields.get("repair_requests", ())
    ]
    seen["payload"] = bytes(layer.payload)
    if type(layer.payload).__name__ == "NormAckFlush":
        seen["flushed"] = _seen_item(layer.payload)
    return seen | _seen_extensions(fields.get("extensions", ()), frozenset(wanted))


def _number(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return None if value is None else int(value)


def _seen_item(item: Any) -> tuple[int, ...]:
    names = item.object_transport_id, item.source_block_number, item.encoding_symbol_id
    return item.fec_id, *names, item.source_block_length or 0


def _seen_extensions(extensions: Iterable[Any], wanted: frozenset[str]) -> dict[str, object]:
    """Return the first extension of each kind the message interprets, and all others as bytes."""
    seen: dict[str, object] = dict.fromkeys(_HETS)
    others = []
    for extension in extensions:
        raw = bytes(extension)
        name = next((name for name, het in _HETS.items() if het == raw[0] and name in wanted), None)
        if name is not None and seen[name] is None:
            seen[name] = _seen_shared(name, extension)
        else:
            others.append((raw[0], raw[1:] if raw[0] >= 128 else raw[2:]))
    return seen | {"extensions": others}


def _seen_shared(name: str, part: Any) -> object:
    fields = part.fields
    if name == "fti":
        sizes = fields.get("object_size"), fields.get("segment_size"), fields.get("max_block_len")
        return *sizes, fields.get("num_parity", 0), fields.get("m", 8)
    if name == "cc":
        return tuple(_number(fields, key) for key in ("cc_sequence", "cc_flags", "cc_rtt", "cc_loss", "cc_rate", "loss_low"))
    return _number(fields, "send_rate")
