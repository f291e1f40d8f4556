"""The messages of a fast sender: what those made from others have in common with those made from the object."""

import itertools

from experiments.running.content import Extent
from protocols.arq.config import AConfig
from protocols.arq.fast.messages import FastData
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.messages import Data
from protocols.arq.tx_object import ObjectStore
from protocols.machine import Content

CONFIG = AConfig(segment=100)
FIELDS = Data.__dataclass_fields__


def store_of(kind: type[ObjectStore], *sizes: int) -> ObjectStore:
    """Return a store with an object without bytes of each of these sizes."""
    store = kind(CONFIG, 7, 3)
    for size in sizes:
        store.add(Content(Extent(size), b"", is_file=False))
    return store


def send(store: ObjectStore, units: int) -> list[Data]:
    """Return the messages of the next new units."""
    return [store.message(*store.take_next(), False) for _ in range(units)]


def test_new_units_are_those_of_a_plain_store_and_linked() -> None:
    fast = send(store_of(FastObjectStore, 550, 320), 11)
    for plain, message in zip(send(store_of(ObjectStore, 550, 320), 11), fast, strict=True):
        assert [getattr(plain, name) for name in FIELDS] == [getattr(message, name) for name in FIELDS]
    for before, after in itertools.pairwise(fast):
        assert isinstance(before, FastData)
        assert isinstance(after, FastData)
        is_inner = 0 < after.unit < {0: 6, 1: 4}[after.object_id]
        assert after.expects is (before.next_state if is_inner else None)


def test_the_unit_after_an_object_that_is_dropped_shows_that_it_is_abandoned() -> None:
    store = store_of(FastObjectStore, 150, 900)
    send(store, 5)
    store.drop(0)
    first, second = send(store, 2)
    assert isinstance(first, FastData)
    assert isinstance(second, FastData)
    assert first.first == second.first == 1
    assert first.expects is None
    assert second.expects is first.next_state
