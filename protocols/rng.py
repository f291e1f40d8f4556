"""Counter-based randomness: the only dice of the project.

A draw is a pure function of (seed, path, n), so adding a node or a draw elsewhere shifts nobody else's numbers, and no
result depends on the order of processing or on PYTHONHASHSEED. The mixing function is the finaliser of SplitMix64
(Steele, Lea, Flood 2014). `topologies.channels` computes the same numbers in bulk with numpy.
"""

from hashlib import blake2b
from typing import Final

from mypy_extensions import mypyc_attr

__all__ = ["GOLDEN", "MASK", "Rng", "extend", "key_of", "mix", "unit"]

MASK: Final = 0xFFFFFFFFFFFFFFFF
GOLDEN: Final = 0x9E3779B97F4A7C15
_TO_UNIT: Final = 2.0**-53


def mix(x: int) -> int:
    """Scramble 64 bits (a bijection)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def extend(key: int, word: int) -> int:
    """The key of `word` below `key`: one step along a path."""
    return mix(((key ^ (word & MASK)) + GOLDEN) & MASK)


def key_of(seed: int, *path: int | str) -> int:
    """The 64-bit key of a path of integers and names, e.g. `key_of(1, "loss", "switch", "r", 7)`."""
    key = mix(((seed & MASK) + GOLDEN) & MASK)
    for part in path:
        if isinstance(part, str):
            part = int.from_bytes(blake2b(part.encode(), digest_size=8).digest(), "little")
        key = extend(key, part)
    return key


def unit(key: int, n: int) -> float:
    """The n-th uniform number in [0, 1) of the stream `key`."""
    return (mix((key + n * GOLDEN) & MASK) >> 11) * _TO_UNIT


@mypyc_attr(allow_interpreted_subclasses=True)
class Rng:
    """One stream of uniform numbers: a key and a counter."""

    __slots__ = ("key", "n")

    def __init__(self, key: int) -> None:
        self.key = key
        self.n = 0

    def uniform(self) -> float:
        """The next number, uniform in [0, 1)."""
        n = self.n = self.n + 1
        return (mix((self.key + n * GOLDEN) & MASK) >> 11) * _TO_UNIT

    def fork(self, *path: int | str) -> "Rng":
        """An independent stream named by `path` below this one; does not advance this one."""
        return Rng(key_of(self.key, *path))
