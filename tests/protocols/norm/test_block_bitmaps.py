"""Masks of blocks are a dict to whoever uses them, but that the lowest block comes first."""

from hypothesis import given
from hypothesis import strategies as st

from protocols.norm.block_bitmaps import BlockBitmaps
from protocols.norm.small_dict import NONE


@given(st.lists(st.tuples(st.sampled_from(["add", "set", "del"]), st.integers(0, 4), st.integers(1, 15))))
def test_masks_are_added_to_and_the_lowest_block_comes_first(steps: list[tuple[str, int, int]]) -> None:
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


def test_the_lowest_of_many_blocks_comes_first_too() -> None:
    masks, blocks = BlockBitmaps(), [block * 7 % 1009 for block in range(1009)]
    for block in blocks:
        masks[block] = 1
    for block in blocks[:300]:
        del masks[block]
    left = sorted(set(blocks[300:]))
    for block in blocks[:5]:
        masks.add(block, 2)
    for block in sorted([*left, *blocks[:5]]):
        assert masks.key == block
        del masks[block]
    assert not masks.items()
