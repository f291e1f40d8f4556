"""NORM_NACK, NORM_ACK and NORM_REPORT on the wire (RFC 5740 4.3)."""

from struct import Struct
from typing import Any

from protocols.machine import Message
from protocols.norm.messages import ACK_FLUSH, Ack, Nack, Report
from protocols.norm.wire.extensions import (
    pack_cc,
    pack_extensions,
    unpack_cc,
    unpack_extensions,
)
from protocols.norm.wire.frame import Layout, frame
from protocols.norm.wire.requests import pack_item, pack_requests, unpack_item, unpack_requests
from protocols.norm.wire.schemes import Schemes

__all__ = ["FEEDBACK", "TYPE_ACK", "TYPE_NACK", "TYPE_REPORT"]

TYPE_NACK, TYPE_ACK, TYPE_REPORT = 4, 5, 6

_SOURCE = Struct(">I")
# Bytes 4..23; the two bytes before the times are reserved in a NACK.
_HEAD = Struct(">IIHBBII")
_BASE = 24


class _Nack(Layout[Nack]):
    base = _BASE

    def write(self, message: Nack, schemes: Schemes) -> bytes:
        times = message.response_sec, message.response_usec
        head = _HEAD.pack(message.source_id, message.sender_id, message.instance_id, 0, 0, *times)
        requests = pack_requests(message.requests, schemes, (message.sender_id, message.instance_id))
        return frame(TYPE_NACK, message.sequence, head, pack_cc(message.cc) + pack_extensions(message.extensions), requests)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Nack:
        _source, sender_id, instance_id, _reserved, _reserved, sec, usec = _HEAD.unpack_from(data, 4)
        cc, others = unpack_cc(unpack_extensions(data, _BASE, end))
        requests = unpack_requests(data, end, schemes, (sender_id, instance_id))
        return Nack(who, sequence, sender_id, instance_id, sec, usec, requests, cc, others)


class _Ack(Layout[Ack]):
    base = _BASE

    def write(self, message: Ack, schemes: Schemes) -> bytes:
        kind, times = (message.ack_type, message.ack_id), (message.response_sec, message.response_usec)
        head = _HEAD.pack(message.source_id, message.sender_id, message.instance_id, *kind, *times)
        extensions = pack_cc(message.cc) + pack_extensions(message.extensions)
        payload, flushed = message.payload, message.flushed
        if flushed is not None:
            payload = pack_item(flushed, schemes, (message.sender_id, message.instance_id))
        return frame(TYPE_ACK, message.sequence, head, extensions, payload)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Ack:
        _source, sender_id, instance_id, ack_type, ack_id, sec, usec = _HEAD.unpack_from(data, 4)
        cc, others = unpack_cc(unpack_extensions(data, _BASE, end))
        payload = data[end:]
        flushed = unpack_item(payload, schemes, (sender_id, instance_id)) if ack_type == ACK_FLUSH else None
        if flushed is not None:
            payload = b""
        return Ack(who, sequence, sender_id, instance_id, ack_type, ack_id, sec, usec, payload, cc, others, flushed)


class _Report(Layout[Report]):
    base = 8

    def write(self, message: Report, schemes: Schemes) -> bytes:
        return frame(TYPE_REPORT, message.sequence, _SOURCE.pack(message.source_id), b"", message.payload)

    def read(self, data: bytes, end: int, who: Any, sequence: int, schemes: Schemes) -> Report:
        unpack_extensions(data, 8, end)
        return Report(who, sequence, data[end:])


FEEDBACK: dict[int, tuple[type[Message], Layout[Any]]] = {
    TYPE_NACK: (Nack, _Nack()),
    TYPE_ACK: (Ack, _Ack()),
    TYPE_REPORT: (Report, _Report()),
}
"""The messages that do not come from a sender, by type on the wire."""
