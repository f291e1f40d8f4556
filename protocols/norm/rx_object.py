"""One object being received: which part of what was sent is missing, and how it is filled (RFC 5740 5.3)."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from protocols.fec import decode, most_erasures
from protocols.machine import Sink
from protocols.norm.maps import NONE, BlockBitmaps, bit_runs
from protocols.norm.messages import Data, Fti
from protocols.norm.position import TransmitPosition

__all__ = ["MOST_FRAGMENTS", "RxObject", "fits"]

MOST_FRAGMENTS: Final = 1 << 14
"""Incomplete blocks and ranges of missing blocks of an object, beyond which symbols that make more of them are not taken."""


class RxObject:
    """The missing symbols of an incomplete object. What was received is not recorded, so an object without losses is small.

    `missing_symbols` maps a block to the bit mask of its missing source symbols; `missing_blocks` lists sorted ranges [first,
    last] of blocks of which nothing was received. The position of the sender within the object is part of the `SenderState`.
    Content goes to the sink at once; only parity waits here for its block. A failing sink raises OSError out of any method.
    """

    is_stream: ClassVar[bool] = False
    """Whether more content may come behind its end, so that what is missing of its last block is requested by name."""
    __slots__ = (
        "_kept",
        "fti",
        "held",
        "info",
        "missing_blocks",
        "missing_symbols",
        "object_id",
        "parity",
        "parity_used",
        "sink",
    )

    def __init__(self, object_id: int, fti: Fti, sink: Sink, wants_info: bool) -> None:
        self.object_id = object_id
        self.fti = fti
        self.sink = sink
        self.info: bytes | None = None if wants_info else b""
        """NORM_INFO, empty if the object has none; None while it is missing."""
        self.missing_symbols: BlockBitmaps | None = None
        self.missing_blocks: list[list[int]] | None = None
        self.parity: BlockBitmaps | None = None
        """Block -> bit mask of the parity symbols received, bit 0 for the first; of blocks that are still incomplete."""
        self.parity_used = 0
        """Source symbols that were computed from parity."""
        self.held = 0
        """Bytes of parity kept for decoding, those of whole segments; of content without bytes as many as if it had any."""
        self._kept: dict[tuple[int, int], bytes] | None = None
        """The kept symbols by block and number, where content has bytes."""

    @property
    def end(self) -> tuple[int, int]:
        """The (block, symbol) behind the last symbol that was sent, if objects behind this one have begun."""
        return self.fti.partition.blocks, 0

    def behind(self, block: int, symbol: int) -> tuple[int, int]:
        """Return the (block, symbol) behind a symbol, at most the end of the object."""
        partition = self.fti.partition
        if block >= partition.blocks:
            return partition.blocks, 0
        return (block, symbol + 1) if symbol + 1 < partition.length(block) else (block + 1, 0)

    def takes_info(self, payload: bytes) -> bool:
        """Return whether a NORM_INFO is news: it was awaited, or none was announced and this one is not empty."""
        return self.info is None or (bool(payload) and not self.info)

    @property
    def has_no_gaps(self) -> bool:
        """Whether nothing is missing of what was sent so far."""
        return self.missing_symbols is None and not self.missing_blocks and self.info is not None

    @property
    def is_fragmented(self) -> bool:
        """Whether what is missing has too many parts to be remembered with more."""
        symbols, blocks = self.missing_symbols, self.missing_blocks
        parts = 0 if symbols is None or symbols.more is None else len(symbols.more)
        return parts + (len(blocks) if blocks else 0) >= MOST_FRAGMENTS

    def parity_of(self, block: int) -> int:
        """Return the bit mask of the parity symbols received of a block."""
        parity = self.parity
        return 0 if parity is None else parity.get(block, 0)

    @property
    def symbols_missing(self) -> int:
        """The number of source symbols that were sent and not received."""
        count, first = 0, self.fti.partition.first
        for low, high in self.missing_blocks or ():
            count += first(high + 1) - first(low)
        if self.missing_symbols is not None:
            count += sum([mask.bit_count() for _, mask in self.missing_symbols.items()])
        return count

    def octets_at(self, position: TransmitPosition | None) -> int:
        """Return the bytes received, given that the sender is at `position`; None: the object is complete."""
        partition = self.fti.partition
        if position is None:
            return partition.size
        sent, last = partition.segments, partition.segments - 1
        if position.object_id == self.object_id and position.block < partition.blocks:
            sent = partition.first(position.block) + position.symbol
        octets = (sent - self.symbols_missing) * partition.segment
        has_last = sent > last >= 0 and not self._is_missing(partition.blocks - 1, last)
        return octets - (partition.segment - partition.payload(last)) if has_last else octets

    def _is_missing(self, block: int, index: int) -> bool:
        """Return whether segment `index` of the object is missing, which is in `block`."""
        if any(low <= block <= high for low, high in self.missing_blocks or ()):
            return True
        missing = 0 if self.missing_symbols is None else self.missing_symbols.get(block, 0)
        return bool(missing >> index - self.fti.partition.first(block) & 1)

    # -- what is missing ---------------------------------------------------------------------------------------------

    def abort(self, reason: str) -> str:
        """Abort the sink; return the reason, with the sink's error if it fails."""
        try:
            self.sink.abort()
        except OSError as error:
            return f"{reason}; sink: {error}"
        return reason

    def skip(self, block: int, symbol: int, to_block: int, to_symbol: int) -> None:
        """Record the loss of everything from (block, symbol) up to, but without, (to_block, to_symbol)."""
        if block == to_block:
            if symbol < to_symbol:
                self.lose(block, (1 << to_symbol) - (1 << symbol))
            return
        length = self.fti.partition.length
        if symbol:
            if symbol < length(block):
                self.lose(block, (1 << length(block)) - (1 << symbol))
            block += 1
        if block < to_block:
            if self.missing_blocks is None:
                self.missing_blocks = []
            self.missing_blocks.append([block, to_block - 1])
        if to_symbol:
            self.lose(to_block, (1 << to_symbol) - 1)

    def lose(self, block: int, mask: int) -> None:
        """Record the loss of source symbols of a block, given as a bit mask."""
        missing_symbols = self.missing_symbols
        if missing_symbols is None:
            self.missing_symbols = BlockBitmaps(block, mask)
        else:
            missing_symbols.add(block, mask)

    def missing(self, block: int) -> int:
        """Return the bit mask of the missing source symbols of a block; it moves to `missing_symbols` if it has any."""
        if self.missing_blocks:
            index = bisect_right(self.missing_blocks, block, key=lambda span: span[0]) - 1
            if index >= 0 and block <= self.missing_blocks[index][1]:
                first, last = self.missing_blocks[index]
                if first < last and self.is_fragmented:
                    return 0
                rest = [span for span in ([first, block - 1], [block + 1, last]) if span[0] <= span[1]]
                self.missing_blocks[index : index + 1] = rest
                self.lose(block, (1 << self.fti.partition.length(block)) - 1)
        return 0 if self.missing_symbols is None else self.missing_symbols.get(block, 0)

    def missing_before(self, block: int, symbol: int) -> bool:
        """Return whether anything before (block, symbol) is missing; the NORM_INFO comes before everything."""
        if self.info is None:
            return True
        if self.missing_blocks and self.missing_blocks[0][0] < block:
            return True
        missing_symbols = self.missing_symbols
        if missing_symbols is None:
            return False
        if missing_symbols.key < block:
            return True
        return symbol > 0 and bool(missing_symbols.get(block, 0) & (1 << symbol) - 1)

    # -- what is received ----------------------------------------------------------------------------------------------

    def write(self, block: int, symbol: int, payload: bytes | memoryview | None) -> None:
        """Store a source symbol; `payload` None: content without bytes."""
        if payload is not None:
            partition = self.fti.partition
            self.sink.write((partition.first(block) + symbol) * partition.segment, payload)

    def write_all(self, block: int, symbol: int, payloads: Sequence[bytes | memoryview]) -> None:
        """Store consecutive source symbols of a block at once."""
        partition = self.fti.partition
        self.sink.write((partition.first(block) + symbol) * partition.segment, b"".join(payloads))

    def fill(self, block: int, symbol: int, payload: bytes | memoryview | None) -> bool:
        """Store a source symbol if it is missing; return whether it was."""
        bit = 1 << symbol
        mask = self.missing(block)
        if not mask & bit:
            return False
        self.write(block, symbol, payload)
        mask ^= bit
        have = self.parity_of(block)
        if mask.bit_count() > have.bit_count():
            assert self.missing_symbols is not None
            self.missing_symbols[block] = mask
        elif self.fti.m != 8 and self._takes_too_long(block, mask):
            assert self.missing_symbols is not None
            self.missing_symbols[block] = mask
            self.refuse_parity()
        else:
            self._filled(block, mask)
        return True

    def fill_parity(self, block: int, number: int, payload: bytes | None, limit: int) -> bool:
        """Take parity symbol `number` of a block that was sent completely; return whether it is of use.

        Until there are enough for the block, they are kept: at most `limit` bytes of all blocks.
        """
        missing_symbols, parity = self.missing_symbols, self.parity
        mask = missing_symbols.item if missing_symbols is not None and missing_symbols.key == block else self.missing(block)
        have = 0 if parity is None else parity.get(block, 0)
        if not mask or have >> number & 1 or number >= self.fti.usable:
            return False
        have |= 1 << number
        # A single missing symbol, the usual case, is not counted.
        if mask & mask - 1 and have.bit_count() < mask.bit_count():
            held = self.held + self.fti.segment
            if held > limit:
                if not self._make_room(block):
                    return False
                held, parity = self.held + self.fti.segment, self.parity
            self.held = held
            if parity is None:
                self.parity = BlockBitmaps(block, have)
            else:
                parity[block] = have
            if payload is not None:
                if self._kept is None:
                    self._kept = {}
                self._kept[block, number] = payload
        elif self.fti.m != 8 and self._takes_too_long(block, mask):
            self.refuse_parity()
            return False
        else:
            self._filled(block, mask, None if payload is None else {number: payload})
        return True

    def _make_room(self, block: int) -> bool:
        """Drop the parity of the last block that has some, for a symbol of the first incomplete one; return whether it fits.

        So that block is completed if all its parity fits. If it doesn't, no parity of the object is of use.
        """
        if self.missing_before(block, 0):
            return False
        last = max([key for key, _ in self.parity.items()]) if self.parity is not None else block
        if last == block:
            self.refuse_parity()
            return False
        self._forget_parity(last)
        return True

    def _takes_too_long(self, block: int, mask: int) -> bool:
        """Return whether the missing symbols `mask` of a block, coded with `m` of 16, are too many for one step of decoding."""
        return mask.bit_count() > most_erasures(self.fti.partition.length(block), self.fti.segment, self.fti.m)

    def refuse_parity(self) -> None:
        """Request what is missing by name from now on: parity of this coding is of no use (`Fti.usable`)."""
        # Other objects may have the same FTI.
        self.fti = replace(self.fti)
        object.__setattr__(self.fti, "usable", 0)
        for block, _ in [] if self.parity is None else self.parity.items():
            self._forget_parity(block)

    def _forget_parity(self, block: int) -> None:
        """Drop what is kept of the parity of a block."""
        parity = self.parity
        have = 0 if parity is None else parity.get(block, 0)
        if parity is None or not have:
            return
        parity.remove(block)
        if parity.key == NONE:
            self.parity = None
        self.held -= have.bit_count() * self.fti.segment
        if self._kept is not None:
            for number in _bits(have):
                del self._kept[block, number]

    def _filled(self, block: int, mask: int, last: dict[int, bytes] | None = None) -> None:
        """Complete a block: its kept parity, and the `last` symbol by number, suffice for the missing symbols `mask`."""
        missing_symbols = self.missing_symbols
        assert missing_symbols is not None
        self.parity_used += mask.bit_count()
        if mask and (last or self._kept):
            kept = self._kept or {}
            self._decode(block, mask, {number: kept[block, number] for number in _bits(self.parity_of(block))} | (last or {}))
        # Empty mappings are dropped, because they are most of a receiver's memory.
        more = missing_symbols.more
        if block == missing_symbols.key and not isinstance(more, dict):
            self.missing_symbols = more
        else:
            missing_symbols.remove(block)
        if self.parity is not None:
            self._forget_parity(block)

    def _decode(self, block: int, mask: int, parities: dict[int, bytes]) -> None:
        """Compute the missing symbols `mask` of a block from parity symbols by number."""
        fti, partition = self.fti, self.fti.partition
        length, first = partition.length(block), partition.first(block)
        sources: dict[int, bytes] = {}
        for start, end in bit_runs(~mask & (1 << length) - 1):
            size = (end - start) * partition.segment + partition.payload(first + end)
            data = self.sink.read((first + start) * partition.segment, size)
            for index in range(start, end + 1):
                at = (index - start) * partition.segment
                sources[index] = data[at : at + partition.segment]
        for index, payload in decode(fti.block, fti.parity, length, sources, parities, fti.m).items():
            self.write(block, index, payload[: partition.payload(first + index)])


def _bits(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def fits(message: Data, fti: Fti) -> bool:
    """Return whether a symbol is one of an object with this coding, with the right number of bytes."""
    if message.fti is not None and message.fti is not fti and message.fti != fti:
        return False
    partition, block = fti.partition, message.block
    if block >= partition.blocks:
        return False
    length = partition.length(block)
    if message.symbol < length:
        return message.length == partition.payload(partition.first(block) + message.symbol)
    # NRL NORM does not round the length of parity up to whole symbol elements.
    is_whole = message.length == partition.vector(block) or message.length == fti.parity_size(block)
    return is_whole and message.symbol - length < fti.parity
