"""What a member remembers of the others: distances from echoes, whom to echo, the size of the group, within its limit."""

import pytest

from protocols.srm.messages import Echo, Position, SessionMessage
from protocols.srm.peers import Peers

CLOCK = 1 << 32


def session(node: int, clock: float = 0.0, echoes: dict[int, Echo] | None = None, source: bool = False) -> SessionMessage:
    """Return a session message of a node whose clock is at `clock` seconds."""
    positions: tuple[Position, ...] = ((node, 0, 0, 1),) if source else ()
    return SessionMessage(node, round(clock * 1e6) % CLOCK, positions, echoes or {})


def crowd(members: int, most: int) -> Peers:
    """Return what node 1 remembers after a session message of each of so many other members."""
    peers = Peers(1, most)
    for node in range(2, 2 + members):
        peers.heard(session(node), 0.0)
    return peers


@pytest.mark.parametrize("offset", [0.0, 1000.0, -0.05])
def test_the_distance_is_half_the_round_trip_time_whatever_the_other_clock_shows(offset: float) -> None:
    """Both paths take 30 ms; node 2 holds the echo for 0.4 s. With the last offset the clocks wrap on the way."""
    near, far = Peers(1, 10), Peers(2, 10)
    sent = CLOCK * 1e-6 + offset
    far.heard(session(1, sent), 7.0)
    echoes = far.echoes(10, 7.4)
    near.heard(session(2, 7.4, echoes), sent + 0.46)
    assert near.distance(2) == pytest.approx(0.03, abs=2e-6)
    assert far.distance(1) is None


def test_estimates_are_averaged_and_impossible_round_trip_times_counted() -> None:
    peers = Peers(1, 10)
    for distance in (0.01, 0.02):
        peers.heard(session(2, 0.0, {1: (0, 0)}), 2 * distance)
    assert peers.distance(2) == pytest.approx(0.0125)
    peers.heard(session(2, 0.0, {1: (9_000_000, 0)}), 1.0)
    peers.heard(session(2, 0.0, {1: (0, 9_000_000)}), 1.0)
    assert peers.rejected == 2
    assert peers.distance(2) == pytest.approx(0.0125)
    assert peers.farthest() == pytest.approx(0.0125)


def test_sources_and_recent_requesters_are_echoed_first_and_the_others_in_turn() -> None:
    peers = crowd(20, 64)
    peers.heard(session(30, source=True), 0.0)
    peers.requested(15)
    turns = [list(peers.echoes(6, 1.0)) for _ in range(5)]
    assert all(turn[:2] == [30, 15] for turn in turns)
    assert sorted(node for turn in turns for node in turn[2:]) == sorted([*range(2, 15), *range(16, 22), turns[4][-1]])
    assert len(peers.echoes(64, 1.0)) == 21


def test_an_echo_older_than_the_clock_can_say_is_left_out() -> None:
    assert not crowd(1, 8).echoes(8, 5000.0)


def test_a_small_group_is_counted_exactly() -> None:
    assert crowd(50, 64).count() == 51
    assert crowd(0, 64).count() == 1


def test_of_a_large_group_a_sample_is_remembered_from_which_its_size_is_estimated() -> None:
    """The sample has 32 to 64 members: a standard error of 1 / sqrt(48) = 14 % of each estimate."""
    estimates = []
    for own in range(100, 120):
        peers = Peers(own, 64)
        for node in range(1000, 6000):
            peers.heard(session(node), 0.0)
            assert len(peers) <= 64
        estimates.append(peers.count())
    assert sum(estimates) / len(estimates) == pytest.approx(5000, rel=4 * 0.14 / 20**0.5)
    assert all(1500 < estimate < 12_000 for estimate in estimates)


def test_members_remember_different_parts_of_a_large_group() -> None:
    parts = []
    for own in (1, 2):
        peers = Peers(own, 64)
        for node in range(1000, 3000):
            peers.heard(session(node), 0.0)
        parts.append(list(peers.echoes(64, 0.0)))
    assert len(set(parts[0]) & set(parts[1])) < 20


def test_sources_and_requesters_of_a_large_group_are_remembered_whatever_the_sample() -> None:
    peers = Peers(1, 64)
    wanted = [1004, 1005, 1006]
    for node in wanted[1:]:
        peers.requested(node)
    peers.heard(session(1004, source=True), 0.0)
    for node in range(1000, 4000):
        if node != 1004:
            peers.heard(session(node), 0.0)
    assert list(peers.echoes(3, 0.0)) == [1004, 1006, 1005]
    assert peers.sources() == 1


def test_members_that_all_say_they_are_sources_fill_no_more_than_the_limit() -> None:
    peers = Peers(1, 16)
    for node in range(2, 500):
        peers.heard(session(node, source=True), node * 0.1)
        assert len(peers) <= 16


def test_members_not_heard_for_long_are_forgotten() -> None:
    peers = crowd(20, 64)
    peers.heard(session(5), 10.0)
    peers.forget_before(9.0)
    assert (len(peers), peers.count()) == (1, 2)
