"""BlockBitmaps behaves like a dict of bitmaps, except that the lowest block comes first."""

from hypothesis import given
from hypothesis import strategies as st

from protocols.norm.small_maps import NONE, BlockBitmaps


@given(st.lists(st.tuples(st.sampled_from(["add", "set", "del"]), st.integers(0, 4), st.integers(1, 15))))
def test_bitmaps_are_merged_and_the_lowest_block_comes_first(steps: list[tuple[str, int, int]]) -> None:
    masks, like = BlockBitmaps(), dict[int, int]()
    for what, block, mask in steps:
        if what == "add":
            masks.add(block, mask)
            like[block] = like.get(block, 0) | mask
        elif what == "set":
            masks[block] = like[block] = mask
        elif block in like:
            del masks[block]
            del like[block]
        assert dict(masks.items()) == like
        assert (masks.key, masks.item) == (min(like.items()) if like else (NONE, 0))
        for other in range(5):
            assert (other in masks) == (other in like)
            assert masks.get(other, 0) == like.get(other, 0)
