"""The scoreboard of a sender: its unacknowledged segments by the SACK ranges that arrived."""

from typing import cast

from sim.tcp.end import TcpEnd
from sim.tcp.scoreboard import Scoreboard, Sent
from tests.sim.tcp.scenes import Scene, star

OCTETS = 100


def board(count: int) -> Scoreboard:
    """Return a scoreboard of so many segments, each sent once."""
    score = Scoreboard(0.0)
    for number in range(count):
        score.turn += 1
        begin = 1 + number * OCTETS
        score.add(Sent(begin, begin + OCTETS, 0, OCTETS, (), number, False, score.turn, 0.1 * number))
    return score


def begin(number: int) -> int:
    """Return the first byte of a segment."""
    return 1 + number * OCTETS


def test_acknowledged_segments_are_counted_once_and_measure_the_round_trip() -> None:
    score = board(3)
    score.select(((begin(1), begin(2)),), begin(0), 0)
    assert score.in_flight == 2
    assert score.acknowledge(begin(0), begin(2), 0, 1.0) == 1
    assert (score.in_flight, score.rtt) == (1, 1.0)


def test_a_segment_is_lost_when_three_that_were_sent_later_have_arrived() -> None:
    score = board(5)
    for last, is_lost in ((2, False), (3, False), (4, True)):
        score.select(((begin(1), begin(last)),), begin(0), 0)
        assert score.find_lost() == is_lost
    lost = score.next_lost()
    assert lost is not None
    assert lost.begin == begin(0)
    assert score.in_flight == 1


def test_acknowledgements_without_ranges_show_no_loss() -> None:
    score = board(6)
    for number in range(5):
        assert score.acknowledge(begin(number), begin(number + 1), 0, 1.0) == 1
        assert not score.find_lost()
    assert score.in_flight == 1


def test_a_lost_retransmission_is_found_too() -> None:
    score = board(8)
    score.select(((begin(1), begin(4)),), begin(0), 0)
    assert score.find_lost()
    lost = score.next_lost()
    assert lost is not None
    score.repeat(lost, 2.0)
    for number in range(8, 11):
        score.turn += 1
        score.add(Sent(begin(number), begin(number + 1), 0, OCTETS, (), number, False, score.turn, 2.0))
    score.select(((begin(1), begin(10)),), begin(0), 0)
    assert not score.find_lost()
    score.select(((begin(1), begin(11)),), begin(0), 0)
    assert score.find_lost()
    assert score.next_lost() is lost


def test_all_that_did_not_arrive_is_lost_after_a_timeout_and_repeated_in_order() -> None:
    score = board(3)
    score.select(((begin(1), begin(2)),), begin(0), 0)
    score.lose_all()
    repeated = []
    while (sent := score.next_lost()) is not None:
        score.repeat(sent, 3.0)
        repeated.append(sent.begin)
    assert repeated == [begin(0), begin(2)]
    assert score.in_flight == 2


def test_an_end_has_a_scoreboard_only_while_something_is_unacknowledged() -> None:
    scene = Scene(star(rate="10Mbit", delay="10ms", loss="5%"))
    scene.listener("r1")
    caller = scene.caller("sender", "r1", [3000] * 20)
    scene.network.run(until=0.05)
    (connection,) = caller.connections
    end = cast(TcpEnd, connection)
    assert end._score is not None
    scene.network.run(until=30)
    assert end._score is None
