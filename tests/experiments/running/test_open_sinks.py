"""Sinks are found by the ids of their objects, which a restarted sender uses again."""

from experiments.running.open_sinks import OpenSinks

KEY = (1, 0)


def opened(*sinks: str) -> OpenSinks[str]:
    """Return what is kept after these sinks were added under one key."""
    made: OpenSinks[str] = OpenSinks()
    for sink in sinks:
        made.add(KEY, sink)
    return made


def test_a_sink_is_taken_once() -> None:
    sinks = opened("first")
    assert [sinks.take(KEY), sinks.take(KEY)] == ["first", None]


def test_an_aborted_object_has_no_sink() -> None:
    sinks = opened("first")
    sinks.discard(KEY)
    sinks.discard((2, 0))
    assert sinks.take(KEY) is None


def test_the_end_of_an_object_leaves_the_sink_that_has_replaced_its_own() -> None:
    sinks = opened("first", "second")
    sinks.discard(KEY)
    assert sinks.take(KEY) == "second"


def test_the_object_whose_sink_has_replaced_another_can_be_aborted_too() -> None:
    sinks = opened("first", "second")
    sinks.discard(KEY)
    sinks.discard(KEY)
    assert sinks.take(KEY) is None
