"""Counter-based random number generator, the only source of randomness of the project.

A draw is a pure function of (seed, path, n). So further nodes or draws elsewhere do not change the numbers of existing streams,
and results depend neither on the order of processing nor on PYTHONHASHSEED. The mixing function is the finaliser of SplitMix64
(Steele, Lea, Flood 2014). `topologies.draws` computes the same numbers in bulk with numpy.
"""

from hashlib import blake2b
from typing import Final

from mypy_extensions import mypyc_attr

__all__ = ["GOLDEN", "MASK", "Rng", "extend", "key_of", "mix", "unit"]

MASK: Final = 0xFFFFFFFFFFFFFFFF
GOLDEN: Final = 0x9E3779B97F4A7C15
_TO_UNIT: Final = 2.0**-53


def mix(x: int) -> int:
    """Mix 64 bits by a bijection (the finaliser of SplitMix64)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def extend(key: int, word: int) -> int:
    """Return the key of the path that extends the path of `key` by a 64-bit word."""
    # As `mix`, without a call.
    x = ((key ^ (word & MASK)) + GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key_of(seed: int, *path: int | str) -> int:
    """Return the 64-bit key of a seed and a path of integers and names, e.g. `key_of(1, "loss", "switch", "r", 7)`."""
    key = mix(((seed & MASK) + GOLDEN) & MASK)
    for part in path:
        if isinstance(part, str):
            part = int.from_bytes(blake2b(part.encode(), digest_size=8).digest(), "little")
        key = extend(key, part)
    return key


def unit(key: int, n: int) -> float:
    """Return the n-th uniform random number in [0, 1) of the stream with this key."""
    return (mix((key + n * GOLDEN) & MASK) >> 11) * _TO_UNIT


@mypyc_attr(allow_interpreted_subclasses=True)
class Rng:
    """A stream of uniform random numbers: a key and a counter. A subclass may compute its key instead of keeping one."""

    __slots__ = ("_key", "n")

    def __init__(self, key: int | None) -> None:
        self._key = key
        self.n = 0

    @property
    def key(self) -> int:
        """The key of the stream, 64 bits."""
        assert self._key is not None
        return self._key

    def uniform(self) -> float:
        """Return the next random number, uniform in [0, 1)."""
        n = self.n = self.n + 1
        return (mix((self.key + n * GOLDEN) & MASK) >> 11) * _TO_UNIT

    def fork(self, *path: int | str) -> "Rng":
        """Return an independent stream, whose key extends this one's by `path`. Does not advance this stream."""
        return Rng(key_of(self.key, *path))
