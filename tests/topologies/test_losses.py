"""Keyed Bernoulli losses: single links in Python and groups in numpy agree to the bit, and the statistics are right."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from protocols.rng import extend, key_of
from topologies.channels import Bernoulli, Channel, ContentLoss, Loss, Perfect
from topologies.draws import WINDOW, Threshold, member_keys
from topologies.losses import GroupLoss, LinkLoss

KEY = key_of(1, "loss", "s1", "r")
LOSS: TypeAdapter[Channel] = TypeAdapter(Loss)
GOLDEN_FIRST = [10, 16, 40, 55, 56, 92, 118, 137, 152, 156, 160, 208]
GOLDEN_REPEAT = [18, 19, 39, 43, 60, 64, 97, 103, 117, 224, 245]
GOLDEN_CONTROL = [7, 10, 24, 34, 37, 58, 85, 88, 89, 98]


def links(count: int, p: float) -> list[LinkLoss]:
    """Return the single links of a group."""
    return [LinkLoss(extend(KEY, member), p) for member in range(count)]


def test_keys_of_members_are_those_of_the_pure_function() -> None:
    assert member_keys(KEY, 50).tolist() == [extend(KEY, member) for member in range(50)]


@pytest.mark.parametrize("p", [1e-12, 0.001, 0.01, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_a_group_loses_the_same_packets_as_its_single_links(count: int, p: float) -> None:
    group, single = GroupLoss(member_keys(KEY, count), p), links(count, p)
    for identity in [*range(600), *range(1 << 40, (1 << 40) + 300), *range(100), None, None, 2**64 - 1, 2**64 - 1]:
        assert list(group.losers(identity)) == [m for m, link in enumerate(single) if link.lost(identity)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["all", "but one", "one"]),
        st.one_of(st.none(), st.integers(0, 12), st.integers(2**63, 2**63 + 3)),
        st.integers(0, 29),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(STEPS, st.sampled_from([6, 30]))
def test_links_that_carried_other_packets_have_their_own_counts(steps: list[tuple[str, int | None, int]], count: int) -> None:
    group, single = GroupLoss(member_keys(KEY, count), 0.4), links(count, 0.4)
    for what, identity, member in steps:
        member %= count
        if what == "one":
            assert group.lost(identity, member) == single[member].lost(identity)
            continue
        skip = member if what == "but one" else -1
        right = [m for m, link in enumerate(single) if m != skip and link.lost(identity)]
        assert list(group.losers(identity, skip)) == right


def test_first_losses_depend_neither_on_order_nor_on_other_packets() -> None:
    ordered, shuffled = LinkLoss(KEY, 0.1), LinkLoss(KEY, 0.1)
    right = {identity: ordered.lost(identity) for identity in range(2000)}
    for identity in sorted(range(2000), key=lambda i: extend(7, i)):
        shuffled.lost(None)
        assert shuffled.lost(identity) == right[identity]
        shuffled.lost(identity)


@pytest.mark.parametrize("count", [3, 2100])
def test_repeated_packets_far_apart_are_lost_as_on_single_links(count: int) -> None:
    """Later occurrences of neighbours are drawn together, of more identities than are kept."""
    group, single = GroupLoss(member_keys(KEY, count), 0.1), links(count, 0.1)[:40]
    for identity in [*range(0, 64 * 20, 64), *range(3, 64 * 20, 64)] * 3:
        found = [member for member in group.losers(identity) if member < 40]
        assert found == [member for member, link in enumerate(single) if link.lost(identity)]


def test_a_window_drawn_again_has_the_same_losses() -> None:
    link, group = LinkLoss(KEY, 0.1), GroupLoss(member_keys(KEY, 30), 0.1)
    even = [(link.lost(i), list(group.losers(i))) for i in range(0, 256 * 60, 256)]
    again, other = LinkLoss(KEY, 0.1), GroupLoss(member_keys(KEY, 30), 0.1)
    assert [(again.lost(i), list(other.losers(i))) for i in reversed(range(0, 256 * 60, 256))] == even[::-1]
    assert [link.lost(1 + i) for i in range(0, 256 * 60, 256)] == [again.lost(1 + i) for i in range(0, 256 * 60, 256)]


@pytest.mark.parametrize("p", [0.003, 0.01, 0.2, 0.7])
def test_the_rate_of_first_losses_repeats_and_controls_is_p(p: float) -> None:
    count, packets = 200, 2560
    group = GroupLoss(member_keys(KEY, count), p)
    # Standard error of a share of n independent draws: sqrt(p (1 - p) / n).
    for identities in (range(packets), range(packets), [None] * packets):
        lost = sum(len(group.losers(identity)) for identity in identities)
        assert lost / (count * packets) == pytest.approx(p, abs=4.5 * sqrt(p * (1 - p) / (count * packets)))


def test_losses_are_independent_within_and_across_windows() -> None:
    p, n = 0.2, 200_000
    link = LinkLoss(KEY, p)
    lost = np.array([link.lost(identity) for identity in range(n)])
    for lag in (1, 2, WINDOW):
        both = float(np.mean(lost[:-lag] & lost[lag:]))
        assert both == pytest.approx(p * p, abs=4.5 * sqrt(p * p * (1 - p * p) / n))


def test_losses_of_links_of_a_group_are_independent() -> None:
    p, n = 0.2, 50_000
    a, b = links(2, p)
    both = sum(a.lost(i) & b.lost(i) for i in range(n)) / n
    assert both == pytest.approx(p * p, abs=4.5 * sqrt(p * p * (1 - p * p) / n))


def test_thresholds_are_the_powers_of_the_pass_probability() -> None:
    odds = Threshold(0.01)
    for run in range(WINDOW):
        assert odds.ascending[WINDOW - 1 - run] / 2**64 == pytest.approx(0.99 ** (run + 1), rel=1e-12)


def test_tiny_probabilities_are_not_rounded_to_nothing() -> None:
    assert 2**64 - Threshold(2.0**-60).passing == 16


def test_the_numbers_do_not_change() -> None:
    # These are part of every stored fingerprint. A change here changes all of them.
    link = LinkLoss(KEY, 0.05)
    assert [i for i in range(256) if link.lost(i)] == GOLDEN_FIRST
    assert [i for i in range(256) if link.lost(i)] == GOLDEN_REPEAT
    assert [i for i in range(100) if link.lost(None)] == GOLDEN_CONTROL


def test_channels_are_written_short_or_in_full() -> None:
    assert LOSS.validate_python("1%") == Bernoulli(p=0.01)
    assert LOSS.validate_python(0.5) == Bernoulli(p=0.5)
    assert LOSS.validate_python({"model": "bernoulli", "p": "2%"}) == Bernoulli(p=0.02)
    assert LOSS.validate_python({"model": "perfect"}) == Perfect()


def test_a_channel_without_loss_has_no_sampler() -> None:
    for channel in (Perfect(), Bernoulli(p=0.0)):
        assert channel.link(KEY) is None
        assert channel.group(KEY, 3) is None
    assert Bernoulli(p=0.1).link(KEY) is not None
    assert Bernoulli(p=0.1).group(KEY, 3) is not None


@pytest.mark.parametrize("count", [1, 5, 40])
def test_content_loss_loses_the_same_content_as_bernoulli_and_no_control_packet(count: int) -> None:
    channel, plain = ContentLoss(p=0.2), Bernoulli(p=0.2)
    ours, theirs = channel.group(KEY, count), plain.group(KEY, count)
    assert ours is not None
    assert theirs is not None
    single = channel.link(extend(KEY, 0))
    assert single is not None
    for identity in [*range(300), *range(100)]:
        losers = list(theirs.losers(identity))
        assert list(ours.losers(identity)) == losers
        assert single.lost(identity) == (0 in losers)
        assert list(ours.losers(None)) == []
        assert not single.lost(None)
        assert not ours.lost(None, 0)


@pytest.mark.parametrize("links", [1, 2, 30])
def test_the_first_packet_lost_is_the_first_of_those_predicted(links: int) -> None:
    sampler = LinkLoss(7, 0.02) if links == 1 else GroupLoss(member_keys(7, links), 0.02)
    for begin, count in ((0, 256), (3, 40), (700, 60), (255, 1)):
        losses = sampler.predict(begin, count)
        assert sampler.first_lost(begin, count) == (losses[0][0] if losses else count)
        lost_by_all = [place for place, losers in losses if len(losers) == links]
        assert sampler.first_lost_by_all(begin, count) == (lost_by_all[0] if lost_by_all else count)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 6) | st.integers(255, 258), max_size=60), st.sampled_from([1, 6, 30]))
def test_the_next_occurrence_is_predicted_without_being_counted(identities: list[int], count: int) -> None:
    group, counted, single = GroupLoss(member_keys(KEY, count), 0.4), GroupLoss(member_keys(KEY, count), 0.4), links(count, 0.4)
    for place, identity in enumerate(identities):
        losers = list(counted.losers(identity))
        for _ in range(2):
            assert list(group.next_losers(identity)) == losers
            assert [member for member, link in enumerate(single) if link.next_losers(identity)] == losers
        # A packet that was predicted, or one that was not.
        if place % 2:
            group.count_next(identity)
        else:
            group.losers(identity)
        for link in single:
            if place % 2:
                link.count_next(identity)
            else:
                link.lost(identity)


def test_a_group_is_uniform_until_one_link_carries_another_packet() -> None:
    group = GroupLoss(member_keys(KEY, 5), 0.4)
    group.losers(1)
    group.losers(None, 2)
    assert group.is_uniform
    group.lost(1, 3)
    assert not group.is_uniform


def test_predicted_packets_that_a_member_did_not_carry_are_counted_without_it() -> None:
    ahead, carried = (GroupLoss(member_keys(7, 12), 0.3) for _ in range(2))
    for identity in range(20):
        carried.losers(identity, 3)
    assert ahead.predictable(0, 20) == 20
    ahead.count(0, 20)
    ahead.leave_out(0, 20, 3)
    for identity in range(20):
        assert list(ahead.losers(identity)) == list(carried.losers(identity))
    ahead.lost(40, 3)
    assert ahead.predictable(30, 20) == 0
    assert ahead.predictable(41, 20) == 20
