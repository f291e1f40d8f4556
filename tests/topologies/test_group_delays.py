"""Delays of a group of links are those that a line draws for each of them."""

from typing import Any

import pytest

from protocols.rng import extend
from topologies.delays import NormalDelay, ParetoDelay, TraceDelay, UniformDelay
from topologies.draws import FEW, member_keys
from topologies.group_delays import GroupDelays
from topologies.line import Line
from topologies.spec import LinkSpec

KEY = 7
IDENTITIES = [0, 1, None, 1, 255, 256, None, 5 << 40, 1, 0]


@pytest.mark.parametrize("count", [3, FEW + 1, 5000])
@pytest.mark.parametrize(
    "model",
    [
        UniformDelay(least=0.1, most=0.3, order="free"),
        NormalDelay(mean=0.1, sd=0.2, order="free"),
        ParetoDelay(least=0.1, mean=0.3, order="free"),
        TraceDelay(samples=(0.1, 0.2, 0.3, 0.4, 0.5), order="free"),
    ],
)
def test_delays_are_those_of_a_line_for_each_link(count: int, model: Any) -> None:
    delays = GroupDelays(member_keys(KEY, count), model)
    members = [0, 1, count - 1]
    lines = [Line(LinkSpec(jitter=model), extend(KEY, member), member) for member in members]

    def drawn(at: int, identity: int | None) -> float:
        ((_, when),) = lines[at].offer("packet", 100, identity, "data", 0.0)
        return when

    for identity in IDENTITIES:
        found = delays.of_all(identity)
        assert len(found) == count
        assert [found[member] for member in members] == [drawn(at, identity) for at in range(3)]
    # One link carries packets that the others do not, and not those it sent itself.
    for identity in IDENTITIES:
        assert delays.of_one(identity, 1) == drawn(1, identity)
        found = delays.of_all(identity, skip=0)
        assert [found[member] for member in members[1:]] == [drawn(at, identity) for at in (1, 2)]
        found = delays.of_all(identity)
        assert [found[member] for member in members] == [drawn(at, identity) for at in range(3)]


def test_a_second_copy_has_the_delay_of_that_of_a_line() -> None:
    model = UniformDelay(least=0.1, most=0.3, order="free")
    delays = GroupDelays(member_keys(KEY, 4), model)
    line = Line(LinkSpec(jitter=model, duplicate=1.0), extend(KEY, 2), 2)
    for identity in IDENTITIES:
        copies = [when for _, when in line.offer("packet", 100, identity, "data", 0.0)]
        assert [delays.of_all(identity)[2], delays.of_second_copy(identity, 2)] == copies
        copies = [when for _, when in line.offer("packet", 100, identity, "data", 0.0)]
        assert [delays.of_one(identity, 2), delays.of_second_copy(identity, 2)] == copies
