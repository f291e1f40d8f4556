"""Ranks of DSCPs in queues of strict priority."""

from itertools import pairwise

from protocols.fjm2.service_class import DSCP
from topologies.service_classes import DEFAULT_RANK, RANKS, rank_of


def test_higher_priorities_of_fjm2_are_never_behind_lower_ones() -> None:
    ranks = [rank_of(dscp) for dscp in DSCP]
    assert all(low <= high for low, high in pairwise(ranks))
    assert len(set(ranks)) == 7
    assert ranks[4] == DEFAULT_RANK == rank_of(0)


def test_classes_rank_as_their_standards_say() -> None:
    assert rank_of(1) == rank_of(8) < rank_of(0)
    # The drop precedences of an AF class keep their order (RFC 2597).
    for forwarding in ((10, 12, 14), (18, 20, 22), (26, 28, 30), (34, 36, 38)):
        assert len({rank_of(dscp) for dscp in forwarding}) == 1
    order = [8, 0, 10, 18, 26, 34, 40, 46, 48, 56]
    assert [rank_of(dscp) for dscp in order] == list(range(RANKS))
    assert {rank_of(dscp) for dscp in range(64)} == set(range(RANKS))
