"""NORM_DATA and NORM_INFO on the wire (RFC 5740 4.2.1, 4.2.2), optimised because nearly all packets are of these kinds.

What stays the same from one packet of an object to the next is remembered, keyed by its bytes, so that a packet costs one
look-up, one unpack and one slice. Messages therefore share their Origin and Fti, and receivers compare those by identity.
"""

from struct import Struct

from protocols.errors import UsageError, WireError
from protocols.norm.identity import PARITY_SYMBOL, SOURCE_SYMBOL, base_of, info_identity, symbol_identity
from protocols.norm.messages import FLAG_STREAM, Data, DataRun, Extension, Fti, Info, Origin
from protocols.norm.stream_coding import HEADER_SIZE
from protocols.norm.wire.extensions import pack_extensions, take, unpack_extensions
from protocols.norm.wire.frame import VERSION, pack_origin, unpack_origin
from protocols.norm.wire.schemes import FEC_ID_GENERAL, HET_FTI, Scheme, Schemes

__all__ = ["TYPE_DATA", "TYPE_INFO", "ContentWire"]

TYPE_INFO, TYPE_DATA = 1, 2

_FLOWS_KEPT = 1024
_ORIGINS_KEPT = 4096
_LOW_32 = 0xFFFFFFFF
_SMALL_BLOCK = 129
_FIRST_BYTE = VERSION << 4 | TYPE_DATA
_LONGEST_HEADER = 40
"""Bytes of the header of DATA with the longest payload id and EXT_FTI."""
_SHORTEST_RUN = 2
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
        if self.flags & FLAG_STREAM:
            self.length, self.first = fti.block, block * fti.block
        else:
            self.length, self.first = fti.partition.length(block), fti.partition.first(block)
        self.parity_first = block * fti.parity - self.length


def _step(end: int, after_id: int) -> int:
    """Return the difference of two consecutive headers of `end` bytes, taken as integers; the payload id ends at `after_id`.

    The last byte of the sequence number is that at offset 3, and the last of the payload id belongs to the symbol.
    """
    return (1 << 8 * (end - 4)) + (1 << 8 * (end - after_id))


def _following(data: bytes, begin: int, segment: int, end: int, after_id: int, most: int) -> list[memoryview]:
    """Return the payloads of the message at offset `begin` and of those whose headers continue its own, at most `most`."""
    view, expected, step = memoryview(data), int.from_bytes(data[begin : begin + end]), _step(end, after_id)
    symbols = []
    for at in range(begin, min(len(data), begin + most * segment), segment):
        if data[at : at + end] != expected.to_bytes(end):
            break
        symbols.append(view[at + end : at + segment])
        expected += step
    return symbols


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
        self._scheme = schemes.write(_SMALL_BLOCK, 0, 0, 0)
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
        if end < start:
            raise WireError(f"header of {end} bytes; DATA with fec_id {data[13]} has {start}")
        flow = self._flows.get(data[4:16] + data[start:end]) or self._flow(data, start, end)
        if small:
            sequence, block, block_length, symbol = _READ_SMALL_BLOCK.unpack_from(data)
        else:
            sequence, word = _READ_WORD.unpack_from(data)
            block, symbol, block_length = word >> flow.scheme.bits, word & flow.scheme.mask, 0
        fti = flow.fti
        if fti is None:
            identity = symbol_identity(flow.origin.source_id, flow.object_id, block, symbol, None, flow.scheme.m)
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

    def read_run(self, data: bytes, begin: int, segment: int) -> DataRun | None:
        """Return the DATA messages from offset `begin` on that follow each other in a block; None for fewer than two.

        None, too, when no such message of the object was read before. `data` consists of messages of `segment` bytes, the
        last of which may be shorter.
        """
        if data[begin] != _FIRST_BYTE or segment < _LONGEST_HEADER:
            return None
        end = data[begin + 1] << 2
        after_id = 24 if data[begin + 13] == _SMALL_BLOCK else 20
        flow = self._flows.get(data[begin + 4 : begin + 16] + data[begin + after_id : begin + end])
        if flow is None or flow.fti is None or end < after_id:
            return None
        fti, partition = flow.fti, flow.fti.partition
        block, symbol, block_length = flow.scheme.unpack_id(data, begin + 16)
        if flow.flags & FLAG_STREAM:
            length, index = fti.block, block * fti.block + symbol
            if symbol >= length or not HEADER_SIZE <= segment - end <= fti.segment + HEADER_SIZE:
                return None
            symbols = _following(data, begin, segment, end, after_id, length - symbol)
            if len(symbols[-1]) < HEADER_SIZE:
                symbols.pop()
        else:
            length, index = partition.length(block), partition.first(block) + symbol
            if segment - end != fti.segment or block >= partition.blocks or symbol >= length:
                return None
            symbols = _following(data, begin, segment, end, after_id, length - symbol)
            if len(symbols[-1]) != partition.payload(index + len(symbols) - 1):
                symbols.pop()
        if len(symbols) < _SHORTEST_RUN:
            return None
        sequence, identity = data[begin + 2] << 8 | data[begin + 3], flow.source_base | (index & _LOW_32)
        at = flow.object_id, block, symbol, block_length or length
        return DataRun(flow.origin, sequence, flow.flags, *at, fti, symbols, identity, flow.extensions)

    def _flow(self, data: bytes, start: int, end: int) -> _Flow:
        fti, others = self._extensions(data, start, end)
        origin = self.origin(data)
        object_id = data[14] << 8 | data[15]
        scheme = self._schemes.read(data[13], origin.source_id, origin.instance_id, object_id)
        flow = _Flow(origin, data, scheme, fti, others)
        if len(self._flows) >= _FLOWS_KEPT:
            self._flows.clear()
        self._flows[data[4:16] + data[start:end]] = flow
        return flow

    def _extensions(self, data: bytes, start: int, end: int) -> tuple[Fti | None, tuple[Extension, ...]]:
        """Return FTI and other extensions of a header; equal ones are the same objects. Keeps m of an object with fec_id 2."""
        fec_id = data[13]
        key = fec_id, data[start:end]
        known = self._extended.get(key)
        if known is None:
            if len(self._extended) >= _FLOWS_KEPT:
                self._extended.clear()
            known = self._extended[key] = self._unpack(data, fec_id, start, end)
        if fec_id == FEC_ID_GENERAL and known[0] is not None:
            place = int.from_bytes(data[4:8]), data[8] << 8 | data[9], data[14] << 8 | data[15]
            if self._schemes.learn(known[0].m, *place):
                self._flows.clear()
        return known

    def _unpack(self, data: bytes, fec_id: int, start: int, end: int) -> tuple[Fti | None, tuple[Extension, ...]]:
        content, others = take(unpack_extensions(data, start, end), HET_FTI)
        return (None if content is None else self._schemes.unpack_fti(fec_id, content)), others

    def read_info(self, data: bytes, end: int) -> Info:
        """Return the INFO in `data`, whose header of at least 16 bytes ends at `end`."""
        sequence, flags, fec_id, object_id = _READ_INFO.unpack_from(data)
        origin = self.origin(data)
        self._schemes.read(fec_id, origin.source_id, origin.instance_id, object_id)
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

    def write_run(self, run: DataRun) -> list[bytes]:
        """Return each message of a run as bytes; sequence numbers don't go back to 0 within it."""
        first = next(run.messages())
        scheme, extensions = self._coding(first)
        symbol = scheme.pack_id(run.block, run.symbol, run.block_length)
        end = 16 + len(symbol) + len(extensions)
        head = int.from_bytes(self._head(TYPE_DATA, first, end) + symbol + extensions)
        step = _step(end, 16 + len(symbol))
        return [(head + number * step).to_bytes(end) + payload for number, payload in enumerate(run.symbols)]

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
            origin = message.origin
            scheme = self._schemes.write(message.fec_id, origin.source_id, origin.instance_id, message.object_id)
            return scheme, pack_extensions(message.extensions)
        if fti is not self._fti or message.origin.source_id != self._fti_source:
            self._scheme, self._fti_bytes = self._schemes.pack_fti(fti, message.origin.source_id)
            self._fti, self._fti_source = fti, message.origin.source_id
        if fti.fec_id != message.fec_id:
            raise UsageError(f"FTI of fec_id {fti.fec_id} in a message of fec_id {message.fec_id}")
        extensions = message.extensions
        return self._scheme, self._fti_bytes + pack_extensions(extensions) if extensions else self._fti_bytes
