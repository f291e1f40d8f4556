"""The layouts of payload id and EXT_FTI of each FEC scheme (RFC 5445, RFC 5510, RFC 5740 4.2.1).

The payload id names a block and a symbol. fec_id 2, 5 and 0 share one 32-bit word between them; fec_id 129 spends eight bytes
and carries the number of source symbols of the block as well. EXT_FTI carries the number of *parity* symbols, as NRL NORM
does, where RFC 5510 has max_n. For fec_id 2 the split of the word is only known from the object's FTI: `Schemes` remembers it.
"""

from struct import Struct
from typing import Final

from protocols.errors import UsageError, WireError
from protocols.fec import MOST_SYMBOLS
from protocols.norm.messages import Fti
from protocols.norm.requests import Item

__all__ = ["FEC_ID_GENERAL", "HET_FTI", "Scheme", "Schemes", "scheme_of"]

HET_FTI = 64
_WORD = Struct(">I")
_SMALL_BLOCK_ID = Struct(">IHH")
_SIZE_48 = 1 << 48


class Scheme:
    """One scheme whose payload id is a 32-bit word: the block above, the symbol in the low `bits`."""

    __slots__ = ("bits", "fec_id", "fti", "limit", "m", "mask")

    id_size = 4
    block_bits = 32

    def __init__(self, fec_id: int, bits: int, fti: str, limit: int, m: int = 8) -> None:
        self.fec_id = fec_id
        self.bits = bits
        self.mask = (1 << bits) - 1
        self.fti = Struct(fti)
        """EXT_FTI behind HET and HEL."""
        self.limit = limit
        """The most source and parity symbols of a block that has parity; 0 when the scheme has none."""
        self.m = m

    @property
    def fti_size(self) -> int:
        """Return the bytes of EXT_FTI with HET and HEL."""
        return 2 + self.fti.size

    def pack_id(self, block: int, symbol: int, block_length: int) -> bytes:
        """Return the payload id; `block_length` travels with fec_id 129 only."""
        if symbol > self.mask:
            raise UsageError(f"symbol {symbol} does not fit fec_id {self.fec_id}, whose last is {self.mask}")
        return _WORD.pack(block << self.bits | symbol)

    def unpack_id(self, data: bytes, at: int) -> tuple[int, int, int]:
        """Return block, symbol and block length (0 where it does not travel) of the payload id at offset `at`."""
        word = _WORD.unpack_from(data, at)[0]
        return word >> self.bits, word & self.mask, 0

    def pack_fti(self, fti: Fti) -> bytes:
        """Return EXT_FTI with HET and HEL."""
        if not 0 <= fti.object_size < _SIZE_48:
            raise UsageError(f"object of {fti.object_size} bytes; EXT_FTI carries 48 bits")
        high, low = divmod(fti.object_size, 1 << 32)
        return bytes((HET_FTI, self.fti_size // 4)) + self.fti.pack(high, low, *self._fields(fti))

    def unpack_fti(self, content: bytes) -> Fti:
        """Return the FTI in the extension's content (what follows HET and HEL). Raises WireError for an impossible coding."""
        if len(content) != self.fti.size:
            raise WireError(f"EXT_FTI of {2 + len(content)} bytes; fec_id {self.fec_id} has {self.fti_size}")
        high, low, *rest = self.fti.unpack(content)
        segment, block, parity = self._parsed(rest)
        if not segment or not block or block > self.mask + 1 or (parity and block + parity > self.limit):
            raise WireError(f"EXT_FTI with segments of {segment} bytes in blocks of {block} + {parity}, fec_id {self.fec_id}")
        fti = Fti(self.fec_id, high << 32 | low, segment, block, parity, self.m)
        if fti.partition.blocks > 1 << (self.block_bits - (self.bits if self.id_size == 4 else 0)):
            raise WireError(f"object of {fti.partition.blocks} blocks; their numbers do not fit fec_id {self.fec_id}")
        return fti

    def _fields(self, fti: Fti) -> tuple[int, ...]:
        return fti.segment, fti.block, fti.parity

    def _parsed(self, rest: list[int]) -> tuple[int, int, int]:
        segment, block, parity = rest
        return segment, block, parity


class _NoCode(Scheme):
    """fec_id 0, Compact No-Code: a reserved field before the segment size, no parity."""

    __slots__ = ()

    def _fields(self, fti: Fti) -> tuple[int, ...]:
        return 0, fti.segment, fti.block

    def _parsed(self, rest: list[int]) -> tuple[int, int, int]:
        _reserved, segment, block = rest
        return segment, block, 0


class _GeneralReedSolomon(Scheme):
    """fec_id 2: the element size m and the number of symbols per packet, which is 1 here, before the segment size."""

    __slots__ = ()

    def _fields(self, fti: Fti) -> tuple[int, ...]:
        return fti.m, 1, fti.segment, fti.block, fti.parity

    def _parsed(self, rest: list[int]) -> tuple[int, int, int]:
        _m, group, segment, block, parity = rest
        if group != 1:
            raise WireError(f"EXT_FTI with {group} symbols per packet; only 1 is known")
        return segment, block, parity


class _SmallBlock(Scheme):
    """fec_id 129, Small Block Systematic, instance 0: eight bytes of payload id with the length of the block."""

    __slots__ = ()

    id_size = 8

    def pack_id(self, block: int, symbol: int, block_length: int) -> bytes:
        return _SMALL_BLOCK_ID.pack(block, block_length, symbol)

    def unpack_id(self, data: bytes, at: int) -> tuple[int, int, int]:
        block, block_length, symbol = _SMALL_BLOCK_ID.unpack_from(data, at)
        return block, symbol, block_length

    def _fields(self, fti: Fti) -> tuple[int, ...]:
        return 0, fti.segment, fti.block, fti.parity

    def _parsed(self, rest: list[int]) -> tuple[int, int, int]:
        instance, segment, block, parity = rest
        if instance:
            raise WireError(f"fec_id 129 with instance {instance}; only 0 is known")
        return segment, block, parity


_FIXED: dict[int, Scheme] = {
    0: _NoCode(0, 16, ">HIHHI", 0),
    5: Scheme(5, 8, ">HIHBB", MOST_SYMBOLS[8]),
    129: _SmallBlock(129, 16, ">HIHHHH", MOST_SYMBOLS[8]),
}
_BY_M: dict[int, Scheme] = {
    8: _GeneralReedSolomon(2, 8, ">HIBBHHH", MOST_SYMBOLS[8], 8),
    16: _GeneralReedSolomon(2, 16, ">HIBBHHH", MOST_SYMBOLS[16], 16),
}
FEC_ID_GENERAL: Final = 2
"""The scheme whose payload id depends on m."""
# What NRL NORM assumes before it has seen an FTI.
_M_UNKNOWN = 16
_KEPT = 4096
"""Instances of senders, and objects, whose m is kept."""


def scheme_of(fec_id: int, m: int) -> Scheme | None:
    """Return the scheme of a fec_id, None when it is unknown; `m` is used by fec_id 2 only."""
    return _BY_M.get(m) if fec_id == FEC_ID_GENERAL else _FIXED.get(fec_id)


class Schemes:
    """The schemes at one node, with m of each object whose sender uses fec_id 2.

    Only EXT_FTI has m (RFC 5510 4), so it is kept for each instance of a sender from its first FTI on, and for the objects
    that differ from that. Of an object without an FTI so far, m is taken to be the instance's.
    """

    __slots__ = ("_m", "_others", "_own")

    def __init__(self) -> None:
        self._m: dict[tuple[int, int], int] = {}
        """By sender and instance: m of its first FTI. The one used last is at the end."""
        self._others: dict[tuple[int, int, int], int] = {}
        """By sender, instance and object: m where it is another one. The oldest is first."""
        self._own: dict[int, int] = {}
        """m of the senders whose messages are encoded here: forged ones change nothing of theirs."""

    def of(self, fec_id: int, source_id: int, instance_id: int, object_id: int) -> Scheme | None:
        """Return the scheme of an object of the sender `source_id`; None when the fec_id is unknown."""
        if fec_id != FEC_ID_GENERAL:
            return _FIXED.get(fec_id)
        m = self._own.get(source_id) or self._others.get((source_id, instance_id, object_id))
        return _BY_M[m or self._m.get((source_id, instance_id), _M_UNKNOWN)]

    def read(self, fec_id: int, source_id: int, instance_id: int, object_id: int) -> Scheme:
        """As `of`, for bytes from the network."""
        scheme = self.of(fec_id, source_id, instance_id, object_id)
        if scheme is None:
            raise WireError(f"unknown fec_id {fec_id}")
        return scheme

    def write(self, fec_id: int, source_id: int, instance_id: int, object_id: int) -> Scheme:
        """As `of`, for a message of ours."""
        scheme = self.of(fec_id, source_id, instance_id, object_id)
        if scheme is None:
            raise UsageError(f"fec_id {fec_id}; known are 0, 2, 5 and 129")
        return scheme

    def pack_id(self, item: Item, source_id: int, instance_id: int, m: int) -> bytes:
        """Return the payload id of an item of the sender `source_id`, whose object has this m (0: not known).

        Where the layout that is known of the object does not hold the item, the other is used.
        """
        if m and item.fec_id == FEC_ID_GENERAL:
            scheme = _BY_M[m]
        else:
            scheme = self.write(item.fec_id, source_id, instance_id, item.object_id)
        if item.fec_id == FEC_ID_GENERAL and (item.symbol > scheme.mask or item.block >> (32 - scheme.bits)):
            scheme = _BY_M[24 - scheme.m]
        return scheme.pack_id(item.block, item.symbol, item.block_length)

    def unpack_fti(self, fec_id: int, content: bytes) -> Fti:
        """Return the FTI of a message from the network, from the content of its EXT_FTI."""
        m = content[6] if fec_id == FEC_ID_GENERAL and len(content) > 6 else _M_UNKNOWN
        scheme = scheme_of(fec_id, m)
        if scheme is None:
            raise WireError(f"EXT_FTI of fec_id {fec_id} with elements of {m} bits; known are 0, 2 (m 8 or 16), 5 and 129")
        return scheme.unpack_fti(content)

    def pack_fti(self, fti: Fti, source_id: int) -> tuple[Scheme, bytes]:
        """Return the scheme and the EXT_FTI of a message of the sender `source_id`."""
        scheme = scheme_of(fti.fec_id, fti.m)
        if scheme is None:
            raise UsageError(f"fec_id {fti.fec_id} with elements of {fti.m} bits; known are 0, 2 (m 8 or 16), 5 and 129")
        if fti.fec_id == FEC_ID_GENERAL:
            self._own[source_id] = fti.m
        return scheme, scheme.pack_fti(fti)

    def learn(self, m: int, source_id: int, instance_id: int, object_id: int) -> bool:
        """Keep the m of another sender's object; return whether that changes how its messages are read."""
        if source_id in self._own:
            return False
        before = self.of(FEC_ID_GENERAL, source_id, instance_id, object_id)
        key, place = (source_id, instance_id), (source_id, instance_id, object_id)
        usual = self._m[key] = self._m.pop(key, m)
        self._others.pop(place, None)
        if m != usual:
            self._others[place] = m
        if len(self._m) > _KEPT:
            del self._m[next(iter(self._m))]
        if len(self._others) > _KEPT:
            del self._others[next(iter(self._others))]
        return before is not _BY_M[m]
