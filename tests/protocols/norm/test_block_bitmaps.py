"""Bit masks of symbols by block."""

from hypothesis import given
from hypothesis import strategies as st

from protocols.norm.maps import FEW, MANY, BlockBitmaps

STEPS = st.lists(st.tuples(st.sampled_from(["set", "add", "remove"]), st.integers(0, 3 * FEW), st.integers(1, 7)), max_size=60)


@given(STEPS)
def test_block_bitmaps_behave_like_a_sorted_dict(steps: list[tuple[str, int, int]]) -> None:
    masks, like = BlockBitmaps(), dict[int, int]()
    for what, block, mask in steps:
        if what == "set":
            masks[block] = mask
            like[block] = mask
        elif what == "add":
            masks.add(block, mask)
            like[block] = like.get(block, 0) | mask
        elif block in like:
            masks.remove(block)
            del like[block]
        else:
            try:
                masks.remove(block)
            except KeyError:
                continue
            raise AssertionError("there was no such block")
        assert sorted(masks.items()) == sorted(like.items())
        assert (masks.key, masks.item) == min(like.items(), default=(-1, 0))
        assert len(masks) == len(like)
        assert masks.has_more_than(FEW) == (isinstance(masks.more, dict) and len(like) - 1 > FEW)
        assert (masks.more is None) == (len(like) < 2)
        if isinstance(masks.more, BlockBitmaps):
            assert masks.items() == sorted(like.items())
            assert len(like) <= FEW + 1
        for other in range(3 * FEW + 1):
            assert masks.get(other, -1) == like.get(other, -1)


def test_a_list_that_becomes_too_long_at_either_end_is_a_dictionary() -> None:
    for blocks in (range(2 * FEW), range(2 * FEW, 0, -1), [9, 1, 8, 2, 7, 3, 6, 4, 5]):
        masks, like = BlockBitmaps(), {block: 1 << block for block in blocks}
        for block, mask in like.items():
            masks[block] = mask
        assert isinstance(masks.more, dict)
        assert sorted(masks.items()) == sorted(like.items())
        assert masks.key == min(like)


def test_the_lowest_of_many_blocks_comes_first_too() -> None:
    masks, blocks = BlockBitmaps(), [block * 7 % 1009 for block in range(1009)]
    assert len(blocks) > 2 * MANY
    for block in blocks:
        masks[block] = 1
    for block in blocks[:300]:
        masks.remove(block)
    left = sorted(set(blocks[300:]))
    for block in blocks[:5]:
        masks.add(block, 2)
    for block in sorted([*left, *blocks[:5]]):
        assert masks.key == block
        masks.remove(block)
    assert not masks.items()
