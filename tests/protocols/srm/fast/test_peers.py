"""The table of the members of a large group, whose node ids are stored once for all members."""

from protocols.rng import GOLDEN, MASK, mix
from protocols.srm.fast.peers import FEWEST, LAST_BITS, Sample, SharedPeers, Sightings
from protocols.srm.messages import SessionMessage
from protocols.srm.peers import Peers

MANY = FEWEST * 2 // 3


def remembered(node: int, heard_at: float) -> Peers:
    """Return what a node remembers after a session message of each of many others."""
    peers = Peers(node, 2 * MANY)
    for other in range(10, 10 + MANY):
        peers.heard(SessionMessage(other, 1000, (), {}), heard_at)
    return peers


def test_members_taken_over_remember_the_same_though_together_it_is_more_than_is_kept() -> None:
    sightings = Sightings()
    shared = [SharedPeers(remembered(node, heard_at), sightings) for node, heard_at in ((1, 0.1), (2, 0.2))]
    assert len(sightings.nodes) == 2 * MANY > FEWEST
    for each, node, heard_at in zip(shared, (1, 2), (0.1, 0.2), strict=True):
        assert each.echoes(MANY, 1.0) == remembered(node, heard_at).echoes(MANY, 1.0)
    shared[0].heard(SessionMessage(10, 2000, (), {}), 1.0)
    assert len(sightings.nodes) == 2 * MANY + 1


def test_of_sources_every_member_has_the_node_in_its_sample_and_of_others_those_with_zero_bits_at_the_end() -> None:
    sightings, nodes = Sightings(), range(1, 301)
    sample = Sample([SharedPeers(Peers(node, 8), sightings) for node in nodes])
    assert sample.of(77, is_source=True) == bytes(300)
    assert list(sample.of(77, is_source=False)) == [mix(77 ^ (node * GOLDEN & MASK)) & LAST_BITS for node in nodes]
