"""Rows of domains from readings: what comes, changes, lags and goes; no clock, no network."""

from dataclasses import replace
from typing import Any

from experiments.monitor.domain import GONE, HISTORY, SHOWN_GONE, SILENT, Connection, Domain, Reading
from protocols.rate_history import Flow, Rate


def counted(at: float, **counters: float) -> Reading:
    """Return a process that tells counters and no rates."""
    return Reading("d", "p", "h", [Connection("0", "g", "publisher", counters, publishers=1)], at)


def told(queue: int = 0, rate: float = 100.0, **more: Any) -> Reading:
    """Return a subscriber that tells its rates."""
    flows = {"messages_received": Flow(1000, (Rate(rate, rate, "12:00:00.000"), Rate(rate), Rate(rate)))}
    return Reading("d", "s", "h", [Connection("0", "g", "subscriber", flows=flows, subscribers=1, queue=queue)], **more)


def test_rates_are_computed_where_a_process_tells_none() -> None:
    domain = Domain()
    for second in range(4):
        domain.update(1000.0 + second, {"a": counted(float(second), messages_sent=10 * second**2)})
    (row,) = domain.rows
    assert row.flows["messages_sent"].total == 90
    assert row.flows["messages_sent"].rates[0].current == 50.0
    assert row.flows["messages_sent"].rates[1].current == 30.0
    assert [point[0] for point in domain.points("a/0")] == [0.0, 10.0, 30.0, 50.0]


def test_the_time_of_a_peak_does_not_move_with_late_readings() -> None:
    domain, found = Domain(), set()
    for second, late in enumerate([0.0, 0.4, 0.1, 0.9, 0.3]):
        domain.update(1000.0 + second + late, {"a": counted(float(second), messages_sent=100 * min(second, 1))})
        found.add(domain.rows[0].flows["messages_sent"].rates[0].peak_at)
    assert len(found - {None}) == 1


def test_rates_that_a_process_tells_are_not_computed() -> None:
    domain = Domain()
    domain.update(0.0, {"b": told()})
    assert domain.rows[0].flows["messages_received"].rates[0] == Rate(100.0, 100.0, "12:00:00.000")


def test_only_what_changes_is_told() -> None:
    domain, same, other = Domain(), told(), told()
    domain.update(0.0, {"b": same, "c": other})
    assert domain.changed == ["b/0", "c/0"]
    domain.update(1.0, {"b": same, "c": told(queue=3)})
    assert domain.changed == ["c/0"]
    domain.update(2.0, {"b": replace(same, state=SILENT), "c": told(queue=3)})
    assert domain.changed == ["b/0"]
    assert domain.row("b/0").state == SILENT  # type: ignore[union-attr]


def test_a_process_that_is_gone_is_shown_as_gone_and_then_not() -> None:
    domain = Domain()
    domain.update(0.0, {"b": told()})
    domain.update(1.0, {})
    (row,) = domain.rows
    assert (row.state, row.flows["messages_received"].rates[0].current) == (GONE, 0.0)
    assert [event.text for event in domain.events] == ["comes", GONE]
    domain.update(1.0 + SHOWN_GONE, {})
    assert (domain.rows, domain.removed) == ([], ["b/0"])


def test_a_process_that_comes_again_begins_anew() -> None:
    domain = Domain()
    domain.update(0.0, {"a": counted(50.0, messages_sent=900)})
    domain.update(1.0, {})
    domain.update(2.0, {"a": counted(1.0, messages_sent=10)})
    assert domain.rows[0].state != GONE
    assert domain.rows[0].flows["messages_sent"].rates[0].current == 0.0
    assert [event.text for event in domain.events] == ["comes", GONE, "comes"]


def test_a_connection_that_is_closed_goes_at_once_and_its_process_stays() -> None:
    domain = Domain()
    domain.update(0.0, {"b": told()})
    domain.update(1.0, {"b": replace(told(), connections=[])})
    assert [(row.key, row.connection, row.state) for row in domain.rows] == [("b", "-", "running")]
    assert domain.removed == ["b/0"]


def test_who_has_more_than_a_second_of_messages_waiting_lags() -> None:
    domain = Domain()
    for queue, lag in ((5, 0.0), (90, 0.0), (250, 2.5), (0, 0.0)):
        domain.update(1.0, {"b": told(queue=queue)})
        assert domain.rows[0].lag == lag
    domain.update(2.0, {"b": told(queue=500, rate=0.0)})
    assert domain.rows[0].lag == 500.0
    assert [event.text for event in domain.events].count("lags") == 2
    assert domain.rows[0].queue_peak == 500


def test_memory_is_bounded() -> None:
    domain = Domain()
    for second in range(HISTORY + 50):
        domain.update(float(second), {f"p{second}-{number}": told() for number in range(10)} | {"b": told()})
    assert len(domain.rows) <= 10 * (SHOWN_GONE + 2) + 1
    assert len(domain.points("b/0")) == HISTORY
    assert len(domain.events) == 200
    evil = Reading("d" * 9999, "p" * 9999, "h" * 9999, [Connection("0", "g" * 9999, members=["m" * 9999] * 9999)])
    domain.update(1e6, {"b": evil})
    row = domain.row("b/0")
    assert row is not None
    assert max(map(len, (row.domain, row.process, row.place, row.connection, *row.members))) == 200
    assert len(row.members) == 50
