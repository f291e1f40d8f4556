"""Losses of the links from members of a group, each of which carries packets of its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.rng import extend
from topologies.channels import Bernoulli, ContentLoss, GilbertElliott, Perfect
from topologies.draws import FEW
from topologies.losses import LinkLoss
from topologies.member_losses import MemberLosses

COUNT = FEW + 16
MEMBERS = st.integers(0, COUNT - 1)
SENT = st.lists(
    st.one_of(
        st.tuples(MEMBERS, st.sampled_from([None, None, 0, 1, 255, 256])),
        st.sets(MEMBERS, min_size=1, max_size=COUNT).map(sorted),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(SENT)
def test_losses_are_those_of_a_link_for_each_member(sent: list[tuple[int, int | None] | list[int]]) -> None:
    together = MemberLosses(7, COUNT, 0.3)
    links = [LinkLoss(extend(7, member), 0.3) for member in range(COUNT)]
    for packet in sent:
        if isinstance(packet, tuple):
            member, identity = packet
            assert together.lost(identity, member) == links[member].lost(identity)
        else:
            places = together.lost_controls(packet)
            assert places == [place for place, member in enumerate(packet) if links[member].lost(None)]


@pytest.mark.parametrize("members", [range(3), range(COUNT)])
def test_the_channel_of_content_loses_no_control_packet(members: range) -> None:
    losses = ContentLoss(p=1.0).members(7, COUNT)
    assert losses is not None
    assert losses.lost_controls(members) == []
    assert not losses.lost(None, 0)
    assert losses.lost(0, 0)


def test_only_independent_channels_have_them() -> None:
    assert Perfect().is_independent
    assert Perfect().members(7, COUNT) is None
    assert Bernoulli(p=0.1).is_independent
    assert Bernoulli(p=0.0).members(7, COUNT) is None
    assert not GilbertElliott(p=0.1, r=0.1).is_independent
