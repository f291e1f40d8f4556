"""Erasure coding: `encode` computes parity symbols of a block, `decode` its missing source symbols.

The code is Reed-Solomon (RFC 5510) with symbol elements of m = 8 bits, for FEC encoding ids 5, 129 and 2, or of 16 bits, for
larger blocks, with FEC encoding id 2 alone.
"""

from collections.abc import Mapping, Sequence

from protocols.fec.reed_solomon import MAX_SYMBOLS, decode_8, encode_8

__all__ = ["ELEMENT_BITS", "MOST_SYMBOLS", "decode", "encode", "most_erasures"]

ELEMENT_BITS = (8, 16)
"""The sizes of symbol elements, m."""
MOST_SYMBOLS = {8: MAX_SYMBOLS, 16: 65535}
"""By m, the most source and parity symbols a block may have together."""
MOST_WORK = 1 << 32
"""About how many nanoseconds it may take to decode a block, in one step."""
PER_PAIR = 16
"""Nanoseconds that each pair of a given and a missing symbol takes with m = 16, beside one for each byte of a symbol."""


def most_erasures(count: int, size: int, m: int) -> int:
    """Return how many of the `count` source symbols of a block, of `size` bytes, may be decoded within `MOST_WORK`."""
    return MOST_SYMBOLS[m] if m == 8 else MOST_WORK // (count * (PER_PAIR + size))


def encode(k: int, parity: int, sources: Sequence[bytes], wanted: Sequence[int], m: int = 8) -> list[bytes]:
    """Return the parity symbols numbered `wanted` (0 to parity - 1) of the block with these `sources`.

    With m = 16 they have an even length. Raises UsageError for a block size or parity numbers out of range.
    """
    if m == 8:
        return encode_8(k, parity, sources, wanted)
    from protocols.fec.reed_solomon_16 import encode_16

    return encode_16(k, parity, sources, wanted)


def decode(
    k: int, parity: int, count: int, sources: Mapping[int, bytes], parities: Mapping[int, bytes], m: int = 8
) -> dict[int, bytes]:
    """Return the missing ones of the `count` source symbols of a block, by index.

    `sources` and `parities` are the symbols received, by index. As many parity symbols are used as source symbols are missing;
    with fewer, or with a block size out of range, UsageError is raised. Decoded symbols have the length of the longest symbol
    given, with m = 16 rounded up to an even one: the caller cuts the last symbol of an object.
    """
    if m == 8:
        return decode_8(k, parity, count, sources, parities)
    from protocols.fec.reed_solomon_16 import decode_16

    return decode_16(k, parity, count, sources, parities)
