"""The sender's transmit window: admission, retention for repairs, and purging."""

import random
from math import inf
from typing import Any

from experiments.running.content import Extent
from protocols.machine import Content
from protocols.norm.config import NormConfig
from protocols.norm.repair_requests import requested_repairs
from protocols.norm.requests import LEVEL_INFO, LEVEL_OBJECT
from protocols.norm.tx_object import TxObject
from protocols.norm.window import IDS, MOST_REFUSED, Window
from tests.protocols.norm.scenes import items, quick, ranges
from tests.protocols.norm.test_hostile import lines

REST = 2.0


def window(count: int, size: int = 1000, **settings: Any) -> Window:
    config = quick(**settings)
    made = Window(config)
    made.backlog.extend(outgoing(i, size, config) for i in range(count))
    return made


def outgoing(object_id: int, size: int, config: NormConfig) -> TxObject:
    return TxObject(object_id, Content(Extent(size)), config, 1)


def admit(window: Window, now: float) -> tuple[list[int], list[int]]:
    """Return (purged, admitted) object ids."""
    steps = list(window.admit(now, REST))
    return [a.object_id for a, _ in steps if a], [b.object_id for _, b in steps if b]


def send(window: Window, *object_ids: int, now: float = 0.0) -> None:
    """Send everything of these objects."""
    for object_id in object_ids:
        item = window.objects[object_id]
        item.active_at = now
        while item.unsent:
            item.step()


def test_objects_are_admitted_in_order_up_to_the_maximum_count() -> None:
    found = window(9, cache_min=2, cache_max=5)
    assert admit(found, 0.0) == ([], [0, 1, 2, 3, 4])
    assert [item.object_id for item in found.backlog] == [5, 6, 7, 8]


def test_the_minimum_count_is_admitted_regardless_of_size() -> None:
    found = window(9, size=10**9, cache_min=3, cache_max=5, cache_size=1000)
    assert admit(found, 0.0) == ([], [0, 1, 2])


def test_beyond_the_minimum_count_bytes_are_limited() -> None:
    found = window(9, size=1000, cache_min=2, cache_max=8, cache_size=4500)
    assert admit(found, 0.0) == ([], [0, 1, 2, 3])
    assert found.octets == 4000


def test_an_object_with_unsent_data_is_never_purged() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    assert found.vacancy_at(REST) == inf
    assert admit(found, 1e9) == ([], [])


def test_a_sent_object_is_purged_after_a_period_without_requests() -> None:
    found = window(4, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1, now=5.0)
    assert found.vacancy_at(REST) == 7.0
    assert admit(found, 6.99) == ([], [])
    assert admit(found, 7.0) == ([0, 1], [2, 3])


def test_only_as_many_objects_are_purged_as_needed() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    assert admit(found, 100.0) == ([0], [2])
    assert list(found.objects) == [1, 2]


def test_a_requested_object_is_kept() -> None:
    found = window(3, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    found.objects[0].wanted[0] = 1
    assert admit(found, 100.0) == ([], [])
    found.objects[0].activate()
    assert admit(found, 100.0) == ([], [])


def test_nothing_is_purged_if_nothing_waits() -> None:
    found = window(2, cache_min=2, cache_max=2)
    admit(found, 0.0)
    send(found, 0, 1)
    assert admit(found, 1e9) == ([], [])
    assert list(found.objects) == [0, 1]


def with_ids(*object_ids: int) -> Window:
    """A window with these objects, the oldest first."""
    made = Window(quick())
    made.objects.update({key: outgoing(key, 100, quick()) for key in object_ids})
    return made


def test_requested_objects_that_are_gone_from_within_the_window_are_refused_wherever_ids_begin_again() -> None:
    rng = random.Random(1)
    for first in (0, 5, IDS - 20, IDS - 3):
        kept = sorted({0, 39, *rng.sample(range(40), 12)})
        found = with_ids(*[(first + place) % IDS for place in kept])
        for level in (LEVEL_OBJECT, LEVEL_INFO):
            named = [((first + rng.randrange(-5, 45)) % IDS, 0, 0) for _ in range(2)]
            asked = requested_repairs((ranges(*named, level=level), items((first + 7 & 0xFFFF, 0, 0))), 5)
            holes = {(first + place) % IDS for place in range(40)} - set(found.objects)
            wanted = {key for key in holes if asked.has_info(key) or key == first + 7 & 0xFFFF}
            assert (found.refused(asked, 0, 0.0) or set()) == wanted


def test_a_nack_for_objects_that_are_gone_costs_little_while_many_follow_an_open_stream() -> None:
    found = with_ids(0, *range(60_000, 60_256))
    asked = requested_repairs((ranges((0, 0, 0), (0x7FFF, 0, 0), level=LEVEL_OBJECT, fec=0),), 0)
    assert lines(lambda: found.refused(asked, 60_256, 0.0)) < 4 * MOST_REFUSED + 100
    gone = found.refused(asked, 60_256, 0.0)
    assert gone == set(range(1, MOST_REFUSED + 1))
