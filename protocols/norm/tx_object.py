"""One object being sent: what is new, and what is to be repaired."""

from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush, nsmallest
from typing import Final

from protocols.batches import Background
from protocols.errors import ConfigError, UsageError
from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.identity import PARITY_SYMBOL, SOURCE_SYMBOL, base_of
from protocols.norm.messages import EMPTY_OBJECT, FLAG_FILE, FLAG_INFO, Fti
from protocols.norm.parity import BLOCKS_AHEAD, ParityStore
from protocols.norm.partition import BLOCK_COUNTS
from protocols.norm.repair_requests import RequestedRepairs
from protocols.range_set import RangeSet

__all__ = ["HeldBlock", "TxObject", "check_content"]

MAX_SIZE: Final = (1 << 48) - 1
"""Bytes of the largest object that EXT_FTI can describe."""
MOST_RANGES: Final = 4096
"""Separate ranges of whole blocks of one object that are kept; receivers request again what is not."""


# A sender of many small objects describes most of them alike, and their encoder keeps the FTI of the one before.
_fti: Final = lru_cache(maxsize=256)(Fti)


def check_content(config: NormConfig, content: Content) -> None:
    """Raise UsageError when NORM can't carry this content with these parameters, ConfigError if one of those is too small."""
    if len(content.info) > config.segment:
        what = f"{'a name' if content.is_file else 'information'} of {len(content.info)} bytes"
        raise ConfigError(f"segment: value {config.segment} is not allowed; at least {len(content.info)} for {what}")
    if config.fti == "preset" and content.source.size != config.preset_size:
        raise UsageError(
            f"size: value {content.source.size} is not allowed; {config.preset_size} with fti preset (preset_size)"
        )
    most = min(BLOCK_COUNTS[config.fec, config.fec_m] * config.block * config.segment, MAX_SIZE)
    if content.source.size > most:
        allowed = f"at most {most} with fec {config.fec}, block {config.block} and segment {config.segment}"
        raise UsageError(f"size: value {content.source.size} is not allowed; {allowed}")


class HeldBlock:
    """The source symbols of one block of one object."""

    __slots__ = ("block", "data", "owner")

    def __init__(self) -> None:
        self.owner: TxObject | None = None
        self.block = -1
        self.data = b""


class TxObject:
    """An object in the sender's window.

    New symbols follow the cursor (`block`, `symbol`); the `auto_parity` symbols of a block come behind its source symbols. What
    receivers request is aggregated in `wanted` and becomes `repairs` when the sender activates it; both map a block to a bit
    mask of encoding symbol ids. Blocks requested as a whole are ranges in `wanted_blocks` and `repair_blocks`, so that a
    request costs the same however many it names; each gets its bit mask when it is sent.
    """

    __slots__ = (
        "_auto",
        "_order",
        "_parity_store",
        "_pledged",
        "_renewed",
        "_spent",
        "_used",
        "active_at",
        "background",
        "bases",
        "began_at",
        "block",
        "block_mask",
        "content",
        "counted",
        "flags",
        "fti",
        "held_block",
        "info_due",
        "info_sent",
        "info_wanted",
        "is_open",
        "object_id",
        "partition",
        "repair_blocks",
        "repairs",
        "symbol",
        "wanted",
        "wanted_blocks",
    )

    def __init__(self, object_id: int, content: Content, config: NormConfig, source_id: int) -> None:
        self.object_id = object_id
        self.content = content
        coding = config.segment, config.block, config.parity, config.fec_m
        described = config.fec, content.source.size, *coding
        self.fti = _fti(*described) if content.carried is None else Fti(*described, content.carried)
        self.partition = self.fti.partition
        # An empty object has no DATA message, so its NORM_INFO announces it, even if that is empty; or all FTI are there.
        self.info_due = bool(content.info) or not content.source.size or config.fti == "info"
        self.flags = (FLAG_FILE if content.is_file else 0) | (FLAG_INFO if self.info_due else 0)
        self.bases = (base_of(SOURCE_SYMBOL, source_id, object_id), base_of(PARITY_SYMBOL, source_id, object_id))
        self.counted = content.source.read(0, 0) is None
        self.block = self.symbol = 0
        self.block_mask = -1
        """The bits of a block's number that are on the wire."""
        self.is_open = False
        """Whether more content may come than there is."""
        self.active_at = self.began_at = 0.0
        self.info_sent = self.info_wanted = False
        self.wanted: dict[int, int] = {}
        self.repairs: dict[int, int] = {}
        self.wanted_blocks = RangeSet()
        self.repair_blocks = RangeSet()
        # Blocks requested as a whole; their entries in `_pledged` and `_spent` do not count any more.
        self._renewed = RangeSet()
        self._auto = config.auto_parity
        # A heap of the blocks in `repairs`.
        self._order: list[int] = []
        # By block: how many parity symbols `wanted` has that were never sent, and how many were sent, or count as such.
        self._pledged: dict[int, int] = {}
        self._spent: dict[int, int] = {}
        # By block, one behind the highest symbol sent as a repair.
        self._used: dict[int, int] = {}
        self._parity_store: ParityStore | None = None
        self.background: Background | None = None
        """Another thread, by which parity is encoded before it is due; None to encode it when it is."""
        self.held_block = HeldBlock()
        """The block that was read last; objects of a sender share it, so that each does not keep one."""

    @property
    def unsent(self) -> bool:
        """Whether anything new is left to be sent."""
        return self.block < self.partition.blocks or (self.info_due and not self.info_sent)

    @property
    def octets_sent(self) -> int:
        """The bytes of content sent for the first time."""
        partition, block = self.partition, self.block
        if block >= partition.blocks:
            return partition.size
        index = partition.first(block) + min(self.symbol, partition.length(block))
        return min(index * partition.segment, partition.size)

    @property
    def following(self) -> int:
        """The number of new source symbols of the cursor's block."""
        return self.partition.length(self.block) - self.symbol

    @property
    def end(self) -> tuple[int, int]:
        """The block and symbol that FLUSH names: the last ones."""
        if not self.partition.blocks:
            return EMPTY_OBJECT[self.fti.fec_id, self.fti.m]
        block = self.partition.blocks - 1
        return block, self.partition.length(block) - 1

    @property
    def repairing(self) -> bool:
        """Whether any repair is to be sent."""
        return bool(self.repairs or self.repair_blocks.firsts) or (self.info_due and self.info_sent)

    @property
    def requested(self) -> bool:
        """Whether anything is requested and not activated yet."""
        return bool(self.wanted or self.wanted_blocks.firsts) or self.info_wanted

    def step(self) -> tuple[int, int]:
        """Return the next new symbol as (block, encoding symbol id), and move the cursor behind it."""
        block, symbol = self.block, self.symbol
        if symbol + 1 < self.partition.length(block) + self._auto:
            self.symbol = symbol + 1
        else:
            self.block, self.symbol = block + 1, 0
        return block, symbol

    def advance(self, count: int) -> None:
        """Move the cursor behind `count` source symbols, no more than its block has."""
        self.symbol += count
        if self.symbol >= self.partition.length(self.block) + self._auto:
            self.block, self.symbol = self.block + 1, 0

    def rewind(self) -> None:
        """Begin again with the first symbol, as if nothing was sent; what is to be repaired comes with it."""
        self.block = self.symbol = 0
        self.info_sent = self.info_wanted = False
        self.info_due = bool(self.flags & FLAG_INFO)
        for known in (self.wanted, self.repairs, self._pledged):
            known.clear()
        for ranges in (self.wanted_blocks, self.repair_blocks):
            ranges.clear()
        self._order.clear()

    def repair_step(self) -> tuple[int, int] | None:
        """Remove and return the lowest symbol to be repaired; None while new symbols are lower."""
        if self.repair_blocks.firsts and (not self._order or self.repair_blocks.lowest <= self._order[0]):
            block = self.repair_blocks.lowest
            self.repair_blocks.remove(block)
            self._add_repairs(block, self._all_symbols(block))
        block = self._order[0]
        mask = self.repairs[block]
        low = mask & -mask
        symbol = low.bit_length() - 1
        if block == self.block and symbol >= self.symbol:
            return None
        if mask == low:
            del self.repairs[block]
            heappop(self._order)
        else:
            self.repairs[block] = mask ^ low
        if symbol >= self._used.get(block, 0):
            self._used[block] = symbol + 1
        return block, symbol

    def repairs_following(self, block: int, symbol: int, most: int) -> int:
        """Remove and count source symbols to be repaired that follow, without a gap, a repair just taken; at most `most`."""
        end = self.symbol if block == self.block else self.partition.length(block)
        wanted = self.repairs.get(block, 0) >> symbol + 1
        count = min((~wanted & wanted + 1).bit_length() - 1, end - symbol - 1, most)
        if count <= 0:
            return 0
        rest = self.repairs[block] & ~((1 << count) - 1 << symbol + 1)
        if rest:
            self.repairs[block] = rest
        else:
            del self.repairs[block]
            heappop(self._order)
        self._used[block] = max(self._used.get(block, 0), symbol + count + 1)
        return count

    def parity_identity(self, block: int, symbol: int) -> int:
        """Return the identity of a parity symbol; those of one block are consecutive."""
        return self.bases[1] | (block * self.fti.parity + symbol - self.partition.length(block)) & 0xFFFFFFFF

    # -- content ---------------------------------------------------------------------------------------------------

    def payload(self, block: int, symbol: int) -> tuple[bytes | None, int, int]:
        """Return (payload, its length, its identity) of a symbol. Raises OSError when the source fails."""
        partition = self.partition
        length = partition.length(block)
        if symbol >= length:
            size = self.fti.parity_size(block)
            identity = self.parity_identity(block, symbol)
            return None if self.counted else self._parity(block, symbol - length), size, identity
        index = partition.first(block) + symbol
        identity = self.bases[0] | index & 0xFFFFFFFF
        size = partition.segment
        if index + 1 == partition.segments:
            size = partition.payload(index)
        if self.counted:
            return None, size, identity
        held = self.held_block
        if held.block != block or held.owner is not self:
            self._hold(block)
        start = symbol * partition.segment
        return held.data[start : start + size], size, identity

    def payloads(self, block: int, symbol: int, count: int) -> tuple[Sequence[bytes | memoryview], int]:
        """Return the payloads of `count` source symbols of a block from `symbol` on, and the identity of the first.

        For content with bytes. Raises OSError when the source fails.
        """
        held = self.held_block
        if held.block != block or held.owner is not self:
            self._hold(block)
            if self._auto and block == self.block:
                self._encode_ahead([block])
        partition, view = self.partition, memoryview(held.data)
        segment = partition.segment
        pieces: list[bytes | memoryview] = [
            view[at : at + segment] for at in range(symbol * segment, (symbol + count) * segment, segment)
        ]
        return pieces, self.bases[0] | partition.first(block) + symbol & 0xFFFFFFFF

    def _hold(self, block: int) -> None:
        """Read one whole block; its symbols are slices of it."""
        held = self.held_block
        held.data, held.block, held.owner = self._read(block), block, self

    def _read(self, block: int) -> bytes:
        """Read one whole block. Raises OSError when the source fails."""
        partition = self.partition
        first = partition.first(block)
        offset = first * partition.segment
        size = min(partition.length(block) * partition.segment, partition.size - offset)
        data = self.content.source.read(offset, size)
        if data is None or len(data) != size:
            raise OSError(f"the source of object {self.object_id} ended early: {size} bytes at {offset} are not there")
        return data

    def _parity(self, block: int, number: int) -> bytes:
        """Return parity symbol `number` of a block; if it is not encoded yet, with all the parity of the block that is due."""
        store = self._parity_store
        if store is None:
            store = self._parity_store = ParityStore(self.fti, self.background)
        symbol = store.symbol(block, number)
        if symbol is None:
            store.encode((block, self._symbols_of(block), sorted({number, *self._parity_due(block, number)})))
            symbol = store.symbol(block, number)
            assert symbol is not None
        if self.repairs:
            self._encode_ahead(nsmallest(2 * BLOCKS_AHEAD, self._order))
        return symbol

    def _symbols_of(self, block: int) -> Sequence[bytes]:
        """Return the source symbols of a block. Raises OSError when the source fails."""
        held = self.held_block
        data = held.data if held.block == block and held.owner is self else self._read(block)
        segment = self.partition.segment
        return [data[at : at + segment] for at in range(0, len(data), segment)]

    def _parity_due(self, block: int, number: int) -> list[int]:
        """Return the numbers of the parity symbols of a block that are requested, and automatic ones from `number` on."""
        due = self.repairs.get(block, 0) >> self.partition.length(block)
        numbers = [j for j in range(due.bit_length()) if due >> j & 1]
        if block == self.block or number < self._auto:
            numbers += [j for j in range(number, self._auto) if not due >> j & 1]
        return numbers

    def _encode_ahead(self, blocks: list[int]) -> None:
        """Have parity that will be due in these blocks encoded by another thread, if there is one that has nothing to do."""
        store = self._parity_store
        if store is None:
            if self.background is None or self.counted:
                return
            store = self._parity_store = ParityStore(self.fti, self.background)
        if not store.is_ready:
            return
        try:
            due = {block: self._parity_due(block, 0 if block == self.block else self._auto) for block in blocks}
            chosen = [block for block in blocks if due[block] and block not in store][:BLOCKS_AHEAD]
            orders = [(block, self._symbols_of(block), due[block]) for block in chosen]
        except OSError:
            # The object fails when it is sent.
            return
        if orders:
            store.encode_ahead(orders)

    # -- repair ----------------------------------------------------------------------------------------------------

    def want(self, requested: RequestedRepairs) -> bool:
        """Add what is requested of this object and was sent already; return whether any of it was not wanted before."""
        key, news = self.object_id, False
        if requested.objects or requested.infos:
            if self.info_sent and not self.info_wanted and requested.has_info(key):
                self.info_wanted = news = True
            if requested.has_object(key):
                news |= self._want_blocks(0, self.block)
        if requested.blocks:
            for first, last in requested.block_ranges(key):
                news |= self._want_blocks(first, min(last, self.block))
        for block, mask in requested.masks(key).items():
            if block <= self.block and block < self.partition.blocks:
                news |= self._want_symbols(block, mask)
        return news

    def is_costly(self) -> bool:
        """Return whether a NACK named so much of this object that no other is to be looked at; here ranges cost nothing."""
        return False

    def symbols_asked(self, requested: RequestedRepairs) -> int:
        """Return how many symbols a request names, at most those that have been sent."""
        key, length = self.object_id, self.partition.length(0)
        blocks = min(self.block + 1, self.partition.blocks)
        if requested.has_object(key):
            return blocks * length
        count = sum([max(min(last, blocks - 1) - first + 1, 0) for first, last in requested.block_ranges(key)]) * length
        count += sum([mask.bit_count() for block, mask in requested.masks(key).items() if block < blocks])
        return min(count, blocks * length)

    def _all_symbols(self, block: int) -> int:
        """Return the bit mask of everything that is sent of a block unrequested."""
        return (1 << self.partition.length(block) + self._auto) - 1

    def _want_blocks(self, first: int, last: int) -> bool:
        """Add whole blocks, none behind the cursor's; return whether any symbol of them was not wanted before."""
        last = min(last, self.partition.blocks - 1)
        if last < first or len(self.wanted_blocks) >= MOST_RANGES:
            return False
        if self.wanted_blocks.covers(first, last) and self._renewed.covers(first, last):
            return False
        self._renewed.add(first, last)
        if len(self._renewed) > MOST_RANGES:
            self._renewed.clear()
            self._spent.clear()
            self._pledged.clear()
        if last < self.block:
            return self._add_blocks(first, last)
        news = self._add(last, self._all_symbols(last))
        return (first < last and self._add_blocks(first, last - 1)) or news

    def _add_blocks(self, first: int, last: int) -> bool:
        """Add whole blocks before the cursor's to `wanted_blocks`; return whether any symbol of them is new there."""
        wanted, news = self.wanted, False
        for low, high in self.wanted_blocks.gaps(first, last):
            news = high - low >= len(wanted) or any(
                self._all_symbols(block) & ~wanted.get(block, 0) for block in range(low, high + 1)
            )
            if news:
                break
        self.wanted_blocks.add(first, last)
        return news

    def _forget_parity(self, block: int) -> None:
        """Drop what is known of the parity requested of a block that was requested as a whole since."""
        if block in self._renewed:
            self._renewed.remove(block)
            self._spent.pop(block, None)
            self._pledged.pop(block, None)

    def _want_symbols(self, block: int, mask: int) -> bool:
        """Add requested symbols as NRL NORM does: parity by count from what was never sent, source symbols by name."""
        length, parity = self.partition.length(block), self.fti.parity
        if self._renewed.firsts:
            self._forget_parity(block)
        if mask & (1 << length) - 1:
            self._spent[block] = parity
            self._pledged[block] = 0
            return self._add(block, mask & (1 << length + parity) - 1)
        count, news = mask.bit_count(), False
        spent, pledged = self._spent.get(block, self._auto), self._pledged.get(block, 0)
        fresh = min(count, parity - spent)
        if fresh > pledged:
            self._pledged[block] = fresh
            news = self._add(block, (1 << length + spent + fresh) - (1 << length + spent + pledged))
        if count > parity - spent:
            news |= self._add(block, mask & (1 << length + parity) - 1)
        return news

    def _add(self, block: int, mask: int) -> bool:
        """Add symbols to `wanted`; return whether any of them is new there."""
        if block == self.block:
            # Symbols behind the cursor will be sent anyway; parity beyond the automatic one will not.
            going = (1 << self.partition.length(block) + self._auto) - (1 << self.symbol)
            mask &= ~going
        wanted = self.wanted.get(block, 0)
        if self.wanted_blocks.firsts and block in self.wanted_blocks:
            wanted |= self._all_symbols(block)
        if not mask & ~wanted:
            return False
        self.wanted[block] = wanted | mask
        return True

    def activate(self) -> None:
        """Make repairs of what was requested."""
        for block, mask in self.wanted.items():
            self._add_repairs(block, mask)
            if self._renewed.firsts:
                self._forget_parity(block)
            pledged = self._pledged.pop(block, 0)
            if pledged:
                self._spent[block] = self._spent.get(block, self._auto) + pledged
        self.wanted.clear()
        if self.wanted_blocks.firsts:
            for first, last in self.wanted_blocks:
                self.repair_blocks.add(first, last)
            self.wanted_blocks.clear()
        if self.background is not None and self.repairs:
            self._encode_ahead(nsmallest(BLOCKS_AHEAD, self._order))
        if self.info_wanted:
            self.info_wanted, self.info_due = False, True

    def forget_block(self, block: int) -> None:
        """Drop what is requested and known of a block that can't be repaired any more."""
        for known in (self.wanted, self._pledged, self._spent, self._used):
            known.pop(block, None)
        for ranges in (self.wanted_blocks, self.repair_blocks, self._renewed):
            if block in ranges:
                ranges.remove(block)
        if self.repairs.pop(block, 0):
            self._order.remove(block)
            heapify(self._order)

    def _add_repairs(self, block: int, mask: int) -> None:
        """Add symbols to `repairs`."""
        if block not in self.repairs:
            heappush(self._order, block)
        self.repairs[block] = self.repairs.get(block, 0) | mask
