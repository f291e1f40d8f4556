"""Keep-alive timers: each expires once, in the order of times and ends, whenever it was added."""

from sim.network import Network
from sim.tcp.idle_timers import Expiring, IdleTimers
from tests.sim.tcp.scenes import star


class End(Expiring):
    """An end that notes when it was called, and adds its next timers then."""

    def __init__(self, timers: IdleTimers, called: list[int], order: int, *later: float) -> None:
        self.timers, self.called, self.order, self.later = timers, called, order, list(later)
        self.expired: list[float] = []

    def begin(self, when: float) -> None:
        """Let the timer expire at a time."""
        self.idle_at = when
        self.timers.add(self)

    def expire_idle(self, now: float) -> None:
        """Note the time."""
        self.expired.append(now)
        self.called.append(self.order)
        if self.later:
            self.begin(self.later.pop(0))


def test_timers_expire_once_in_order_and_have_one_event_at_a_time() -> None:
    network, called = Network(star(), seed=1), list[int]()
    timers = IdleTimers(network.kernel)
    ends = [End(timers, called, 3, 6.0, 20.0), End(timers, called, 2, 20.0), End(timers, called, 1)]
    for end, when in zip(ends, (5.0, 10.0, 10.0), strict=True):
        end.begin(when)
        assert len(network.env._queue) == 1
    network.run(until=30)
    assert [end.expired for end in ends] == [[5.0, 6.0, 20.0], [10.0, 20.0], [10.0]]
    assert called == [3, 3, 1, 2, 2, 3]


def test_a_timer_before_all_others_is_not_late() -> None:
    network = Network(star(), seed=1)
    timers = IdleTimers(network.kernel)
    late, early = End(timers, [], 1), End(timers, [], 2)
    late.begin(10.0)
    early.begin(1.0)
    network.run(until=30)
    assert (early.expired, late.expired) == ([1.0], [10.0])
