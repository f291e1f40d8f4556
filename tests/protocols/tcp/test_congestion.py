"""Congestion controls one by one: windows after losses and acknowledgements that are counted by hand."""

from protocols.tcp.congestion import CONTROLS, Control, LinuxCubic, LinuxReno, Reno

RTT = 0.004


def after_loss(control: Control, window: float) -> Control:
    """Return the control in congestion avoidance after a loss at this window, at time 0."""
    control.window = window
    control.lost(0.0)
    return control


def round_trips(control: Control, count: int) -> list[float]:
    """Acknowledge a window in each of `count` round trips, segment by segment, and return the windows behind them."""
    windows = []
    for number in range(1, count + 1):
        for _ in range(int(control.window)):
            control.acknowledged(1, number * RTT, RTT)
        windows.append(control.window)
    return windows


def test_cubic_of_linux_stands_still_for_28_ms_and_then_catches_up_with_reno() -> None:
    # 20 * 717 // 1024 = 14. The cubic function asks for 15 at once (20 - 5), and for 16 not before 0.2 s. Reno's estimate has
    # reached 17 when it is looked at again, more than 7 ticks of 4 ms later.
    control = after_loss(LinuxCubic(10.0), 20.0)
    assert control.window == 14.0
    windows = round_trips(control, 12)
    assert windows[1:8] == [15.0] * 7
    assert windows[10] >= 17.0


def test_cubic_of_linux_grows_faster_than_its_estimate_of_reno_far_above_the_plateau() -> None:
    control = after_loss(LinuxCubic(10.0), 20.0)
    # 0.4 * (t - K)^3 is 125 segments 6.8 s behind K = 2.47 s.
    for number in range(1, 10_000):
        control.acknowledged(1, 0.001 * number, RTT)
    assert control.window > 100


def test_cubic_of_linux_grows_by_a_twentieth_at_least_before_the_first_loss() -> None:
    control = LinuxCubic(40.0)
    control.threshold = 40.0
    for number in range(200):
        control.acknowledged(1, 0.0001 * number, RTT)
    assert 49.0 <= control.window <= 51.0


def test_reno_of_linux_halves_whole_segments_and_counts_anew_after_a_loss() -> None:
    windows = {}
    for control in (Reno(10.0), LinuxReno(10.0)):
        control.threshold = control.window = 13.0
        for _ in range(12):
            control.acknowledged(1, 0.0, RTT)
        after_loss(control, 13.0)
        control.acknowledged(1, 0.0, RTT)
        windows[type(control)] = control.window
    assert windows == {Reno: 7.5, LinuxReno: 6.0}


def test_every_control_keeps_two_segments_after_a_loss_and_one_after_a_time_out() -> None:
    for make in CONTROLS.values():
        assert after_loss(make(10.0), 2.0).window == 2.0
        control = make(10.0)
        control.timed_out(0.0)
        assert control.window == 1.0
