"""Items come out in order of time and node, and as soon as their time has passed."""

from random import Random

from sim import timeline
from sim.timeline import Timeline


def test_items_are_ordered_by_time_then_place_then_as_they_came() -> None:
    out: list[tuple[float, int]] = []
    line: Timeline[int] = Timeline(lambda when, item: out.append((when, item)))
    dice = Random(1)
    added = []
    for number in range(500):
        now = float(number // 10)
        when, place = now + dice.choice([0.0, 0.5, 3.0]), dice.randrange(3)
        added.append((when, place, number))
        line.add(now, when, place, number)
    line.end(1000.0)
    assert out == [(when, number) for when, _, number in sorted(added)]


def test_what_can_not_be_overtaken_is_handed_on_and_memory_stays_bounded() -> None:
    out: list[int] = []
    line: Timeline[int] = Timeline(lambda when, item: out.append(item))
    for number in range(5 * timeline._BATCH):
        line.add(float(number), number + 2.5, 0, number)
        assert len(line._items) <= timeline._BATCH + 3
    assert out == list(range(len(out)))
    assert len(out) >= 3 * timeline._BATCH


def test_what_lies_after_the_end_did_not_happen() -> None:
    out: list[str] = []
    line: Timeline[str] = Timeline(lambda when, item: out.append(item))
    line.add(1.0, 3.0, 0, "late")
    line.add(1.0, 2.0, 0, "just")
    line.end(2.0)
    assert out == ["just"]
