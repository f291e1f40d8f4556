"""What waits on the way to a peer follows from what was sent and what it reports, whatever the delay and lost reports."""

import pytest

from protocols.tunnel.backlog import WINDOW, Backlog


def reported(sent_rate: int, came_rate: int, steps: int, delay: int = 20, lost_every: int = 0) -> Backlog:
    """Return the backlog after `steps` reports a tenth of a second apart; rates are in datagrams per step."""
    backlog = Backlog()
    for step in range(1, steps + 1):
        backlog.sent += sent_rate
        if not lost_every or step % lost_every:
            backlog.report(max(0, step * came_rate - delay), step / 10)
    return backlog


def test_what_a_delay_keeps_on_the_way_does_not_wait() -> None:
    backlog = reported(40, 40, 30, delay=20)
    assert (backlog.waiting, backlog.seconds, backlog.excess) == (0, 0.0, 0.0)


@pytest.mark.parametrize("lost_every", [0, 3])
def test_what_exceeds_the_rate_of_the_way_waits(lost_every: int) -> None:
    backlog = reported(50, 40, 10, delay=0, lost_every=lost_every)
    assert backlog.waiting == pytest.approx(90, abs=10)
    assert backlog.seconds == pytest.approx(90 / 400, rel=0.15)
    assert backlog.excess == pytest.approx(0.2, abs=0.01)


def test_a_longer_way_counts_as_waiting_for_a_while_only() -> None:
    backlog = reported(40, 40, 10)
    total = 380
    for step in range(11, 11 + round(2 * WINDOW * 10) + 1):
        backlog.sent += 40
        total += 40 if step > 11 else 10
        backlog.report(total, step / 10)
        if step == 12:
            assert backlog.waiting == 30
    assert backlog.waiting == 0


def test_a_peer_that_counts_anew_leaves_nothing_waiting() -> None:
    backlog = reported(40, 40, 10)
    backlog.report(5, 1.1)
    backlog.sent += 40
    backlog.report(45, 1.2)
    assert (backlog.waiting, backlog.excess) == (0, 0.0)
