"""An object to be sent, with what burst planning needs to know of it."""

from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.tx_object import TxObject

__all__ = ["FastTxObject"]


class FastTxObject(TxObject):
    """An object in the window of a fast sender."""

    __slots__ = ("first", "length", "packet")

    def __init__(self, object_id: int, content: Content, config: NormConfig, source_id: int) -> None:
        super().__init__(object_id, content, config, source_id)
        self.packet = 0
        """Bytes of the packet of a full segment; 0 while unknown."""
        self.length, self.first = self.partition.length(0), 0
        """Source symbols of the cursor's block, and the index within the object of its first."""

    def step(self) -> tuple[int, int]:
        """Return the next new symbol as (block, encoding symbol id), and move the cursor behind it."""
        block, symbol = super().step()
        if self.block != block:
            self.length, self.first = self.partition.length(self.block), self.partition.first(self.block)
        return block, symbol

    def rewind(self) -> None:
        """Begin again with the first symbol."""
        super().rewind()
        self.length, self.first = self.partition.length(0), 0

    def steady(self) -> int:
        """Return how many source symbols follow each other from the cursor on, all in blocks of one length.

        The last of the object is not among them, and at its start there are none: those concern every receiver.
        """
        partition, block, symbol = self.partition, self.block, self.symbol
        if not (block or symbol):
            return 0
        end = block + 1 if self._auto else partition.large_blocks if block < partition.large_blocks else partition.blocks
        return (end - block) * self.length - symbol - (end == partition.blocks)

    def skip(self, count: int) -> None:
        """Move the cursor behind `count` of the `steady` symbols."""
        blocks, self.symbol = divmod(self.symbol + count, self.length + self._auto)
        if blocks:
            self.block = block = self.block + blocks
            self.length, self.first = self.partition.length(block), self.partition.first(block)

    def parity_rows(self) -> list[tuple[int, int, int]] | None:
        """Return the pending repairs as rows (block, first symbol, count) in order, if all are full parity never sent before.

        The blocks have to be finished. None when there is any other repair.
        """
        rows = []
        if self.repair_blocks.firsts:
            return None
        for block in sorted(self.repairs):
            mask, length = self.repairs[block], self.partition.length(block)
            first = (mask & -mask).bit_length() - 1
            row, fresh = mask >> first, max(self._used.get(block, 0), length + self._auto)
            if first < fresh or row & row + 1 or block >= self.block or self.partition.vector(block) < self.partition.segment:
                return None
            rows.append((block, first, row.bit_length()))
        return None if self.info_due else rows

    def repair_steps(self, most: int) -> list[tuple[int, int]] | None:
        """Return the first pending repairs as (block, symbol) in order, at most `most`; None if these are not simple.

        They are if all are full symbols before the cursor.
        """
        partition = self.partition
        steps: list[tuple[int, int]] = []
        if self.repair_blocks.firsts or self.info_due:
            return None
        for block in sorted(self.repairs):
            mask = self.repairs[block]
            if block >= self.block and (block > self.block or mask >> self.symbol):
                return None
            if block + 1 == partition.blocks and partition.payload(partition.segments - 1) < partition.segment:
                # The last symbol is short, and so is perhaps the parity.
                break
            while mask and len(steps) < most:
                steps.append((block, (mask & -mask).bit_length() - 1))
                mask &= mask - 1
        return steps

    def identities(self, steps: list[tuple[int, int]]) -> list[int]:
        """Return the identities of symbols, given as (block, symbol)."""
        first, length, base = self.partition.first, self.partition.length, self.bases[0]
        return [
            base | first(block) + symbol & 0xFFFFFFFF if symbol < length(block) else self.parity_identity(block, symbol)
            for block, symbol in steps
        ]
