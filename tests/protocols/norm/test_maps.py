"""The small mapping of incomplete objects behaves like a dict, and the lowest bits of masks are found."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.contract.content import CheckedSink
from protocols.norm.maps import SmallDict, lowest, without_lowest
from protocols.norm.messages import Fti
from protocols.norm.rx_object import RxObject

ITEMS = [None, *(RxObject(number, Fti(5, 1000, 100, 4, 2), CheckedSink(1000), False) for number in range(2))]
STEPS = st.lists(st.tuples(st.sampled_from(["set", "del", "pop"]), st.integers(0, 4), st.sampled_from(ITEMS)))


@given(STEPS)
def test_a_small_dict_behaves_like_a_dict(steps: list[tuple[str, int, RxObject | None]]) -> None:
    pending, like = SmallDict[RxObject | None](), dict[int, RxObject | None]()
    for what, key, item in steps:
        if what == "set":
            pending[key] = like[key] = item
        elif key in like and what == "del":
            del pending[key], like[key]
        elif key in like:
            assert pending.pop(key) is like.pop(key)
        assert list(pending.items()) == list(like.items())
        assert list(pending) == list(like)
        assert list(pending.values()) == list(like.values())
        assert len(pending) == len(like)
        assert bool(pending) == bool(like)
        for other in range(5):
            assert (other in pending) == (other in like)
            assert pending.get(other) is like.get(other)
            try:
                found = pending[other]
            except KeyError:
                assert other not in like
            else:
                assert found is like[other]


@given(st.integers(0, 2**300 - 1), st.integers(0, 320))
def test_the_lowest_bits_of_a_mask_are_those_that_are_met_first(mask: int, count: int) -> None:
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    assert lowest(mask, count) == sum(1 << bit for bit in bits[:count])
    assert without_lowest(mask, count) == sum(1 << bit for bit in bits[count:])
