"""A stream being received (RFC 5740 5.3): segments in a bounded buffer, delivered in order, and what is missing of them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import ClassVar, Final

from protocols.fec import decode
from protocols.norm.maps import NONE
from protocols.norm.messages import Fti
from protocols.norm.partition import BLOCK_COUNTS
from protocols.norm.position import TransmitPosition
from protocols.norm.rx_object import RxObject
from protocols.norm.stream_coding import HEADER, HEADER_SIZE, STREAM_END, buffer_blocks, nearest, stream_fti
from protocols.stream import StreamSink

__all__ = ["RxStream"]

_NO_OFFSET: Final = -1
_FEW: Final = 64
"""Blocks that are kept of which the first is found by looking at all of them."""
_OVERHEAD: Final = 250
"""Bytes that a segment takes in memory besides its content."""


class _Ends:
    """The ends of a stream's sink as those of an object's: a stream writes to its sink by itself."""

    def __init__(self, sink: StreamSink) -> None:
        self._sink = sink

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Do nothing."""

    def read(self, offset: int, n: int) -> bytes:
        """Return nothing."""
        del offset, n
        return b""

    def commit(self, info: bytes) -> None:
        """End the stream."""
        self._sink.commit(info)

    def abort(self) -> None:
        """End a stream that has no end."""
        self._sink.abort()


class RxStream(RxObject):
    """A stream of one sender, from the block `start` on, at most `buffer` bytes of it.

    Blocks are numbered without an end; `number` and `wire_fti` relate them to the wire. `next_new` is the (block, symbol)
    behind the last symbol that was sent, as far as known. Segments are delivered up to `_at`; those behind a gap wait in
    `_symbols`, and so do those of the blocks that may have to be decoded.
    """

    is_stream: ClassVar[bool] = True
    __slots__ = (
        "_at",
        "_block_count",
        "_capacity",
        "_floor",
        "_offset",
        "_skips",
        "_symbols",
        "breaks",
        "delivered",
        "has_ended",
        "is_paused",
        "next_new",
        "stream_sink",
        "wire_fti",
    )

    def __init__(self, object_id: int, fti: Fti, sink: StreamSink, wants_info: bool, start: int, buffer: int) -> None:
        super().__init__(object_id, stream_fti(fti), _Ends(sink), wants_info)
        self.wire_fti = fti
        self.stream_sink = sink
        self.next_new = (start, 0)
        self._block_count = BLOCK_COUNTS[fti.fec_id, fti.m]
        # NRL NORM sends ahead of what it repairs by as much again as the size that it announces.
        room = buffer // ((fti.segment + _OVERHEAD) * fti.block)
        self._capacity = max(2, min(buffer_blocks(2 * fti.object_size, fti), room))
        self._symbols: dict[int, dict[int, bytes | memoryview]] = {}
        self._at = (start, 0)
        # Blocks before it are not repaired any more.
        self._floor = start
        self._offset = _NO_OFFSET
        # Whether bytes are skipped until a message begins, if the sink takes whole messages (`by_message`): a receiver that
        # joins in the middle of a stream may be within one.
        self._skips = start > 0
        self.breaks = 0
        """How often bytes were lost for good, which was not reported to the application yet."""
        self.delivered = 0
        """Bytes given to the application."""
        self.has_ended = False
        """Whether the stream's end is delivered."""
        self.is_paused = False
        """Whether the sink is full."""

    @property
    def end(self) -> tuple[int, int]:
        """The (block, symbol) behind the last symbol that was sent."""
        return self.next_new

    def octets_at(self, position: TransmitPosition | None) -> int:
        """Return the bytes given to the application."""
        del position
        return self.delivered

    @property
    def capacity(self) -> int:
        """Blocks that are kept at the most."""
        return self._capacity

    @property
    def blocks_held(self) -> int:
        """The number of blocks kept."""
        return len(self._symbols)

    def number(self, block: int) -> int:
        """Return the number here of a block that a message of the sender names."""
        return nearest(block, self.next_new[0], self._block_count)

    def wire_number(self, block: int) -> int:
        """Return the number of a block on the wire."""
        return block % self._block_count

    def keep_at_most(self, blocks: int) -> None:
        """Give up what is missing when so many blocks are kept, even if there is room for more."""
        self._capacity = min(self._capacity, blocks)

    # -- what is received ------------------------------------------------------------------------------------------

    def write(self, block: int, symbol: int, payload: bytes | memoryview | None) -> None:
        """Keep a source symbol, with its header."""
        assert payload is not None
        row = self._symbols.get(block)
        if row is None:
            row = self._symbols[block] = {}
        row[symbol] = payload

    def write_all(self, block: int, symbol: int, payloads: Sequence[bytes | memoryview]) -> None:
        """Keep consecutive source symbols of a block."""
        row = self._symbols.get(block)
        if row is None:
            row = self._symbols[block] = {}
        row.update(enumerate(payloads, symbol))

    def _decode(self, block: int, mask: int, parities: dict[int, bytes]) -> None:
        fti = self.fti
        sources = {index: bytes(payload) for index, payload in self._symbols.get(block, {}).items()}
        for index, payload in decode(fti.block, fti.parity, fti.block, sources, parities, fti.m).items():
            self.write(block, index, payload)

    # -- what is delivered -----------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Give up the blocks that the sender does not keep any more, or for which there is no room here."""
        floor = self.next_new[0] - self._capacity + (1 if self.next_new[1] else 0)
        if floor > self._at[0]:
            self.give_up_before(floor)
            if self._at[0] < floor:
                # The application is too slow.
                while (block := self._first_held(self._at[0], floor)) is not None:
                    del self._symbols[block]
                    self._at = (block, 0)
                self._break((floor, 0))

    def give_up_before(self, block: int) -> None:
        """Request nothing more of the blocks before this one, and deliver what there is of them."""
        if block <= self._floor:
            return
        self._floor = block
        symbols, ranges = self.missing_symbols, self.missing_blocks
        if symbols is not None:
            while NONE < symbols.key < block:
                lowest = symbols.key
                symbols.remove(lowest)
                self._forget_parity(lowest)
            if symbols.key == NONE:
                self.missing_symbols = None
        if ranges:
            del ranges[: bisect_left(ranges, block, key=lambda span: span[1])]
            if ranges:
                ranges[0][0] = max(ranges[0][0], block)
            else:
                self.missing_blocks = None
        self.next_new = max(self.next_new, (block, 0))
        self.deliver()

    def deliver(self) -> None:
        """Give the application what follows, until a symbol is missing or the sink is full. Raises OSError when it fails."""
        while not (self.is_paused or self.has_ended):
            pieces: list[bytes | memoryview] = []
            starts: list[int] = []
            self._collect(pieces, starts)
            if pieces:
                data = bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
                self.delivered += len(data)
                self.is_paused = bool(self.stream_sink.write(data, starts))
            elif self.has_ended or not self._skip_gap():
                return

    def _collect(self, pieces: list[bytes | memoryview], starts: list[int]) -> None:
        """Move behind the segments that follow, and list their content and the offsets in it where messages begin."""
        (block, symbol), length, size = self._at, self.fti.block, 0
        row, offset = self._symbols.get(block), self._offset
        while row is not None and symbol in row:
            payload = row[symbol]
            count, start, place = HEADER.unpack_from(payload)
            if count and not self._skips and place != offset & 0xFFFFFFFF and offset != _NO_OFFSET:
                # The sender has overwritten what was to be sent.
                break
            symbol += 1
            if symbol == length:
                del self._symbols[block]
                block, symbol = block + 1, 0
                row = self._symbols.get(block)
            if not count:
                self.has_ended = start == STREAM_END
                if self.has_ended:
                    break
                continue
            offset = place + count
            piece = payload[HEADER_SIZE : HEADER_SIZE + count]
            if self._skips:
                if self.stream_sink.by_message:
                    if not 0 < start <= len(piece):
                        continue
                    piece, start = piece[start - 1 :], 1
                self._skips = False
            if 0 < start <= len(piece):
                starts.append(size + start - 1)
            size += len(piece)
            pieces.append(piece)
        self._at, self._offset = (block, symbol), offset

    def has_delivered(self, block: int, symbol: int) -> bool:
        """Return whether the application was given everything through this symbol."""
        return self._at >= ((block, symbol + 1) if symbol + 1 < self.fti.block else (block + 1, 0))

    def _skip_gap(self) -> bool:
        """Move behind a gap that is not filled any more; return whether anything can be delivered behind it."""
        block, symbol = self._at
        row = self._symbols.get(block)
        if row is not None and symbol in row:
            # Its offset is not the one expected.
            self._break(self._at)
            return True
        if block >= self._floor:
            return False
        if row is not None:
            # The compiled build would make a list of all symbols for `next`.
            for later in range(symbol + 1, self.fti.block):
                if later in row:
                    self._break((block, later))
                    return True
            del self._symbols[block]
        following = self._first_held(block + 1, self._floor)
        self._break((self._floor if following is None else following, 0))
        return True

    def _first_held(self, block: int, end: int) -> int | None:
        """Return the first block from `block` to before `end` of which anything is kept.

        A caller that goes on from there looks at each block once, unless few are kept.
        """
        symbols, most = self._symbols, 2 * self._capacity
        if len(symbols) > _FEW:
            for each in range(block, min(end, block + most)):
                if each in symbols:
                    return each
            if end <= block + most:
                return None
        return min([each for each in symbols if block <= each < end], default=None)

    def _break(self, at: tuple[int, int]) -> None:
        """Go on at another segment, with the next message that begins."""
        self._at, self._offset = at, _NO_OFFSET
        if not self._skips:
            self._skips = True
            self.breaks += 1
            self.stream_sink.skip()
