"""The partition of an object into FEC blocks and segments (RFC 5052 9.1), and the dense numbering of its symbols."""

from typing import Final

__all__ = ["BLOCK_COUNTS", "Partition"]

BLOCK_COUNTS: Final = {(0, 8): 1 << 16, (2, 8): 1 << 24, (2, 16): 1 << 16, (5, 8): 1 << 24, (129, 8): 1 << 32}
"""Blocks that a payload id can number, by fec_id and m (RFC 5445, RFC 5510). Those of a stream begin again at 0."""


class Partition:
    """The blocks of an object of `size` bytes: the first `large_blocks` of them have `large` symbols, the others `small`."""

    __slots__ = ("_edge", "blocks", "large", "large_blocks", "segment", "segments", "size", "small")

    def __init__(self, size: int, segment: int, block: int) -> None:
        self.size = size
        self.segment = segment
        self.segments = -(-size // segment)
        self.blocks = -(-self.segments // block)
        self.large = self.small = self.large_blocks = 0
        if self.blocks:
            self.large = -(-self.segments // self.blocks)
            self.small = self.segments // self.blocks
            self.large_blocks = self.segments - self.blocks * self.small
        self._edge = self.large_blocks * self.large

    def length(self, block: int) -> int:
        """Return the number of source symbols of `block`."""
        return self.large if block < self.large_blocks else self.small

    def first(self, block: int) -> int:
        """Return the index within the object of the first segment of `block`."""
        if block < self.large_blocks:
            return block * self.large
        return self._edge + (block - self.large_blocks) * self.small

    def payload(self, index: int) -> int:
        """Return the bytes of segment `index`; the last one may be short."""
        return min(self.segment, self.size - index * self.segment)

    def vector(self, block: int) -> int:
        """Return the bytes of a parity symbol of `block`, those of its longest segment."""
        return self.payload(self.first(block))
