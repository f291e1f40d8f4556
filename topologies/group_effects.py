"""Damage, duplicates and lost fragments on the links to a counted group, drawn for all of them at once.

The numbers are those that `topologies.line.Line` draws for one link, bit for bit: keyed by the packet's identity and its
occurrence on the link, those of control packets by their ordinal on the link.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from mypy_extensions import mypyc_attr

from protocols.rng import extend, unit
from protocols.rng_arrays import Words
from topologies.draws import BULK, FEW, WINDOW, extend_all, parts_of, units
from topologies.line import CONTENT, CONTROL
from topologies.losses import TABLES, GroupSampler

__all__ = ["GroupEffect"]


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupEffect(GroupSampler):
    """Draws for which of N links a packet is damaged, duplicated or loses a fragment.

    `losers` and `lost` return these links, and count occurrences, as those of a loss sampler do.

    Args:
        keys: the loss keys of the links.
        number: of the draw (`topologies.line`).
        above: whether a link is one of them if its draw is at least `bound`; else if it is below.
    """

    __slots__ = ("_above", "_drawn", "_never", "_number", "_together", "bound")

    def __init__(self, keys: Words, number: int, *, above: bool = False) -> None:
        super().__init__(keys)
        self._number = number
        self._above = above
        self._never = 1.0 if above else 0.0
        self.bound = self._never
        """May be set before each packet. Draws are at least 0 and less than 1."""
        # By first identity, occurrence and bound: the links by the distance of a packet from the first.
        self._drawn: dict[tuple[int, int, float], dict[int, list[int]]] = {}
        self._together = max(1, min(WINDOW, BULK // len(keys)))

    def first_losers(self, identity: int) -> Sequence[int]:
        """See `GroupSampler`."""
        return self._repeat_losers(identity, 1)

    def _repeat_losers(self, identity: int, occurrence: int) -> Sequence[int]:
        if self.bound == self._never:
            return ()
        first = identity // self._together * self._together
        at = (first, occurrence, self.bound)
        drawn = self._drawn.get(at)
        if drawn is None:
            if len(self._drawn) >= TABLES:
                # The one that was drawn first.
                del self._drawn[next(iter(self._drawn))]
            drawn = self._drawn[at] = self._draw(first, occurrence)
        return drawn.get(identity - first, ())

    def _draw(self, first: int, occurrence: int) -> dict[int, list[int]]:
        """Draw for this occurrence of consecutive identities from `first` on."""
        identities = np.uint64(first) + np.arange(self._together, dtype=np.uint64)[:, np.newaxis]
        root = self._root(CONTENT)
        drawn: dict[int, list[int]] = {}
        for part in parts_of(len(root)):
            hit = self._hit(extend_all(extend_all(root[part], identities), np.uint64(occurrence)))
            width = hit.shape[1]
            for at in hit.ravel().nonzero()[0].tolist():
                drawn.setdefault(at // width, []).append(part.start + at % width)
        return drawn

    def _single(self, identity: int, occurrence: int, member: int) -> bool:
        return self._is_hit(extend(extend(extend(int(self._keys[member]), CONTENT), identity), occurrence))

    def _control_losers(self, skip: int) -> Sequence[int]:
        if self.bound == self._never:
            return ()
        if len(self._keys) < FEW:
            ordinals = self._ordinals().tolist()
            return [each for each, ordinal in enumerate(ordinals) if each != skip and self._control_lost(ordinal, each)]
        hit = self._hit(extend_all(self._root(CONTROL), self._ordinals()))
        return [member for member in hit.nonzero()[0].tolist() if member != skip]

    def _control_lost(self, ordinal: int, member: int) -> bool:
        return self._is_hit(extend(extend(int(self._keys[member]), CONTROL), ordinal))

    def _is_hit(self, key: int) -> bool:
        """Return whether the draw of the packet whose random stream has this key is a hit."""
        if self.bound == self._never:
            return False
        drawn = unit(key, self._number)
        return drawn >= self.bound if self._above else drawn < self.bound

    def _hit(self, keys: Words) -> npt.NDArray[np.bool_]:
        """As `_is_hit`, of many packets."""
        drawn = units(keys, self._number)
        return drawn >= self.bound if self._above else drawn < self.bound
