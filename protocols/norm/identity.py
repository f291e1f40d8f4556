"""Identities: the stable 64-bit names of the content NORM messages carry.

Layout, most significant first: kind 2 bits, source 14 (the node id folded), object 16, index 32. Indices are dense per object
and kind, so that 256 neighbours are drawn together by a lossy link. Kind 3 names symbols of an object whose FTI is unknown.
"""

from typing import Final

from protocols.norm.messages import Fti

__all__ = ["SOURCE_SYMBOL", "PARITY_SYMBOL", "INFO", "base_of", "info_identity", "symbol_identity"]

SOURCE_SYMBOL: Final = 0
PARITY_SYMBOL: Final = 1
INFO: Final = 2
UNKNOWN: Final = 3


def _fold(source_id: int) -> int:
    return (source_id ^ (source_id >> 14) ^ (source_id >> 28)) & 0x3FFF


def base_of(kind: int, source_id: int, object_id: int) -> int:
    """Return the identity of index 0 of an object's symbols of this kind."""
    return (kind << 62) | (_fold(source_id) << 48) | (object_id << 32)


def info_identity(source_id: int, object_id: int) -> int:
    """Return the identity of an object's NORM_INFO, dense over objects."""
    return base_of(INFO, source_id, 0) | object_id


def symbol_identity(source_id: int, object_id: int, block: int, symbol: int, fti: Fti | None, m: int = 8) -> int:
    """Return the identity of a source or parity symbol; without `fti`, a block has at most 2^m symbols."""
    if fti is None:
        return base_of(UNKNOWN, source_id, object_id) | ((block << m | symbol) & 0xFFFFFFFF)
    length = fti.partition.length(block)
    if symbol < length:
        return base_of(SOURCE_SYMBOL, source_id, object_id) | ((fti.partition.first(block) + symbol) & 0xFFFFFFFF)
    return base_of(PARITY_SYMBOL, source_id, object_id) | ((block * fti.parity + symbol - length) & 0xFFFFFFFF)
