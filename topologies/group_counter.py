"""Counts the packets that the N links of a counted group carried: the random numbers of a packet are keyed by these counts."""

from array import array
from typing import Final

import numpy as np
from mypy_extensions import mypyc_attr

from protocols.rng_arrays import Words
from topologies.differences import Differences
from topologies.draws import extend_all
from topologies.repeats import Repeats, count_occurrence

__all__ = ["GroupCounter"]

_ALL: Final = slice(None)


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupCounter:
    """Counts occurrences of identities, and control packets, on links that nearly always carry the same packets.

    Links that carried other packets (a multicast does not return to its sender, a unicast goes to one member) are kept as
    differences to the common counts.
    """

    __slots__ = ("_behind", "_controls", "_differ", "_keys", "_lags", "_repeats", "_roots", "_seen")

    def __init__(self, keys: Words) -> None:
        self._keys = keys
        # Control packets carried by the group, and how many fewer of them each link carried.
        self._controls = 0
        self._behind = array("q", bytes(8 * len(keys)))
        # A view of the same memory for arithmetic.
        self._lags: Words = np.frombuffer(self._behind, np.uint64)
        self._seen: dict[int, int] = {}
        self._repeats = Repeats()
        self._differ = Differences()
        # The keys of all links extended by a word, computed when first needed.
        self._roots: dict[int, Words] = {}

    @property
    def is_uniform(self) -> bool:
        """Whether all links carried the same packets with an identity."""
        return not self._differ

    def count_next(self, identity: int) -> None:
        """Count an occurrence on all links."""
        count_occurrence(self._seen, self._repeats, identity)

    def _root(self, word: int) -> Words:
        """Return the keys of all links extended by a word."""
        root = self._roots.get(word)
        if root is None:
            root = self._roots[word] = extend_all(self._keys, np.uint64(word))
        return root

    def _ordinals(self, part: slice = _ALL) -> Words:
        """Return how many control packets each of some links carried."""
        return np.uint64(self._controls) - self._lags[part]

    def _occurrence(self, identity: int) -> int:
        """Return how often the group as a whole carried an identity."""
        if not self._seen.get(identity >> 8, 0) >> (identity & 255) & 1:
            return 0
        return self._repeats.occurrences(identity)
