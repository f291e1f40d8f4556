"""Random numbers of many keys at once."""

import numpy as np
import pytest

from protocols.rng import MASK, mix
from protocols.rng_arrays import mix_all

# The first outputs of SplitMix64 seeded with 1234567, by its reference implementation (Vigna 2015).
SEED, STEP = 1234567, 0x9E3779B97F4A7C15
OUTPUTS = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]


def test_many_numbers_are_mixed_as_splitmix64_mixes_them() -> None:
    states = np.array([SEED + n * STEP & MASK for n in range(1, 6)], np.uint64)
    assert mix_all(states).tolist() == OUTPUTS


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_any_number_of_numbers_is_mixed_as_each_alone(count: int) -> None:
    numbers = [n * n * STEP & MASK for n in range(count)]
    assert mix_all(np.array(numbers, np.uint64)).tolist() == [mix(n) for n in numbers]
