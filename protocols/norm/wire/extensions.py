"""Header extensions (RFC 5740 4.1): the list of them, EXT_CC and EXT_RATE."""

from struct import Struct

from protocols.errors import UsageError, WireError
from protocols.norm.messages import CcFeedback, Extension
from protocols.norm.wire.sizes import CC_SIZE, FIRST_FIXED_HET

__all__ = [
    "pack_cc",
    "pack_extensions",
    "pack_rate",
    "take",
    "unpack_cc",
    "unpack_extensions",
    "unpack_rate",
]

HET_CC, HET_RATE = 3, 128
_CC = Struct(">HBBHHH")
_RATE = Struct(">xH")


def unpack_extensions(data: bytes, at: int, end: int) -> tuple[Extension, ...]:
    """Return the extensions between two offsets, which they must fill exactly."""
    found = []
    while at < end:
        het = data[at]
        if het >= FIRST_FIXED_HET:
            found.append(Extension(het, data[at + 1 : at + 4]))
            at += 4
            continue
        size = data[at + 1] * 4
        if not size or at + size > end:
            raise WireError(f"extension {het} of {size} bytes where {end - at} are left in the header")
        found.append(Extension(het, data[at + 2 : at + size]))
        at += size
    return tuple(found)


def pack_extensions(extensions: tuple[Extension, ...]) -> bytes:
    """Return the extensions as bytes. Their content must fill whole words: there is no place for its length on the wire."""
    parts = []
    for extension in extensions:
        het, content = extension.het, extension.content
        head = bytes((het,)) if het >= FIRST_FIXED_HET else bytes((het, (len(content) + 2) // 4 & 0xFF))
        whole = 4 if het >= FIRST_FIXED_HET else head[1] * 4
        if len(head) + len(content) != whole:
            raise UsageError(f"extension {het} with {len(content)} bytes of content, which do not fill whole words")
        parts.append(head + content)
    return b"".join(parts)


def take(extensions: tuple[Extension, ...], het: int) -> tuple[bytes | None, tuple[Extension, ...]]:
    """Return the content of the first extension of a kind (None when there is none) and all other extensions."""
    for index, extension in enumerate(extensions):
        if extension.het == het:
            return extension.content, extensions[:index] + extensions[index + 1 :]
    return None, extensions


def pack_cc(cc: CcFeedback | None) -> bytes:
    """Return EXT_CC, or nothing without feedback."""
    if cc is None:
        return b""
    return bytes((HET_CC, CC_SIZE // 4)) + _CC.pack(cc.sequence, cc.flags, cc.rtt, cc.loss, cc.rate, cc.loss_low)


def unpack_cc(extensions: tuple[Extension, ...]) -> tuple[CcFeedback | None, tuple[Extension, ...]]:
    """Return the feedback in EXT_CC (None without it) and all other extensions."""
    content, others = take(extensions, HET_CC)
    if content is None:
        return None, others
    if len(content) != _CC.size:
        raise WireError(f"EXT_CC of {2 + len(content)} bytes; it has {CC_SIZE}")
    return CcFeedback(*_CC.unpack(content)), others


def pack_rate(rate: int | None) -> bytes:
    """Return EXT_RATE, or nothing without a rate."""
    return b"" if rate is None else bytes((HET_RATE,)) + _RATE.pack(rate)


def unpack_rate(extensions: tuple[Extension, ...]) -> tuple[int | None, tuple[Extension, ...]]:
    """Return the rate code in EXT_RATE (None without it) and all other extensions."""
    content, others = take(extensions, HET_RATE)
    return (None if content is None else int(_RATE.unpack(content)[0])), others
