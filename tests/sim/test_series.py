"""Time series add up to the totals of the run."""

from collections import defaultdict

import pytest

from protocols.registry import protocol
from sim.series import MEASURES, Series, SeriesRow
from tests.sim.looks import Notes, watched
from tests.sim.test_fingerprint import ANY

NORM = protocol("norm")
SLOW = {"kind": "star", "receivers": 4, "link": {"rate": "4Mbit", "delay": "2ms", "queue": 30, "down": {"loss": "5%"}}}


def of(rows: list[SeriesRow], measure: str) -> dict[str, float]:
    """Sums over time."""
    sums: dict[str, float] = defaultdict(float)
    for _, name, what, value in rows:
        if name == measure:
            sums[what] += value
    return dict(sums)


def test_sums_over_time_are_the_totals() -> None:
    series, notes = Series(0.05, 1), Notes()
    network = watched(ANY.validate_python(SLOW).build(), NORM, [series, notes]).network
    assert of(series.rows, "packets_sent") == network.traffic.packets
    assert of(series.rows, "bytes_sent") == network.traffic.octets
    lost = {f"{counts.near}-{counts.far}": counts.lost for counts in network.links() if counts.lost}
    assert of(series.rows, "packets_lost") == lost
    dropped = {f"{counts.near}-{counts.far}": counts.dropped for counts in network.links() if counts.dropped}
    assert of(series.rows, "packets_dropped") == dropped
    assert sum(of(series.rows, "repairs_sent").values()) == session_repairs(notes)
    assert {row[1] for row in series.rows} <= set(MEASURES)


def session_repairs(notes: Notes) -> int:
    """Packets whose messages are marked as repairs."""
    return sum(packet.message.repair for _, _, packet, _ in notes.packets)


def test_every_interval_says_how_many_are_complete() -> None:
    series = Series(0.1, 1)
    network = watched(ANY.validate_python(SLOW).build(), NORM, [series]).network
    complete = [(time, value) for time, measure, _, value in series.rows if measure == "receivers_complete"]
    assert [time for time, _ in complete[:-1]] == [pytest.approx(0.1 * n) for n in range(1, len(complete))]
    assert complete[-1] == (network.env.now, 4)
    values = [value for _, value in complete]
    assert values == sorted(values)


def test_the_queue_is_what_packets_wait_behind() -> None:
    # The sender is twice as fast as the links, so their queues of 10 packets of at most 1474 bytes fill up.
    rate = f"{NORM.config().rate * 4}bit"
    series = Series(10.0, 1)
    watched(ANY.validate_python({**SLOW, "link": {"rate": rate, "queue": 10}}).build(), NORM, [series])
    most = max(value for _, measure, link, value in series.rows if (measure, link) == ("queue_bytes", "s1-r"))
    assert 9 * 1474 < most <= 11 * 1474
