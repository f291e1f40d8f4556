"""The sender's window: what can be repaired, what waits, what is forgotten."""

from math import inf
from typing import Any

from experiments.running.content import Extent
from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.tx_object import TxObject
from protocols.norm.window import Window
from tests.protocols.norm.scenes import quick

REST = 2.0


def window(count: int, size: int = 1000, **settings: Any) -> Window:
    config = quick(**settings)
    made = Window(config)
    made.backlog.extend(outgoing(i, size, config) for i in range(count))
    return made


def outgoing(object_id: int, size: int, config: NormConfig) -> TxObject:
    return TxObject(object_id, Content(Extent(size)), config, 1)


def admit(window: Window, now: float) -> tuple[list[int], list[int]]:
    """(purged, admitted) object ids."""
    steps = list(window.admit(now, REST))
    return [a.object_id for a, _ in steps if a], [b.object_id for _, b in steps if b]


def send(window: Window, *object_ids: int, now: float = 0.0) -> None:
    """Everything of these objects goes out."""
    for object_id in object_ids:
        item = window.objects[object_id]
        item.active_at = now
        while item.unsent:
            item.step()


def test_objects_enter_in_order_up_to_the_largest_count() -> None:
    found = window(9, cache_min=2, cache_max=5)
    assert admit(found, 0.0) == ([], [0, 1, 2, 3, 4])
    assert [item.object_id for item in found.backlog] == [5, 6, 7, 8]


def test_the_least_count_enters_whatever_its_size() -> None:
    found = window(9, size=10**9, cache_min=3, cache_max=5, cache_size=1000)
    assert admit(found, 0.0) == ([], [0, 1, 2])


def test_beyond_the_least_count_the_bytes_are_limited() -> None:
    found = window(9, size=1000, cache_min=2, cache_max=8, cache_size=4500)
    assert admit(found, 0.0) == ([], [0, 1, 2, 3])
    assert found.octets == 4000


def test_an_object_still_to_be_sent_is_never_forgotten() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    assert found.vacancy_at(REST) == inf
    assert admit(found, 1e9) == ([], [])


def test_a_sent_object_makes_room_when_nobody_asked_for_a_while() -> None:
    found = window(4, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1, now=5.0)
    assert found.vacancy_at(REST) == 7.0
    assert admit(found, 6.99) == ([], [])
    assert admit(found, 7.0) == ([0, 1], [2, 3])


def test_no_more_is_forgotten_than_room_is_needed_for() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    assert admit(found, 100.0) == ([0], [2])
    assert list(found.objects) == [1, 2]


def test_an_object_that_is_asked_for_stays() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    found.objects[0].wanted[0] = 1
    assert admit(found, 100.0) == ([], [])
    found.objects[0].activate()
    assert admit(found, 100.0) == ([], [])


def test_with_nothing_waiting_nothing_is_forgotten() -> None:
    found = window(2, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    assert admit(found, 1e9) == ([], [])
    assert list(found.objects) == [0, 1]
