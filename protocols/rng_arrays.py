"""`protocols.rng.mix` of many numbers at once, with numpy."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Words", "mix_all"]

Words: TypeAlias = npt.NDArray[np.uint64]

_M1: Final = np.uint64(0xBF58476D1CE4E5B9)
_M2: Final = np.uint64(0x94D049BB133111EB)
_S27: Final = np.uint64(27)
_S30: Final = np.uint64(30)
_S31: Final = np.uint64(31)


def mix_all(x: Words) -> Words:
    """Mix each number of an array, in place, and return the array."""
    x ^= x >> _S30
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    x ^= x >> _S31
    return x
