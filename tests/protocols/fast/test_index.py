"""Machines found by what they lack, and by time."""

from typing import Any

from protocols.fast.index import PartIndex, QuietQueue


def machines(count: int) -> list[Any]:
    """Return distinct objects in place of machines."""
    return [object() for _ in range(count)]


def test_machines_are_taken_by_the_parts_they_lack() -> None:
    index, (a, b, c) = PartIndex(), machines(3)
    index.add("block", 0b101, [a])
    index.add("block", 0b100, [b])
    index.add_one("block", 0, c)
    assert index.take("other", 0b1) == []
    assert index.take("block", 0b100) == [a, b]
    assert index.take("block", 0b100) == []
    assert index.take("block", 0) == [a, c]
    assert not index.rows


def test_all_machines_can_be_taken_and_others_removed() -> None:
    index, (a, b) = PartIndex(), machines(2)
    index.add("block", 0b11, [a, a])
    index.add("next", 0b1, [b])
    index.keep(lambda machine: machine is a)
    assert index.take_all() == [a, a]
    assert not index.rows


def test_machines_are_due_in_order_of_time_however_they_were_entered() -> None:
    queue, members = QuietQueue(), machines(100)
    ends = [(7 * number % 100) / 10 for number in range(100)]
    due: list[Any] = []
    for number in range(50):
        queue.push(members[number], ends[number])
    assert sum(map(len, queue.machines())) == 50
    for step in range(60):
        due += queue.due(step / 10)
        if step % 10 == 0:
            for number in range(50 + step // 2, 55 + step // 2):
                queue.push(members[number], max(ends[number], step / 10))
    due += queue.due(1e9)
    assert len(due) == 80
    assert set(due) == set(members[:80])
    assert not queue.due(1e9)
    early, late = machines(2)
    queue.push(late, 2.0)
    queue.push(early, 1.0)
    assert queue.due(0.5) == []
    assert queue.due(1.0) == [early]
    assert queue.due(2.0) == [late]
