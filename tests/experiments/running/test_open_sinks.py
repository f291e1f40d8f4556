"""Sinks are found by the ids of their objects, which a restarted sender uses again."""

from experiments.running.content import MemorySink
from experiments.running.open_sinks import OpenSinks

KEY = (1, 0)


def opened(*sinks: MemorySink) -> OpenSinks[MemorySink]:
    """Return what is kept after these sinks were added under one key."""
    made: OpenSinks[MemorySink] = OpenSinks()
    for sink in sinks:
        made.add(KEY, sink)
    return made


def sink(*, aborted: bool = False) -> MemorySink:
    """Return a sink, in use or of an object that was aborted."""
    made = MemorySink(8)
    if aborted:
        made.abort()
    return made


def test_a_sink_is_taken_once() -> None:
    first = sink()
    sinks = opened(first)
    assert [sinks.take(KEY), sinks.take(KEY)] == [first, None]


def test_an_aborted_object_has_no_sink() -> None:
    sinks = opened(sink(aborted=True))
    sinks.discard(KEY)
    sinks.discard((2, 0))
    assert sinks.take(KEY) is None


def test_the_end_of_an_object_leaves_the_sink_that_has_replaced_its_own() -> None:
    second = sink()
    sinks = opened(sink(aborted=True), second)
    sinks.discard(KEY)
    assert sinks.take(KEY) is second


def test_the_end_of_an_object_that_had_no_sink_leaves_that_of_a_later_one() -> None:
    later = sink()
    sinks = opened(later)
    sinks.discard(KEY)
    assert sinks.take(KEY) is later


def test_the_end_of_an_earlier_object_leaves_the_sink_of_a_later_one_that_is_complete() -> None:
    later = sink()
    sinks = opened(later)
    later.commit(b"")
    sinks.discard(KEY)
    assert sinks.take(KEY) is later


def test_the_object_whose_sink_has_replaced_another_can_be_aborted_too() -> None:
    sinks = opened(sink(aborted=True), sink(aborted=True))
    sinks.discard(KEY)
    sinks.discard(KEY)
    assert sinks.take(KEY) is None
