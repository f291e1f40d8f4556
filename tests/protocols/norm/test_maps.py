"""The small mapping of incomplete objects behaves like a dict."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.contract.content import CheckedSink
from protocols.norm.maps import SmallDict
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
