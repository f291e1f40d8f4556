"""The NORM messages as scapy layers (RFC 5740 4): they dissect and build, for people and as a second opinion in tests.

Written from the layout and independent of the codec: nothing here imports `protocols.norm.wire`. `Norm(payload)` gives the
layer of a UDP payload, `NormData(source_id=1, extensions=[ExtFti(object_size=9000)]) / b"content"` builds one; header lengths,
lengths of extensions and of repair requests are filled in where they are left out. Quantised fields hold the codes of the wire
and show what they stand for.

fec_id 2 shares one word between block and symbol, and only an EXT_FTI says how. A message that carries one is split by it, any
other by `element_bits` (8 or 16; 16, as NRL NORM, when nothing is said): `Norm(payload, element_bits=8)`.
"""

from typing import Any, ClassVar

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    FlagsField,
    IntField,
    PacketListField,
    ShortField,
    XByteField,
)
from scapy.packet import Packet, Raw

from protocols.norm.dissector.fields import (
    CC_FLAGS,
    FEC,
    FTIS,
    MOST,
    ExtAppAck,
    ExtAuth,
    ExtCc,
    ExtFixed,
    ExtFti,
    ExtFtiGeneral,
    ExtFtiNoCode,
    ExtFtiSmallBlock,
    ExtRate,
    ExtVariable,
    GroupSize,
    Part,
    Rate,
    Rtt,
    extension_class,
    fti_bits,
    payload_id,
    payload_id_size,
)

__all__ = [
    "ExtAppAck",
    "ExtAuth",
    "ExtCc",
    "ExtFixed",
    "ExtFti",
    "ExtFtiGeneral",
    "ExtFtiNoCode",
    "ExtFtiSmallBlock",
    "ExtRate",
    "ExtVariable",
    "Norm",
    "NormAck",
    "NormAckFlush",
    "NormAckReq",
    "NormApplication",
    "NormCc",
    "NormCcNode",
    "NormCommand",
    "NormData",
    "NormEot",
    "NormFlush",
    "NormInfo",
    "NormNack",
    "NormRepairAdv",
    "NormReport",
    "NormSquelch",
    "NormStream",
    "RepairItem",
    "RepairRequest",
]

_TYPES = {1: "INFO", 2: "DATA", 3: "CMD", 4: "NACK", 5: "ACK", 6: "REPORT"}
_FLAVOURS = {1: "FLUSH", 2: "EOT", 3: "SQUELCH", 4: "CC", 5: "REPAIR_ADV", 6: "ACK_REQ", 7: "APPLICATION"}
_ACKS = {1: "CC", 2: "FLUSH"}
_FORMS = {1: "ITEMS", 2: "RANGES", 3: "ERASURES"}
_OBJECT_FLAGS = ["REPAIR", "EXPLICIT", "INFO", "UNRELIABLE", "FILE", "STREAM", "SYN", "BIT7"]
_LEVELS = ["SEGMENT", "BLOCK", "INFO", "OBJECT", "BIT4", "BIT5", "BIT6", "BIT7"]
_STREAM = 0x20


class Norm(Packet):
    """Any NORM message: `Norm(bytes)` gives the layer of its type, and is the common header alone for an unknown one."""

    name = "NORM"
    __slots__ = ("element_bits",)
    base: ClassVar[int] = 8
    fields_desc = [
        BitField("version", 1, 4),
        BitEnumField("type", 6, 4, _TYPES),
        ByteField("hdr_len", None),
        ShortField("sequence", 0),
        IntField("source_id", 0),
    ]

    def __init__(self, _pkt: bytes = b"", *args: Any, element_bits: int = 16, **fields: Any) -> None:
        self.element_bits = fti_bits(_pkt) or element_bits
        super().__init__(_pkt, *args, **fields)

    def copy(self) -> Any:
        """Return a deep copy with the same split of extensions."""
        return self._split_alike(super().copy())

    def clone_with(self, payload: Any = None, **fields: Any) -> Any:
        """Return a copy with other fields and the same split of extensions."""
        return self._split_alike(super().clone_with(payload, **fields))

    def _split_alike(self, other: Any) -> Any:
        other.element_bits = self.element_bits
        return other

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *_args: Any, **_fields: Any) -> type[Packet]:
        """Return the layer for these bytes: by type, CMD by its flavour."""
        if len(_pkt) < 8:
            return cls
        if _pkt[0] & 15 == 3:
            return _BY_FLAVOUR.get(_pkt[12], NormCommand) if len(_pkt) >= 16 else Norm
        return _BY_TYPE.get(_pkt[0] & 15, Norm)

    def header_base(self) -> int:
        """Return the bytes of the header without extensions."""
        return self.base

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the length of the header."""
        if self.hdr_len is None:
            size = self.header_base() + sum(len(extension) for extension in self.fields.get("extensions", ()))
            pkt = pkt[:1] + bytes((size // 4,)) + pkt[2:]
        return pkt + pay


def _extensions() -> PacketListField:
    """Return a field of the header extensions between the base header and its end."""
    return PacketListField(
        "extensions",
        [],
        next_cls_cb=extension_class,
        length_from=lambda packet: max(packet.hdr_len * 4 - packet.header_base(), 0),
        max_count=MOST,
    )


def _payload_size(packet: Any) -> int:
    return max(len(packet.original) - int(packet.hdr_len) * 4, 0)


def _header(type: int) -> list[Any]:
    """Return the fields of the common header of a type of message."""
    return [
        BitField("version", 1, 4),
        BitEnumField("type", type, 4, _TYPES),
        ByteField("hdr_len", None),
        ShortField("sequence", 0),
        IntField("source_id", 0),
    ]


def _sender_header(type: int) -> list[Any]:
    """Return the fields of the header that every message of a sender has."""
    return [
        *_header(type),
        ShortField("instance_id", 0),
        Rtt("grtt", 0),
        BitField("backoff", 4, 4),
        GroupSize("gsize", 2, 4),
    ]


class _Symbol(Norm):
    """A message whose base header ends with an fec_payload_id."""

    base = 16

    def header_base(self) -> int:
        return self.base + payload_id_size(self.fec_id)


class NormInfo(Norm):
    """NORM_INFO; its content is the payload."""

    name = "NORM_INFO"
    base = 16
    fields_desc = [
        *_sender_header(1),
        FlagsField("flags", 0, 8, _OBJECT_FLAGS),
        ByteEnumField("fec_id", 5, FEC),
        ShortField("object_transport_id", 0),
        _extensions(),
    ]


class NormData(_Symbol):
    """NORM_DATA; the segment is the payload, behind a `NormStream` where it is a source segment of a stream."""

    name = "NORM_DATA"
    fields_desc = [
        *_sender_header(2),
        FlagsField("flags", 0, 8, _OBJECT_FLAGS),
        ByteEnumField("fec_id", 5, FEC),
        ShortField("object_transport_id", 0),
        *payload_id(),
        _extensions(),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Parity covers the header of stream segments too, so only source segments show one."""
        if not int(self.flags) & _STREAM or len(payload) < 8:
            return Raw
        ftis: list[Any] = [extension for extension in self.extensions if isinstance(extension, tuple(FTIS.values()))]
        length = ftis[0].max_block_len if ftis else self.source_block_length
        return NormStream if length is None or self.encoding_symbol_id < length else Raw


class NormStream(Packet):
    """The header before the bytes of a stream in a segment."""

    name = "NORM stream segment"
    fields_desc = [ShortField("payload_len", 0), ShortField("payload_msg_start", 0), IntField("payload_offset", 0)]


def _command_header(flavour: int) -> list[Any]:
    return [*_sender_header(3), ByteEnumField("flavor", flavour, _FLAVOURS)]


class NormCommand(Norm):
    """NORM_CMD of a flavour that is not known."""

    name = "NORM_CMD"
    base = 16
    fields_desc = [*_command_header(0), BitField("reserved", 0, 24), _extensions()]


class _NamedCommand(_Symbol):
    """A command that names an object and a symbol."""


def _named_command(flavour: int) -> list[Any]:
    names = [ByteEnumField("fec_id", 5, FEC), ShortField("object_transport_id", 0)]
    return [*_command_header(flavour), *names, *payload_id(), _extensions()]


def _numbers(name: str, field: Any, size: int) -> FieldListField:
    """Return a list of numbers that fills the payload; half a number at the end stays payload."""
    return FieldListField(
        name, [], field("", 0), length_from=lambda packet: _payload_size(packet) // size * size, max_count=MOST
    )


class NormFlush(_NamedCommand):
    """CMD(FLUSH)."""

    name = "NORM_CMD(FLUSH)"
    fields_desc = [*_named_command(1), _numbers("acking_nodes", IntField, 4)]


class NormEot(NormCommand):
    """CMD(EOT)."""

    name = "NORM_CMD(EOT)"
    flavor = 2


class NormSquelch(_NamedCommand):
    """CMD(SQUELCH)."""

    name = "NORM_CMD(SQUELCH)"
    fields_desc = [*_named_command(3), _numbers("invalid_objects", ShortField, 2)]


class NormCcNode(Part):
    """An entry of the node list of CMD(CC)."""

    name = "congestion control node"
    fields_desc = [IntField("node", 0), FlagsField("cc_flags", 0, 8, CC_FLAGS), Rtt("cc_rtt", 0), Rate("cc_rate", 0)]


class NormCc(Norm):
    """CMD(CC): the probe."""

    name = "NORM_CMD(CC)"
    base = 24
    fields_desc = [
        *_command_header(4),
        XByteField("reserved", 0),
        ShortField("cc_sequence", 0),
        IntField("send_time_sec", 0),
        IntField("send_time_usec", 0),
        _extensions(),
        PacketListField("cc_nodes", [], NormCcNode, length_from=lambda packet: _payload_size(packet) // 8 * 8, max_count=MOST),
    ]


class RepairItem(Part):
    """An item of a repair request: a symbol, a block or an object."""

    name = "repair item"
    fields_desc = [
        ByteEnumField("fec_id", 5, FEC),
        ByteField("reserved", 0),
        ShortField("object_transport_id", 0),
        *payload_id(),
    ]


class RepairRequest(Part):
    """A repair request; of RANGES the items come in pairs."""

    name = "repair request"
    fields_desc = [
        ByteEnumField("form", 1, _FORMS),
        FlagsField("flags", 1, 8, _LEVELS),
        FieldLenField("length", None, length_of="items", fmt="H"),
        PacketListField("items", [], RepairItem, length_from=lambda packet: packet.length, max_count=MOST),
    ]


def _requests() -> PacketListField:
    return PacketListField("repair_requests", [], RepairRequest, length_from=_payload_size, max_count=MOST)


class NormRepairAdv(Norm):
    """CMD(REPAIR_ADV)."""

    name = "NORM_CMD(REPAIR_ADV)"
    base = 16
    fields_desc = [
        *_command_header(5),
        FlagsField("adv_flags", 0, 8, ["LIMIT", *(f"BIT{bit}" for bit in range(1, 8))]),
        ShortField("reserved", 0),
        _extensions(),
        _requests(),
    ]


class NormAckReq(Norm):
    """CMD(ACK_REQ)."""

    name = "NORM_CMD(ACK_REQ)"
    base = 16
    fields_desc = [
        *_command_header(6),
        ByteField("reserved", 0),
        ByteEnumField("ack_type", 0, _ACKS),
        ByteField("ack_id", 0),
        _extensions(),
        _numbers("acking_nodes", IntField, 4),
    ]


class NormApplication(NormCommand):
    """CMD(APPLICATION); its content is the payload."""

    name = "NORM_CMD(APPLICATION)"
    flavor = 7


def _feedback(type: int, middle: list[Any]) -> list[Any]:
    return [
        *_header(type),
        IntField("sender_id", 0),
        ShortField("instance_id", 0),
        *middle,
        IntField("grtt_response_sec", 0),
        IntField("grtt_response_usec", 0),
        _extensions(),
    ]


class NormNack(Norm):
    """NORM_NACK."""

    name = "NORM_NACK"
    base = 24
    fields_desc = [*_feedback(4, [ShortField("reserved", 0)]), _requests()]


class NormAckFlush(Part):
    """Payload of an ACK of type FLUSH: the symbol up to which all is received."""

    name = "flushed"
    fields_desc = RepairItem.fields_desc


class NormAck(Norm):
    """NORM_ACK."""

    name = "NORM_ACK"
    base = 24
    fields_desc = _feedback(5, [ByteEnumField("ack_type", 1, _ACKS), ByteField("ack_id", 0)])

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the layer of the payload: that of a FLUSH is known."""
        return NormAckFlush if self.ack_type == 2 and len(payload) >= 8 else Raw


class NormReport(Norm):
    """NORM_REPORT."""

    name = "NORM_REPORT"
    type = 6


_BY_TYPE: dict[int, type[Norm]] = {1: NormInfo, 2: NormData, 4: NormNack, 5: NormAck, 6: NormReport}
_BY_FLAVOUR: dict[int, type[Norm]] = {
    1: NormFlush,
    2: NormEot,
    3: NormSquelch,
    4: NormCc,
    5: NormRepairAdv,
    6: NormAckReq,
    7: NormApplication,
}
