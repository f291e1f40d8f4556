"""The parity symbols of an object being sent: encoded when the first of a block is due, or before by another thread."""

from collections.abc import Sequence
from typing import TypeAlias

from protocols.batches import Background, Pending
from protocols.fec import encode
from protocols.norm.messages import Fti

__all__ = ["BLOCKS_AHEAD", "ParityStore"]

BLOCKS_AHEAD = 16
"""Blocks whose parity is encoded by one call of the other thread."""
BLOCKS_KEPT = 2 * BLOCKS_AHEAD
"""Blocks whose parity is kept until it is sent."""

BlockOrder: TypeAlias = tuple[int, Sequence[bytes], Sequence[int]]
"""A block, its source symbols, and the numbers of the parity symbols to encode."""
_Symbols: TypeAlias = dict[int, dict[int, bytes]]
"""Parity symbols by block and number."""


class ParityStore:
    """Parity symbols that were encoded and not sent yet, of a few blocks. Without `background` none is encoded ahead."""

    __slots__ = ("_background", "_coming", "_fti", "_made")

    def __init__(self, fti: Fti, background: Background | None) -> None:
        self._fti = fti
        self._background = background
        self._made: _Symbols = {}
        self._coming: dict[int, Pending] = {}

    @property
    def is_ready(self) -> bool:
        """Whether parity can be encoded ahead now: there is another thread, and it has nothing to do."""
        return self._background is not None and not self._coming

    def __contains__(self, block: int) -> bool:
        return block in self._made or block in self._coming

    def encode_ahead(self, orders: Sequence[BlockOrder]) -> None:
        """Have the other thread encode parity of these blocks."""
        assert self._background is not None
        pending = self._background(_encoded, self._fti, orders)
        self._coming.update((order[0], pending) for order in orders)

    def encode(self, order: BlockOrder) -> None:
        """Encode parity of a block now."""
        self._keep(_encoded(self._fti, [order]))

    def symbol(self, block: int, number: int) -> bytes | None:
        """Remove and return a parity symbol, None if it is to be encoded; wait for it if the other thread is about to."""
        if block in self._coming:
            pending = self._coming[block]
            self._coming = {other: coming for other, coming in self._coming.items() if coming is not pending}
            self._keep(pending.result())
        symbols = self._made.get(block)
        if symbols is None:
            return None
        symbol = symbols.pop(number, None)
        if not symbols:
            del self._made[block]
        return symbol

    def _keep(self, made: _Symbols) -> None:
        for block, symbols in made.items():
            self._made[block] = {**self._made.pop(block, {}), **symbols}
        while len(self._made) > BLOCKS_KEPT:
            del self._made[next(iter(self._made))]


def _encoded(fti: Fti, orders: Sequence[BlockOrder]) -> _Symbols:
    """Return the parity symbols of some blocks; pure, so that any thread can compute them."""
    return {
        block: dict(zip(numbers, encode(fti.block, fti.parity, sources, numbers, fti.m), strict=True))
        for block, sources, numbers in orders
    }
