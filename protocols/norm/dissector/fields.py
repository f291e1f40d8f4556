"""Fields common to several NORM layers: quantised values, payload ids, header extensions."""

from typing import Any

from scapy.fields import (
    BitField,
    ByteEnumField,
    ByteField,
    ConditionalField,
    FieldLenField,
    FlagsField,
    IntField,
    MultipleTypeField,
    ShortField,
    StrLenField,
    ThreeBytesField,
    XStrLenField,
)
from scapy.packet import Packet, Raw

from protocols.norm.quantise import gsize_value, loss_value, rate_value, rtt_seconds

__all__ = [
    "CC_FLAGS",
    "FEC",
    "FTIS",
    "MOST",
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
    "GroupSize",
    "Part",
    "Rate",
    "Rtt",
    "extension_class",
    "payload_id",
    "payload_id_size",
    "fti_bits",
]

FEC = {0: "Compact No-Code", 2: "RS GF(2^m)", 5: "RS GF(2^8)", 129: "Small Block Systematic"}
_HETS = {1: "EXT_AUTH", 3: "EXT_CC", 64: "EXT_FTI", 65: "APP_ACK", 128: "EXT_RATE"}
CC_FLAGS = ["CLR", "PLR", "RTT", "START", "LEAVE", "LIMIT", "BIT6", "BIT7"]
MOST = 1 << 16
"""Entries of a list in one datagram: scapy's own limit of 100 is for other protocols."""


class Rtt(ByteField):
    """A round-trip time as a code of 8 bits."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return the code and its value."""
        return f"{x} ({rtt_seconds(x):.4g} s)"


class GroupSize(BitField):
    """A group size as a code of 4 bits."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return the code and its value."""
        return f"{x} ({gsize_value(x):g})"


class Rate(ShortField):
    """A rate as a code of 16 bits."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return the code and its value."""
        return f"{x:#06x} ({rate_value(x):.5g} bytes/s)"


class _Loss(ShortField):
    def i2repr(self, pkt: Any, x: Any) -> str:
        return f"{x} ({loss_value(x):.4%})"


class Part(Packet):
    """A part of a message: bytes behind it are not its payload."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return the remaining bytes as padding."""
        return b"", s


# -- payload ids -------------------------------------------------------------------------------------------------------


def _element_bits(packet: Any) -> int:
    """m of fec_id 2 around a packet: from the EXT_FTI of its message, or as it was given to the message."""
    while packet is not None:
        for extension in getattr(packet, "fields", {}).get("extensions", ()):
            if isinstance(extension, ExtFtiGeneral):
                return int(extension.m)
        bits = getattr(packet, "element_bits", None)
        if isinstance(bits, int):
            return bits
        packet = packet.parent or packet.underlayer
    return 16


def _symbol_bits(packet: Any) -> int:
    """Width of the encoding symbol id; the block has the rest of 32 bits, with fec_id 129 all of them."""
    if packet.fec_id == 2:
        return _element_bits(packet)
    return 16 if packet.fec_id in (0, 129) else 8


def payload_id() -> list[Any]:
    """Return the fields of an fec_payload_id; a field `fec_id` comes before."""
    block, symbol = "source_block_number", "encoding_symbol_id"
    return [
        MultipleTypeField(
            [
                (IntField(block, 0), lambda packet: packet.fec_id == 129),
                (ShortField(block, 0), lambda packet: _symbol_bits(packet) == 16),
            ],
            ThreeBytesField(block, 0),
        ),
        ConditionalField(ShortField("source_block_length", 0), lambda packet: packet.fec_id == 129),
        MultipleTypeField([(ShortField(symbol, 0), lambda packet: _symbol_bits(packet) == 16)], ByteField(symbol, 0)),
    ]


def payload_id_size(fec_id: int) -> int:
    """Return the bytes of an fec_payload_id."""
    return 8 if fec_id == 129 else 4


# -- header extensions -------------------------------------------------------------------------------------------------


def _extension(het: int, words: int) -> list[Any]:
    return [ByteEnumField("het", het, _HETS), ByteField("hel", words)]


class ExtFti(Part):
    """EXT_FTI of fec_id 5. `num_parity` is what NRL NORM carries where RFC 5510 has max_n."""

    name = "EXT_FTI"
    fields_desc = [
        *_extension(64, 3),
        BitField("object_size", 0, 48),
        ShortField("segment_size", 0),
        ByteField("max_block_len", 0),
        ByteField("num_parity", 0),
    ]


class ExtFtiGeneral(Part):
    """EXT_FTI of fec_id 2: `m` bits per symbol element."""

    name = "EXT_FTI (fec_id 2)"
    fields_desc = [
        *_extension(64, 4),
        BitField("object_size", 0, 48),
        ByteField("m", 8),
        ByteField("group", 1),
        ShortField("segment_size", 0),
        ShortField("max_block_len", 0),
        ShortField("num_parity", 0),
    ]


class ExtFtiSmallBlock(Part):
    """EXT_FTI of fec_id 129."""

    name = "EXT_FTI (fec_id 129)"
    fields_desc = [
        *_extension(64, 4),
        BitField("object_size", 0, 48),
        ShortField("fec_instance_id", 0),
        ShortField("segment_size", 0),
        ShortField("max_block_len", 0),
        ShortField("num_parity", 0),
    ]


class ExtFtiNoCode(Part):
    """EXT_FTI of fec_id 0, which has no parity."""

    name = "EXT_FTI (fec_id 0)"
    fields_desc = [
        *_extension(64, 4),
        BitField("object_size", 0, 48),
        ShortField("reserved", 0),
        ShortField("segment_size", 0),
        IntField("max_block_len", 0),
    ]


class ExtCc(Part):
    """EXT_CC: a receiver's congestion control feedback. NRL NORM has the low half of a 32-bit loss in `loss_low`."""

    name = "EXT_CC"
    fields_desc = [
        *_extension(3, 3),
        ShortField("cc_sequence", 0),
        FlagsField("cc_flags", 0, 8, CC_FLAGS),
        Rtt("cc_rtt", 0),
        _Loss("cc_loss", 0),
        Rate("cc_rate", 0),
        ShortField("loss_low", 0),
    ]


class ExtAuth(Part):
    """EXT_AUTH with a group-keyed MAC and a sequence number against replay (RFC 6584 5.1)."""

    name = "EXT_AUTH"
    fields_desc = [
        ByteEnumField("het", 1, _HETS),
        FieldLenField("hel", None, length_of="group_keyed_mac", fmt="B", adjust=lambda packet, length: (length + 8) // 4),
        BitField("asid", 0, 4),
        BitField("rsvd", 0, 3),
        BitField("anti_replay", 1, 1),
        BitField("anti_replay_sequence_number", 0, 40),
        XStrLenField("group_keyed_mac", b"", length_from=lambda packet: max(packet.hel * 4 - 8, 0)),
    ]


class ExtRate(Part):
    """EXT_RATE of CMD(CC): the sender's rate."""

    name = "EXT_RATE"
    fields_desc = [ByteEnumField("het", 128, _HETS), ByteField("reserved", 0), Rate("send_rate", 0)]


class ExtFixed(Part):
    """An extension of one word, HET 128 and above."""

    name = "extension of one word"
    fields_desc = [ByteEnumField("het", 129, _HETS), BitField("content", 0, 24)]


class ExtVariable(Part):
    """An extension with a length, HET below 128. HEL 0, which no extension has, is taken for its two bytes."""

    name = "extension"
    fields_desc = [
        ByteEnumField("het", 0, _HETS),
        FieldLenField("hel", None, length_of="content", fmt="B", adjust=lambda packet, length: (length + 2) // 4),
        StrLenField("content", b"", length_from=lambda packet: max(packet.hel * 4 - 2, 0)),
    ]


class ExtAppAck(ExtVariable):
    """NRL NORM's application content of FLUSH and ACK; its length is known in words only."""

    name = "APP_ACK"
    het = 65


FTIS: dict[int, type[Part]] = {0: ExtFtiNoCode, 2: ExtFtiGeneral, 5: ExtFti, 129: ExtFtiSmallBlock}
_SIZED: dict[int, tuple[type[Part], int]] = {3: (ExtCc, 12), 128: (ExtRate, 4)}


def extension_class(packet: Any, _before: Any, _last: Any, remain: bytes) -> type[Packet] | None:
    """Return the layer of the extension that `remain` begins with; one of unexpected length is shown as bytes."""
    if len(remain) < 4:
        return Raw if remain else None
    het, size = remain[0], 4 if remain[0] >= 128 else remain[1] * 4
    fti = FTIS.get(getattr(packet, "fec_id", -1)) if het == 64 else None
    if fti is not None and size == (12 if fti is ExtFti else 16):
        return fti
    known = _SIZED.get(het)
    if known is not None and known[1] == size:
        return known[0]
    if het == 65:
        return ExtAppAck
    if het == 1 and size > 8 and remain[2] & 1:
        return ExtAuth
    return ExtFixed if het >= 128 else ExtVariable


def fti_bits(data: bytes) -> int | None:
    """Return m from an EXT_FTI in these bytes: the payload id before it can't be read without."""
    if len(data) < 20 or data[0] & 15 not in (1, 2) or data[13] != 2:
        return None
    at, end = 16 if data[0] & 15 == 1 else 20, min(data[1] * 4, len(data))
    while at + 4 <= end:
        size = 4 if data[at] >= 128 else data[at + 1] * 4
        if data[at] == 64 and size == 16 and at + size <= end:
            return data[at + 8]
        if not size:
            return None
        at += size
    return None
