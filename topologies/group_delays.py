"""Varying delays on the links to a counted group, drawn for all of them at once.

The numbers are those that `topologies.line.Line` draws for one link, bit for bit.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from mypy_extensions import mypyc_attr

from protocols.rng import extend, unit
from protocols.rng_arrays import Words
from topologies.delays import DelayModel
from topologies.draws import BULK, FEW, WINDOW, extend_all, units
from topologies.group_counter import GroupCounter
from topologies.line import CONTENT, CONTROL, DELAY
from topologies.losses import TABLES
from topologies.repeats import count_occurrence

__all__ = ["GroupDelays"]

_ID_BITS: Final = 0xFFFFFFFF


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupDelays(GroupCounter):
    """Draws the propagation delay of each packet on each of N links.

    Args:
        keys: the loss keys of the links.
        model: the distribution of the delay.
    """

    __slots__ = ("_drawn", "_model", "_together")

    def __init__(self, keys: Words, model: DelayModel) -> None:
        super().__init__(keys)
        self._model = model
        # By first identity: the uniform random numbers of the first occurrences of so many identities, by packet and link.
        self._drawn: dict[int, npt.NDArray[np.float64]] = {}
        self._together = max(1, min(WINDOW, BULK // len(keys)))

    def of_all(self, identity: int | None, skip: int = -1) -> Sequence[float]:
        """Return the delay in seconds on each link of the packet arriving now on all but that of `skip`. Counts it."""
        if identity is None:
            self._controls += 1
            if skip >= 0:
                self._behind[skip] += 1
            ordinals = self._ordinals()
            return self._model.sample_all(self._control_units(ordinals), (ordinals - np.uint64(1)).tolist())
        occurrence = count_occurrence(self._seen, self._repeats, identity)
        if skip >= 0:
            self._differ.change(identity, skip, -1)
        place = (identity & _ID_BITS) + occurrence - 1
        delays = self._model.sample_all(self._content_units(identity, occurrence), [place] * len(self._keys))
        if self._differ and self._differ.among(identity, 1):
            for member, extra in self._differ.of(identity):
                delays[member] = self._sample(identity, occurrence + extra, member, DELAY)
        return delays

    def of_one(self, identity: int | None, member: int) -> float:
        """Return the delay in seconds of the packet arriving now on one link only. Counts it."""
        if identity is None:
            self._behind[member] -= 1
        else:
            self._differ.change(identity, member, 1)
        return self._sample(identity, self._number(identity, member), member, DELAY)

    def of_second_copy(self, identity: int | None, member: int) -> float:
        """Return the delay in seconds of a second copy of the packet that a link carried last."""
        return self._sample(identity, self._number(identity, member), member, DELAY + 1)

    def _number(self, identity: int | None, member: int) -> int:
        """Return the occurrence or, of a control packet, the ordinal of the packet that a link carried last."""
        if identity is None:
            return self._controls - self._behind[member]
        return self._occurrence(identity) + dict(self._differ.of(identity)).get(member, 0)

    def _sample(self, identity: int | None, number: int, member: int, draw: int) -> float:
        key = int(self._keys[member])
        if identity is None:
            return self._model.sample(unit(extend(extend(key, CONTROL), number), draw), number - 1)
        u = unit(extend(extend(extend(key, CONTENT), identity), number), draw)
        return self._model.sample(u, (identity & _ID_BITS) + number - 1)

    def _control_units(self, ordinals: Words) -> list[float]:
        """Return the uniform random number of a control packet on each link."""
        if len(self._keys) < FEW:
            keys = self._root(CONTROL).tolist()
            return [unit(extend(key, ordinal), DELAY) for key, ordinal in zip(keys, ordinals.tolist(), strict=True)]
        drawn: list[float] = units(extend_all(self._root(CONTROL), ordinals), DELAY).tolist()
        return drawn

    def _content_units(self, identity: int, occurrence: int) -> list[float]:
        """Return the uniform random number of a packet with an identity on each link."""
        first = identity // self._together * self._together
        drawn: npt.NDArray[np.float64] | None
        if occurrence > 1:
            first, drawn = identity, self._draw(identity, 1, occurrence)
        else:
            drawn = self._drawn.get(first)
        if drawn is None:
            if len(self._drawn) >= TABLES:
                # The one that was drawn first.
                del self._drawn[next(iter(self._drawn))]
            drawn = self._drawn[first] = self._draw(first, self._together, 1)
        row: list[float] = drawn[identity - first].tolist()
        return row

    def _draw(self, first: int, count: int, occurrence: int) -> npt.NDArray[np.float64]:
        """Draw for this occurrence of `count` identities from `first` on."""
        identities = np.uint64(first) + np.arange(count, dtype=np.uint64)[:, np.newaxis]
        return units(extend_all(extend_all(self._root(CONTENT), identities), np.uint64(occurrence)), DELAY)
