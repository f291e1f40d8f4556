"""A stream being sent (RFC 5740 5.1): the bytes an application writes, cut into segments and kept in a bounded buffer."""

from bisect import bisect_left
from collections.abc import Sequence
from math import inf

from protocols.errors import UsageError
from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.messages import FLAG_STREAM
from protocols.norm.partition import BLOCK_COUNTS
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.stream_coding import HEADER, STREAM_END, buffer_blocks, nearest, stream_fti
from protocols.norm.tx_object import TxObject
from protocols.stream import StreamSettings

__all__ = ["TxStream", "check_stream"]


class _Buffer:
    """The source of a stream as `TxObject` sees it: as large as the buffer, and never read."""

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, offset: int, n: int) -> bytes:
        """Return nothing."""
        del offset, n
        return b""


def check_stream(settings: StreamSettings, config: NormConfig) -> None:
    """Raise UsageError for a stream that NORM can't send with these parameters."""
    if len(settings.info) > config.segment:
        raise UsageError(f"information of {len(settings.info)} bytes; at most one segment ({config.segment})")
    if settings.buffer >= 1 << 48:
        raise UsageError(f"a buffer of {settings.buffer} bytes; EXT_FTI carries 48 bits")


class TxStream(TxObject):
    """A stream in the sender's window.

    Blocks are numbered without an end here; `block_mask` makes the number on the wire. Of `_capacity` blocks the first is
    `low`. Bytes wait in `_rest` until they fill a segment or are flushed; then they are a symbol of the block `_last`. New
    symbols follow the cursor, as in any object; a block has parity when it is full.
    """

    __slots__ = (
        "_capacity",
        "_flush_point",
        "_last",
        "_offset",
        "_push",
        "_rest",
        "_rest_start",
        "_sent_at",
        "_symbols",
        "_unsent_gone",
        "is_closing",
        "is_waiting",
        "low",
    )

    def __init__(self, object_id: int, settings: StreamSettings, config: NormConfig, source_id: int) -> None:
        unit = config.segment * config.block
        size = max(2, settings.buffer // unit) * unit
        super().__init__(object_id, Content(_Buffer(size), settings.info, is_file=False), config, source_id)
        self.flags |= FLAG_STREAM
        self.partition = stream_fti(self.fti).partition
        self.block_mask = BLOCK_COUNTS[config.fec, config.fec_m] - 1
        self._capacity = buffer_blocks(size, self.fti)
        self._push = settings.push
        self._symbols: dict[int, list[bytes]] = {0: []}
        self._sent_at: dict[int, float] = {}
        self._last = self.low = 0
        self._rest = bytearray()
        self._rest_start = 0
        self._offset = 0
        # Bytes that were dropped before they were sent.
        self._unsent_gone = 0
        self._flush_point = (-1, 0)
        self.is_open = True
        self.is_closing = False
        """Whether the stream is to be ended as soon as there is room."""
        self.is_waiting = False
        """Whether the application waits for room."""

    # -- the application -------------------------------------------------------------------------------------------

    def write(self, data: bytes, starts: Sequence[int], now: float, rest: float) -> int:
        """Take bytes while there is room; return how many. A block has to rest for `rest` seconds before it makes room."""
        size, segment, taken, mark = len(data), self.partition.segment, 0, 0
        symbols, full = self._symbols[self._last], self.partition.large
        while taken < size:
            if len(symbols) >= full:
                if not self._begin_block(now, rest):
                    self.is_waiting = True
                    break
                symbols = self._symbols[self._last]
            room = segment - len(self._rest)
            end = taken + room if taken + room < size else size
            mark = bisect_left(starts, taken, mark)
            start = starts[mark] - taken + 1 if mark < len(starts) and starts[mark] < end else 0
            if end - taken == segment:
                symbols.append(HEADER.pack(segment, start, self._offset & 0xFFFFFFFF) + data[taken:end])
                self._offset += segment
            else:
                if start and not self._rest_start:
                    self._rest_start = start + len(self._rest)
                self._rest += data[taken:end]
                if len(self._rest) == segment:
                    self._seal()
            taken = end
        return taken

    def flush(self) -> None:
        """Make a segment of the bytes that wait."""
        if self._rest:
            self._seal()

    def mark_flush(self) -> None:
        """Have CMD(FLUSH) sent when everything written so far is; of a stream without any segment there is none to be named."""
        if self.written_end < (0, 0):
            return
        count = len(self._symbols[self._last])
        self._flush_point = (self._last, count) if count < self.partition.large else (self._last + 1, 0)

    @property
    def written_end(self) -> tuple[int, int]:
        """The block and the symbol that were written last; (0, -1) if nothing was. Bytes that wait are not among them."""
        count = len(self._symbols[self._last])
        return (self._last, count - 1) if count else (self._last - 1, self.partition.large - 1) if self._last else (0, -1)

    @property
    def wants_flush(self) -> bool:
        """Whether CMD(FLUSH) is to be sent when nothing else is: nothing was sent behind the point to be flushed."""
        return (self.block, self.symbol) <= self._flush_point

    def close(self, now: float, rest: float) -> bool:
        """End the stream behind its last byte; return False while there is no room for the segment that marks the end."""
        self.flush()
        self.is_closing = True
        if len(self._symbols[self._last]) >= self.partition.large and not self._begin_block(now, rest):
            return False
        self._symbols[self._last].append(HEADER.pack(0, STREAM_END, self._offset & 0xFFFFFFFF))
        self.is_open = self.is_closing = False
        self.mark_flush()
        return True

    def _seal(self) -> None:
        """Make a symbol of the last block of the bytes that wait, for which it has room."""
        header = HEADER.pack(len(self._rest), self._rest_start, self._offset & 0xFFFFFFFF)
        self._symbols[self._last].append(header + self._rest)
        self._offset += len(self._rest)
        self._rest.clear()
        self._rest_start = 0

    # -- the buffer ------------------------------------------------------------------------------------------------

    def _begin_block(self, now: float, rest: float) -> bool:
        """Begin another block, in the place of the oldest if need be; return False while that can't be dropped."""
        if len(self._symbols) >= self._capacity:
            if not self._push and self.vacant_at(rest) > now:
                return False
            self._drop_oldest()
        self._last += 1
        self._symbols[self._last] = []
        return True

    def vacant_at(self, rest: float) -> float:
        """Return when the oldest block may be dropped: all of it was sent, and not requested for `rest` seconds."""
        low = self.low
        if len(self._symbols) < self._capacity:
            return 0.0
        is_pending = low in self.wanted or low in self.repairs or low in self.wanted_blocks or low in self.repair_blocks
        return inf if low >= self.block or is_pending else self._sent_at.get(low, 0.0) + rest

    def _drop_oldest(self) -> None:
        low = self.low
        self.forget_block(low)
        symbols = self._symbols.pop(low)
        self._sent_at.pop(low, None)
        self.low = low + 1
        if self.block <= low:
            self._unsent_gone += _content(symbols[self.symbol :])
            self.block, self.symbol = low + 1, 0

    @property
    def held(self) -> int:
        """The number of blocks in the buffer."""
        return len(self._symbols)

    @property
    def capacity(self) -> int:
        """The blocks that the buffer has room for."""
        return self._capacity

    # -- what a sender asks of any object --------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Whether anything new is left to be sent."""
        symbols = self._symbols.get(self.block, ())
        is_parity = bool(self._auto) and self.symbol >= self.partition.large
        return len(symbols) > self.symbol or is_parity or (self.info_due and not self.info_sent)

    @property
    def octets_sent(self) -> int:
        """The bytes of content sent for the first time."""
        waiting = [symbols[self.symbol if block == self.block else 0 :] for block, symbols in self._symbols.items()]
        unsent = sum([_content(row) for block, row in zip(self._symbols, waiting, strict=True) if block >= self.block])
        return self._offset - unsent - self._unsent_gone

    @property
    def following(self) -> int:
        """The number of new source symbols of the cursor's block."""
        return len(self._symbols[self.block]) - self.symbol

    @property
    def end(self) -> tuple[int, int]:
        """The block, as numbered on the wire, and the symbol that were sent last; the first ones if nothing was."""
        block, symbol = self.block, self.symbol
        if not symbol and block > self.low:
            block, symbol = block - 1, self.partition.large
        return block & self.block_mask, max(min(symbol, self.partition.large) - 1, 0)

    def payload(self, block: int, symbol: int) -> tuple[bytes | None, int, int]:
        """Return (payload, its length, its identity) of a symbol."""
        length = self.partition.large
        self._sent_at[block] = self.active_at
        if symbol >= length:
            parity = self._parity(block, symbol - length)
            return parity, len(parity), self.parity_identity(block & self.block_mask, symbol)
        content = self._symbols[block][symbol]
        return content, len(content), self._identity(block, symbol)

    def payloads(self, block: int, symbol: int, count: int) -> tuple[Sequence[bytes | memoryview], int]:
        """Return the payloads of `count` source symbols of a block from `symbol` on, and the identity of the first."""
        self._sent_at[block] = self.active_at
        return self._symbols[block][symbol : symbol + count], self._identity(block, symbol)

    def _identity(self, block: int, symbol: int) -> int:
        return self.bases[0] | (block & self.block_mask) * self.partition.large + symbol & 0xFFFFFFFF

    def _symbols_of(self, block: int) -> Sequence[bytes]:
        return self._symbols[block]

    # -- repair ----------------------------------------------------------------------------------------------------

    def number(self, block: int) -> int:
        """Return the number here of a block that a request names."""
        return nearest(block, self.block, self.block_mask + 1)

    def is_refused(self, requested: RequestedRepairs) -> bool:
        """Return whether a block is requested that was dropped."""
        key = self.object_id
        return any(block < self.low for block in requested.masks(key)) or any(
            first < self.low for first, _ in requested.block_ranges(key)
        )

    def symbols_asked(self, requested: RequestedRepairs) -> int:
        """Return how many symbols a request names, at most those of the buffer."""
        return min(super().symbols_asked(requested), (self.block - self.low + 1) * self.partition.large)

    def _want_blocks(self, first: int, last: int) -> bool:
        return super()._want_blocks(max(first, self.low), last)

    def _want_symbols(self, block: int, mask: int) -> bool:
        symbols = self._symbols.get(block)
        if symbols is None:
            return False
        if len(symbols) < self.partition.large:
            # It has no parity yet.
            mask &= (1 << len(symbols)) - 1
        return bool(mask) and super()._want_symbols(block, mask)


def _content(symbols: Sequence[bytes]) -> int:
    """Return the bytes of content in some symbols, each of which begins with a header."""
    return sum([len(symbol) - HEADER.size for symbol in symbols])
