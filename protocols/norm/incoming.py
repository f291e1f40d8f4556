"""One object on its way in: which part of what was sent is missing, and how it is filled (RFC 5740 5.3)."""

from bisect import bisect_right

from protocols.fec import decode
from protocols.machine import Sink
from protocols.norm.bits import bit_runs
from protocols.norm.messages import Fti
from protocols.norm.pending import Pending

__all__ = ["Incoming"]


class Incoming:
    """Missing symbols of an incomplete object. It holds what is *missing*, so an object without losses costs next to nothing.

    `gaps` maps a block to the mask of its missing source symbols; `absent` lists sorted ranges [first, last] of blocks of
    which nothing came at all. Where the sender stands within the object is known to its owner, the remote sender.
    Content goes to the sink at once; only parity waits here for its block. A failing sink raises OSError out of any method.
    """

    __slots__ = ("_held", "_parity", "_stored", "absent", "fti", "gaps", "info", "object_id", "sink", "wants_info")

    def __init__(self, object_id: int, fti: Fti, sink: Sink, wants_info: bool) -> None:
        self.object_id = object_id
        self.fti = fti
        self.sink = sink
        self.wants_info = wants_info
        self.info: bytes | None = None
        self.gaps: Pending[int] | None = None
        self.absent: list[list[int]] | None = None
        self._parity: Pending[int] | None = None
        self._stored: dict[tuple[int, int], bytes] | None = None
        self._held = 0

    @property
    def clean(self) -> bool:
        """Is nothing missing of what was sent so far?"""
        return not self.gaps and not self.absent and not (self.wants_info and self.info is None)

    def parity_of(self, block: int) -> int:
        """Mask of the parity symbols received of a block, bit 0 for the first."""
        return self._parity.get(block, 0) if self._parity else 0

    def shortage(self, block: int) -> int:
        """How many symbols more the block needs."""
        return self.missing(block).bit_count() - self.parity_of(block).bit_count()

    # -- what is missing ---------------------------------------------------------------------------------------------

    def skip(self, block: int, symbol: int, to_block: int, to_symbol: int) -> None:
        """Everything from (block, symbol) up to, but without, (to_block, to_symbol) was sent and did not come."""
        length = self.fti.partition.length
        if block == to_block:
            self._gap(block, (1 << to_symbol) - (1 << symbol))
            return
        if symbol:
            self._gap(block, (1 << length(block)) - (1 << symbol))
            block += 1
        if block < to_block:
            if self.absent is None:
                self.absent = []
            self.absent.append([block, to_block - 1])
        if to_symbol:
            self._gap(to_block, (1 << to_symbol) - 1)

    def _gap(self, block: int, mask: int) -> None:
        if mask:
            if self.gaps is None:
                self.gaps = Pending()
            self.gaps[block] = self.gaps.get(block, 0) | mask

    def missing(self, block: int) -> int:
        """Mask of the missing source symbols of a block; a block of which nothing came is brought among the gaps first."""
        if self.absent:
            place = bisect_right(self.absent, block, key=lambda span: span[0]) - 1
            if place >= 0 and block <= self.absent[place][1]:
                first, last = self.absent[place]
                rest = [span for span in ([first, block - 1], [block + 1, last]) if span[0] <= span[1]]
                self.absent[place : place + 1] = rest
                self._gap(block, (1 << self.fti.partition.length(block)) - 1)
        return self.gaps.get(block, 0) if self.gaps else 0

    def missing_before(self, block: int, symbol: int) -> bool:
        """Is anything missing that comes before (block, symbol)? The object's information comes before everything."""
        if self.wants_info and self.info is None:
            return True
        if self.absent and self.absent[0][0] < block:
            return True
        if not self.gaps:
            return False
        return min(self.gaps) < block or bool(self.gaps.get(block, 0) & (1 << symbol) - 1)

    # -- what comes in -------------------------------------------------------------------------------------------------

    def write(self, block: int, symbol: int, payload: bytes | None) -> None:
        """Store a source symbol; None is content that is only accounted for."""
        if payload is not None:
            partition = self.fti.partition
            self.sink.write((partition.first(block) + symbol) * partition.segment, payload)

    def fill(self, block: int, symbol: int, payload: bytes | None) -> bool:
        """A source symbol that may be missing; True when it was."""
        bit = 1 << symbol
        mask = self.missing(block)
        if not mask & bit:
            return False
        self.write(block, symbol, payload)
        self._settle(block, mask ^ bit)
        return True

    def fill_parity(self, block: int, number: int, payload: bytes | None, limit: int) -> bool:
        """Parity symbol `number` of a block that was wholly sent; True when it is of use. Holds at most `limit` bytes."""
        gaps, parity = self.gaps, self._parity
        mask = self.missing(block) if self.absent else gaps.get(block, 0) if gaps else 0
        have = parity.get(block, 0) if parity else 0
        if not mask or have >> number & 1 or number >= self.fti.usable:
            return False
        if payload is None:
            if mask.bit_count() > have.bit_count() + 1:
                if parity is None:
                    parity = self._parity = Pending()
                parity[block] = have | 1 << number
                return True
        else:
            if self._held + len(payload) > limit:
                return False
            if self._stored is None:
                self._stored = {}
            self._stored[block, number] = payload
            self._held += len(payload)
        if parity is None:
            parity = self._parity = Pending()
        parity[block] = have | 1 << number
        self._settle(block, mask)
        return True

    @property
    def held(self) -> int:
        """Bytes of parity kept for decoding."""
        return self._held

    def _settle(self, block: int, mask: int) -> None:
        """The block misses `mask` now: done, decodable, or still incomplete."""
        assert self.gaps is not None
        have = self.parity_of(block)
        if mask.bit_count() > have.bit_count():
            self.gaps[block] = mask
            return
        if mask and self._stored is not None:
            self._decode(block, mask, have)
        # An emptied dict keeps its room, which is most of what a receiver weighs.
        del self.gaps[block]
        self.gaps = self.gaps or None
        if have and self._parity is not None:
            del self._parity[block]
            self._parity = self._parity or None
            for number in range(have.bit_length()):
                if self._stored is not None and have >> number & 1:
                    self._held -= len(self._stored.pop((block, number)))

    def _decode(self, block: int, mask: int, have: int) -> None:
        assert self._stored is not None
        fti, partition = self.fti, self.fti.partition
        length, first = partition.length(block), partition.first(block)
        sources: dict[int, bytes] = {}
        for start, end in bit_runs(~mask & (1 << length) - 1):
            size = (end - start) * partition.segment + partition.payload(first + end)
            data = self.sink.read((first + start) * partition.segment, size)
            for index in range(start, end + 1):
                at = (index - start) * partition.segment
                sources[index] = data[at : at + partition.segment]
        parities = {number: self._stored[block, number] for number in range(have.bit_length()) if have >> number & 1}
        for index, payload in decode(fti.block, fti.parity, length, sources, parities).items():
            self.write(block, index, payload[: partition.payload(first + index)])
