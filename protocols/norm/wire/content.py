"""NORM_DATA and NORM_INFO on the wire (RFC 5740 4.2.1, 4.2.2), optimised because nearly all packets are of these kinds.

What stays the same from one packet of an object to the next is remembered, keyed by its bytes, so that a packet costs one
look-up, one unpack and one slice. Messages therefore share their Origin and Fti, and receivers compare those by identity.
"""

from struct import Struct

from protocols.errors import UsageError, WireError
from protocols.norm.identity import PARITY_SYMBOL, SOURCE_SYMBOL, base_of, info_identity, symbol_identity
from protocols.norm.messages import Data, Extension, Fti, Info, Origin
from protocols.norm.wire.extensions import pack_extensions, take, unpack_extensions
from protocols.norm.wire.frame import VERSION, pack_origin, unpack_origin
from protocols.norm.wire.schemes import HET_FTI, Scheme, Schemes

__all__ = ["TYPE_DATA", "TYPE_INFO", "ContentWire"]

TYPE_INFO, TYPE_DATA = 1, 2

_FLOWS_KEPT = 1024
_ORIGINS_KEPT = 4096
_LOW_32 = 0xFFFFFFFF
_SMALL_BLOCK = 129
_READ_WORD = Struct(">2xH12xI")
_READ_SMALL_BLOCK = Struct(">2xH12xIHH")
_READ_INFO = Struct(">2xH8xBBH")
_WRITE = Struct(">BBH8sBBH")


class _Flow:
    """The header fields common to the packets of one object, and the numbering of their block."""

    __slots__ = (
        "block",
        "extensions",
        "first",
        "flags",
        "fti",
        "length",
        "object_id",
        "origin",
        "parity_base",
        "parity_first",
        "scheme",
        "source_base",
    )

    def __init__(self, origin: Origin, data: bytes, scheme: Scheme, fti: Fti | None, others: tuple[Extension, ...]) -> None:
        self.origin = origin
        self.flags = data[12]
        self.object_id = data[14] << 8 | data[15]
        self.scheme = scheme
        self.fti = fti
        self.extensions = others
        self.source_base = base_of(SOURCE_SYMBOL, origin.source_id, self.object_id)
        self.parity_base = base_of(PARITY_SYMBOL, origin.source_id, self.object_id)
        self.length = self.first = self.parity_first = 0
        self.block = -1
        if fti is not None:
            self.enter(fti, 0)

    def enter(self, fti: Fti, block: int) -> None:
        """Prepare the numbers of symbols of `block` (as `identity.symbol_identity` counts them)."""
        self.block = block
        self.length = fti.partition.length(block)
        self.first = fti.partition.first(block)
        self.parity_first = block * fti.parity - self.length


class ContentWire:
    """Reads and writes DATA and INFO; caches the flows of senders and the extensions written last."""

    def __init__(self, schemes: Schemes) -> None:
        self._schemes = schemes
        self._flows: dict[bytes, _Flow] = {}
        self._origins: dict[bytes, Origin] = {}
        self._extended: dict[tuple[int, bytes], tuple[Fti | None, tuple[Extension, ...]]] = {}
        self._origin: Origin | None = None
        self._origin_bytes = b""
        self._fti: Fti | None = None
        self._scheme = schemes.write(_SMALL_BLOCK, 0)
        self._fti_source = -1
        self._fti_bytes = b""

    def origin(self, data: bytes) -> Origin:
        """Return the Origin of a sender message; equal ones are the same object."""
        key = data[4:12]
        origin = self._origins.get(key)
        if origin is None:
            if len(self._origins) >= _ORIGINS_KEPT:
                self._origins.clear()
            origin = self._origins[key] = unpack_origin(key)
        return origin

    def read_data(self, data: bytes, end: int) -> Data:
        """Return the DATA in `data`, whose header of at least 20 bytes ends at `end`."""
        small = data[13] == _SMALL_BLOCK
        start = 24 if small else 20
        flow = self._flows.get(data[4:16] + data[start:end]) or self._flow(data, start, end)
        if small:
            sequence, block, block_length, symbol = _READ_SMALL_BLOCK.unpack_from(data)
        else:
            sequence, word = _READ_WORD.unpack_from(data)
            block, symbol, block_length = word >> flow.scheme.bits, word & flow.scheme.mask, 0
        fti = flow.fti
        if fti is None:
            identity = symbol_identity(flow.origin.source_id, flow.object_id, block, symbol, None)
        else:
            if block != flow.block:
                flow.enter(fti, block)
            length = flow.length
            if symbol < length:
                identity = flow.source_base | (flow.first + symbol & _LOW_32)
            else:
                identity = flow.parity_base | (flow.parity_first + symbol & _LOW_32)
            if not small:
                block_length = length
        payload = data[end:]
        return Data(
            flow.origin,
            sequence,
            flow.flags,
            flow.scheme.fec_id,
            flow.object_id,
            block,
            symbol,
            block_length,
            fti,
            payload,
            len(payload),
            identity,
            flow.extensions,
        )

    def _flow(self, data: bytes, start: int, end: int) -> _Flow:
        if end < start:
            raise WireError(f"header of {end} bytes; DATA with fec_id {data[13]} has {start}")
        fti, others = self._extensions(data, start, end)
        origin = self.origin(data)
        flow = _Flow(origin, data, self._schemes.read(data[13], origin.source_id), fti, others)
        if len(self._flows) >= _FLOWS_KEPT:
            self._flows.clear()
        self._flows[data[4:16] + data[start:end]] = flow
        return flow

    def _extensions(self, data: bytes, start: int, end: int) -> tuple[Fti | None, tuple[Extension, ...]]:
        """Return FTI and other extensions of a header; equal ones are the same objects. Keeps m of fec_id 2."""
        fec_id = data[13]
        key = fec_id, data[start:end]
        known = self._extended.get(key)
        if known is None:
            if len(self._extended) >= _FLOWS_KEPT:
                self._extended.clear()
            known = self._extended[key] = self._unpack(data, fec_id, start, end)
        if fec_id == 2 and known[0] is not None and self._schemes.learn(known[0].m, int.from_bytes(data[4:8])):
            self._flows.clear()
        return known

    def _unpack(self, data: bytes, fec_id: int, start: int, end: int) -> tuple[Fti | None, tuple[Extension, ...]]:
        content, others = take(unpack_extensions(data, start, end), HET_FTI)
        return (None if content is None else self._schemes.unpack_fti(fec_id, content)), others

    def read_info(self, data: bytes, end: int) -> Info:
        """Return the INFO in `data`, whose header of at least 16 bytes ends at `end`."""
        sequence, flags, fec_id, object_id = _READ_INFO.unpack_from(data)
        origin = self.origin(data)
        self._schemes.read(fec_id, origin.source_id)
        fti, others = self._extensions(data, 16, end)
        identity = info_identity(origin.source_id, object_id)
        return Info(origin, sequence, flags, fec_id, object_id, fti, data[end:], identity, others)

    def write_data(self, message: Data) -> bytes:
        """Return a DATA as bytes. Raises UsageError for content without bytes."""
        payload = message.payload
        if payload is None:
            raise UsageError("this content is only accounted for, so it cannot travel as bytes")
        scheme, extensions = self._coding(message)
        symbol = scheme.pack_id(message.block, message.symbol, message.block_length)
        return self._head(TYPE_DATA, message, 16 + len(symbol) + len(extensions)) + symbol + extensions + payload

    def write_info(self, message: Info) -> bytes:
        """Return an INFO as bytes."""
        extensions = self._coding(message)[1]
        return self._head(TYPE_INFO, message, 16 + len(extensions)) + extensions + message.payload

    def _head(self, type: int, message: Data | Info, end: int) -> bytes:
        if message.origin is not self._origin:
            self._origin_bytes = pack_origin(message.origin)
            self._origin = message.origin
        return _WRITE.pack(
            VERSION << 4 | type,
            end >> 2,
            message.sequence,
            self._origin_bytes,
            message.flags,
            message.fec_id,
            message.object_id,
        )

    def _coding(self, message: Data | Info) -> tuple[Scheme, bytes]:
        """Return the scheme of a message and its extensions; most have the FTI of the message before and no others."""
        fti = message.fti
        if fti is None:
            return self._schemes.write(message.fec_id, message.origin.source_id), pack_extensions(message.extensions)
        if fti is not self._fti or message.origin.source_id != self._fti_source:
            self._scheme, self._fti_bytes = self._schemes.pack_fti(fti, message.origin.source_id)
            self._fti, self._fti_source = fti, message.origin.source_id
        if fti.fec_id != message.fec_id:
            raise UsageError(f"FTI of fec_id {fti.fec_id} in a message of fec_id {message.fec_id}")
        extensions = message.extensions
        return self._scheme, self._fti_bytes + pack_extensions(extensions) if extensions else self._fti_bytes
