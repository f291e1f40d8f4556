"""Loss events, loss intervals and their average."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.norm.congestion import loss_history
from protocols.norm.congestion.loss_history import INTERVALS, LossHistory, mean_interval

RTT = 0.1
WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)


def textbook_rate(first: float, starts: list[int], sent: int) -> float:
    """Return the loss event rate by the pseudo-code of RFC 5348 5.4 and 5.5, with indices as there.

    `first` is the interval before the first loss event, `starts` the numbers of the packets with which loss events began, of
    `sent` packets.
    """
    i, df, k = [0.0, first], [1.0, 1.0], 1
    for begin, end in pairwise([*starts, sent]):
        i[0] = end - begin
        total1 = sum(i[n] * WEIGHTS[n - 1] * df[n] for n in range(1, k + 1))
        weights1 = sum(WEIGHTS[n - 1] * df[n] for n in range(1, k + 1))
        mean = total1 / weights1
        general = max(2.0 * mean / i[0], 0.5) if i[0] > 2.0 * mean else 1.0
        total0 = i[0] * WEIGHTS[0] + sum(i[n] * WEIGHTS[n] * df[n] * general for n in range(1, k))
        weights0 = WEIGHTS[0] + sum(WEIGHTS[n] * df[n] * general for n in range(1, k))
        rate = min(weights0 / total0, weights1 / total1)
        # A loss event closes the interval; with k = 8 the oldest one is forgotten.
        i, df = [0.0, *i][:9], [1.0, 1.0, *[each * general for each in df[1:]]][:9]
        k = len(i) - 1
    return rate


class Path:
    """A path on which packets arrive at even intervals of `gap` seconds, and some of them do not."""

    def __init__(self, gap: float, is_tolerant: bool = False, first: int = 0) -> None:
        self.history = LossHistory(is_tolerant)
        self.gap, self.sent, self.first = gap, 0, first
        self.events = 0

    def send(self, count: int, *lost: int, marked: tuple[int, ...] = ()) -> None:
        """Send packets; `lost` are counted from the first of these."""
        for index in range(count):
            if index not in lost:
                sequence = (self.first + self.sent) & 0xFFFF
                self.events += self.history.arrived(sequence, self.sent * self.gap, RTT, index in marked)
            self.sent += 1


def test_without_losses_there_is_no_loss_event() -> None:
    path = Path(0.001)
    path.send(1000)
    assert (path.events, path.history.events, path.history.loss) == (0, 0, 0.0)


def test_losses_within_a_round_trip_time_are_one_loss_event() -> None:
    path = Path(0.01)
    path.send(100, 20, 22, 25, 50)
    assert path.events == 2
    # From the first lost packet of one event to that of the next.
    assert path.history.intervals == [30.0]


def test_a_gap_longer_than_a_round_trip_time_is_several_loss_events() -> None:
    path = Path(0.01)
    path.send(100, *range(20, 55))
    assert path.events == 4
    assert path.history.intervals == pytest.approx([10.0, 10.0, 10.0], abs=1.0)


def test_losses_of_a_batch_that_arrives_at_once_are_one_loss_event() -> None:
    path = Path(0.0)
    path.send(100, 20, 40, 60)
    assert path.events == 1


def test_the_sequence_number_wraps() -> None:
    path = Path(0.01, first=65_500)
    path.send(300, 10, 60, 200)
    assert path.events == 3
    assert path.history.intervals == [140.0, 50.0]


def test_the_present_interval_counts_when_it_makes_the_average_longer() -> None:
    assert mean_interval(5.0, [100.0], [1.0]) == 100.0
    # While there are fewer than eight, it takes the place of the oldest one, too.
    assert mean_interval(500.0, [100.0], [1.0]) == 500.0
    assert mean_interval(300.0, [200.0, 100.0], [1.0] * 2) == 250.0
    assert mean_interval(250.0, [10.0] * 8, [1.0] * 8) == 50.0


def test_the_loss_event_rate_is_the_inverse_of_the_average_interval() -> None:
    path = Path(0.02)
    path.send(1010, *range(0, 1010, 50))
    assert path.history.intervals == [50.0] * INTERVALS
    assert path.history.loss == pytest.approx(1 / 50)


def test_older_intervals_count_less_after_a_long_time_without_losses() -> None:
    path = Path(0.02)
    path.send(501, *range(0, 501, 50))
    path.send(1000)
    # By RFC 5348 5.5 the present interval of 1001 counts with weight 1, the others of 50 with half of theirs.
    assert path.history.loss == pytest.approx((1 + 0.5 * 5.0) / (1001 + 0.5 * 5.0 * 50), rel=1e-3)
    discounted = path.history.loss
    path.send(101, 0)
    assert path.history.loss == pytest.approx(discounted, rel=0.01)


def test_a_loss_event_is_withdrawn_when_all_its_packets_were_only_late() -> None:
    path = Path(0.01)
    path.send(200, 50, 150)
    assert path.history.events == 2
    path.history.arrived(150, 2.01, RTT)
    assert path.history.events == 1
    assert path.history.present == 150


def test_without_the_only_loss_event_there_is_no_loss() -> None:
    path = Path(0.01)
    path.send(100, 50, 52)
    path.history.initialise(500.0)
    path.history.arrived(50, 1.01, RTT)
    path.history.arrived(52, 1.02, RTT)
    assert (path.history.events, path.history.loss) == (0, 0.0)


def test_a_loss_event_stays_when_one_of_its_packets_is_late() -> None:
    path = Path(0.01)
    path.send(200, 50, 52)
    path.history.arrived(50, 2.01, RTT)
    assert path.history.events == 1


def test_a_single_lost_packet_is_tolerated_and_two_within_a_round_trip_time_are_not() -> None:
    path = Path(0.01, is_tolerant=True)
    path.send(400, 50, 100, 150, 300)
    assert path.events == 0
    path.send(100, 20, 25)
    assert path.events == 1


def test_a_mark_is_a_loss_event_without_a_loss() -> None:
    path = Path(0.01)
    path.send(100, marked=(20, 22, 60))
    assert path.events == 2
    assert path.history.intervals == [40.0]


@given(st.floats(2.0, 500.0), st.lists(st.sampled_from([1, 2, 5, 20, 50, 300, 2000]), min_size=1, max_size=20))
def test_the_loss_event_rate_is_that_of_the_pseudo_code_of_the_rfc(first: float, gaps: list[int]) -> None:
    history, starts, number = LossHistory(), [], 1
    history.arrived(0, 0.0, RTT)
    for gap in gaps:
        starts.append(number)
        for _ in range(gap):
            # Packets are further apart than a round-trip time, so that each lost one is a loss event.
            number += 1
            if number - 1 != starts[-1]:
                history.arrived(number - 1, 2.0 * RTT * number, RTT)
        history.arrived(number, 2.0 * RTT * number, RTT)
        if len(starts) == 1:
            history.initialise(first)
        assert history.loss == pytest.approx(min(textbook_rate(first, starts, number + 1), 1.0))
        number += 1


def test_an_interval_can_be_set_before_the_first_loss_event() -> None:
    path = Path(0.01)
    path.send(21, 10)
    path.history.initialise(400.0)
    assert path.history.loss == pytest.approx(1 / 400)


@pytest.mark.parametrize("is_tolerant", [False, True])
@pytest.mark.parametrize(("silence", "rtt"), [(3600.0, 0.001), (30.0, 0.02), (10.0, 0.1), (0.5, 0.02)])
def test_of_a_long_gap_only_the_loss_events_that_the_history_keeps_are_recorded(
    silence: float, rtt: float, is_tolerant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_gap() -> LossHistory:
        history = LossHistory(is_tolerant)
        for sequence in (0, 1, 2, 4, 5, 6, 9, 10):
            history.arrived(sequence, 0.1 * sequence, rtt)
        history.arrived(32_000, 1.0 + silence, rtt)
        return history

    short = after_gap()
    monkeypatch.setattr(loss_history, "MOST_EVENTS", 1 << 20)
    whole = after_gap()
    assert short.events <= 3 + 1 + 2 * INTERVALS
    assert short.intervals == pytest.approx(whole.intervals, abs=1)
    assert short.loss == pytest.approx(whole.loss, rel=0.02)
    assert whole.events > short.events or silence == 0.5 or is_tolerant
