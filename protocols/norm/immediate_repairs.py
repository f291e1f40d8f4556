"""Repairs without aggregation: what a NACK asks for is queued for sending when the NACK arrives.

RFC 5740 5.4 has a sender gather requests for (K+1) GRTT first. FJM2 (thesis, 4.3.1) sends a repair for each NACK at once, as
long as the object is cached; a symbol that two receivers request is then sent twice, unless it still waits.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.repair_requests import RequestedRepairs
from protocols.norm.tx_object import TxObject

__all__ = ["ImmediateTxObject"]

MOST_QUEUED: Final = 1 << 16
"""Repairs of one object that wait at the most; receivers request again what is not queued."""
MOST_NAMED: Final = 1024
"""Symbols of one object that are looked at for one NACK, so that it costs little whatever it names; when the first objects of
a NACK have as many, the others are requested again."""
_PART: Final = 1024
"""Bits of a mask that are looked at together, since each operation takes as long as the mask is."""


class ImmediateTxObject(TxObject):
    """An object whose repairs are queued as they are requested; with `repair: immediate-once` each symbol once at a time."""

    __slots__ = ("_due", "_looked_at", "_waiting")

    def __init__(self, object_id: int, content: Content, config: NormConfig, source_id: int) -> None:
        super().__init__(object_id, content, config, source_id)
        self._due: deque[tuple[int, int]] = deque()
        self._looked_at = 0
        # The symbols that are queued; None where one may be queued several times.
        self._waiting: set[tuple[int, int]] | None = set() if config.repair == "immediate-once" else None

    @property
    def repairing(self) -> bool:
        """Whether any repair is to be sent."""
        return bool(self._due) or (self.info_due and self.info_sent)

    @property
    def requested(self) -> bool:
        """Whether an INFO is requested; symbols never wait for activation."""
        return self.info_wanted

    def want(self, requested: RequestedRepairs) -> bool:
        """Queue what is requested of this object and was sent already; return whether anything was queued."""
        key, waiting, before = self.object_id, self._waiting, len(self._due)
        wants_info = self.info_sent and not self.info_wanted and requested.has_info(key)
        self.info_wanted = self.info_wanted or wants_info
        self._looked_at = 0
        for place in islice(self._named(requested), MOST_NAMED):
            if len(self._due) >= MOST_QUEUED:
                break
            self._looked_at += 1
            if waiting is None or place not in waiting:
                self._due.append(place)
                if waiting is not None:
                    waiting.add(place)
        return wants_info or len(self._due) > before

    def is_costly(self) -> bool:
        """See `TxObject`."""
        return self._looked_at >= MOST_NAMED

    def _named(self, requested: RequestedRepairs) -> Iterator[tuple[int, int]]:
        """Yield the symbols that a request names, as far as they have been sent or are parity that may be."""
        key, blocks = self.object_id, min(self.block + 1, self.partition.blocks)
        whole = [(0, blocks - 1)] if requested.has_object(key) else requested.block_ranges(key)
        for first, last in whole:
            for block in range(first, min(last, blocks - 1) + 1):
                yield from self._sent(block, self._all_symbols(block))
        for block, mask in requested.masks(key).items():
            if block < blocks:
                yield from self._sent(block, mask)

    def _sent(self, block: int, mask: int) -> Iterator[tuple[int, int]]:
        """Yield the symbols of a mask that will not be sent anyway."""
        length, parity = self.partition.length(block), self.fti.parity
        mask &= (1 << length + parity) - 1
        if block == self.block:
            mask &= (1 << self.symbol) - 1
        start = 0
        while mask:
            part, mask = mask & (1 << _PART) - 1, mask >> _PART
            while part:
                low = part & -part
                yield block, start + low.bit_length() - 1
                part ^= low
            start += _PART

    def activate(self) -> None:
        """Make the INFO due that was requested."""
        if self.info_wanted:
            self.info_wanted, self.info_due = False, True

    def repair_step(self) -> tuple[int, int] | None:
        """Remove and return the symbol that was queued first."""
        place = self._due.popleft()
        if self._waiting is not None:
            self._waiting.discard(place)
        return place

    def repairs_following(self, block: int, symbol: int, most: int) -> int:
        """Return 0: repairs are sent one by one."""
        del block, symbol, most
        return 0

    def rewind(self) -> None:
        """Begin again with the first symbol; what is to be repaired comes with it."""
        super().rewind()
        self._due.clear()
        if self._waiting is not None:
            self._waiting.clear()
