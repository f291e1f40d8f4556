"""The plan of a publisher's messages: sizes, priorities, properties and times."""

from collections import Counter
from itertools import islice
from math import sqrt
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.workload.bodies import BLOCK, body_of
from experiments.workload.publish import MessagePlan, PublishWorkload

BASE = {"kind": "publish", "hosts": ["p"], "to": "topic:t", "size": "1kB", "rate": "100/s"}


def plan(**values: Any) -> MessagePlan:
    return MessagePlan(PublishWorkload.model_validate({**BASE, **values}), 1, 7)


def test_values_follow_from_the_seed_and_the_client() -> None:
    priority = {0: 1, 4: 2, 9: 1}
    first, again = plan(priority=priority), plan(priority=priority)
    other = MessagePlan(first.work, 2, 7)
    drawn = [first.priority(n) for n in range(100)]
    assert drawn == [again.priority(n) for n in range(100)]
    assert drawn != [other.priority(n) for n in range(100)]


def test_priorities_come_by_their_weights() -> None:
    count = 4000
    found = Counter(plan(priority={0: 1, 4: 8, 9: 1}).priority(n) for n in range(count))
    # Four standard errors of a share of 0.1.
    assert found[0] / count == pytest.approx(0.1, abs=4 * sqrt(0.1 * 0.9 / count))
    assert sum(found.values()) == found[0] + found[4] + found[9] == count


def test_what_is_drawn_does_not_depend_on_the_order_of_weights() -> None:
    one, other = plan(size={100: 1, "4kB": 2}, priority={0: 1, 9: 2}), plan(size={"4kB": 2, 100: 1}, priority={9: 2, 0: 1})
    assert [one.size(n) for n in range(50)] == [other.size(n) for n in range(50)]
    assert [one.priority(n) for n in range(50)] == [other.priority(n) for n in range(50)]


def test_properties_are_drawn_from_lists_and_ranges() -> None:
    made = plan(properties={"symbol": ["A", "B"], "price": {"from": 1, "to": 3}, "x": {"from": 0.5, "to": 1.5}, "fixed": True})
    found = [made.properties(n) for n in range(300)]
    assert {each["symbol"] for each in found} == {"A", "B"}
    assert {each["price"] for each in found} == {1, 2, 3}
    assert all(0.5 <= float(each["x"]) <= 1.5 for each in found)
    assert {each["fixed"] for each in found} == {True}


@pytest.mark.parametrize(("size", "mean"), [("1kB", 1000), ({"from": "1kB", "to": "3kB"}, 2000), ({"1kB": 3, "5kB": 1}, 2000)])
def test_sizes_have_the_mean_they_say(size: Any, mean: float) -> None:
    made, count = plan(size=size), 2000
    assert made.work.mean_size == mean
    sizes = [made.size(n) for n in range(count)]
    # Four standard errors; the weighted sizes have a standard deviation of 1732 bytes.
    assert sum(sizes) / count == pytest.approx(mean, abs=4 * 1732 / sqrt(count))


def test_poisson_arrivals_have_the_rate() -> None:
    count = 4000
    gaps = list(islice(plan(arrivals="poisson").gaps(), count))
    # An exponential gap has its mean as standard deviation; four standard errors.
    assert sum(gaps) / count == pytest.approx(0.01, rel=4 / sqrt(count))
    assert list(islice(plan().gaps(), 3)) == [0.01] * 3


@pytest.mark.parametrize("size", [0, 1, 1000, BLOCK, 3 * BLOCK + 5])
def test_bodies_have_their_size_and_differ_by_number(size: int) -> None:
    bodies = [body_of(1, 7, number, size) for number in range(20)]
    assert {len(body) for body in bodies} == {size}
    assert bodies == [body_of(1, 7, number, size) for number in range(20)]
    if size >= 1000:
        assert len(set(bodies)) == 20


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"rate": None}, "either 'rate' or 'think'"),
        ({"think": "10ms"}, "either 'rate' or 'think'"),
        ({"rate": "fast"}, "messages per second, like 500/s"),
        ({"rate": 0}, "messages per second, like 500/s"),
        ({"rate": 10**400}, "messages per second, like 500/s"),
        ({"priority": 10}, "priority"),
        ({"priority": {}}, "priority"),
        ({"properties": {"a": {"from": 2, "to": 1}}}, "'to' is at least 'from'"),
        ({"properties": {"a": []}}, "properties"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        plan(**values)


def test_a_saturated_rate_is_written_as_it_is_read() -> None:
    work = plan(rate="saturated").work
    assert PublishWorkload.model_validate(work.model_dump()) == work
    assert work.model_dump()["rate"] == "saturated"
