"""Segments that arrived before earlier ones, and the empty reassembly that ends without them share."""

from typing import cast

import pytest

from sim.tcp.end import TcpEnd
from sim.tcp.reassembly import NOTHING_EARLY
from sim.tcp.segment import Segment
from tests.sim.tcp.scenes import Scene, star

LINES = [3000] * 50


def segment(number: int) -> Segment:
    """Return a segment of 100 bytes."""
    return Segment((0, 0, 0, 0), 0, number, number + 100, 100, (), 0, 1, 0, (), 0, 0)


def test_ends_that_share_an_empty_reassembly_do_not_change_each_other() -> None:
    one, other = NOTHING_EARLY.own(), NOTHING_EARLY.own()
    assert one.own() is one
    early = segment(201)
    assert one.put(early)
    assert one.ranges() == ((201, 301),)
    assert not other.early
    assert not NOTHING_EARLY.early
    assert other.ranges() == NOTHING_EARLY.ranges() == ()
    assert one.take(201) == [early]


@pytest.mark.parametrize("loss", ["0%", "5%"])
def test_only_an_end_that_lost_segments_has_a_reassembly_of_its_own(loss: str) -> None:
    scene = Scene(star(2, rate="10Mbit", delay="10ms", loss=loss))
    scene.listener("sender", LINES)
    callers = [scene.caller(name, "sender") for name in ("r1", "r2")]
    scene.network.run(until=60)
    ends = [cast(TcpEnd, end) for caller in callers for end in caller.connections]
    assert [len(heard) for caller in callers for heard in caller.heard.values()] == [len(LINES)] * 2
    assert [end._reassembly is NOTHING_EARLY for end in ends] == [loss == "0%"] * 2
    assert not NOTHING_EARLY.early
    assert not NOTHING_EARLY.ranges()
