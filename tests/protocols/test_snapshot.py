"""Statistics as data: the tree, its plain form, and rates from the difference of two snapshots."""

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from protocols.registry import names, protocol
from protocols.snapshot import MEASURES, PARTS, Measure, Rates, Snapshot, buffers, measure_of, measures_by_name, walk


def session(sent: float, lost: float = 0, name: str = "17") -> Snapshot:
    """Return a session with one sender."""
    return Snapshot("session", "g", {"data_sent": sent, "rate": 9.0}, parts=(Snapshot("sender", name, {"data_lost": lost}),))


def test_rates_are_differences_by_time_and_gauges_have_none() -> None:
    rates = Rates()
    assert dict(rates.add(2.0, session(10, 1)).values) == {}
    told = rates.add(4.0, session(30, 2))
    assert (told.part, told.name, dict(told.values)) == ("session", "g", {"data_sent": 10.0})
    assert dict(told.parts[0].values) == {"data_lost": 0.5}
    assert rates.add(4.5, session(30, 3)).values["data_sent"] == 0.0


def test_a_counter_that_began_anew_and_a_part_that_is_new_count_from_zero() -> None:
    rates = Rates()
    rates.add(0.0, session(1000, 7))
    told = rates.add(2.0, session(40, 6, name="18"))
    assert told.values["data_sent"] == 20.0
    assert told.parts[0].values["data_lost"] == 3.0


def test_two_snapshots_at_one_time_have_no_rates() -> None:
    rates = Rates()
    rates.add(1.0, session(1))
    assert dict(rates.add(1.0, session(2)).values) == {}


def test_rates_over_a_window_are_means() -> None:
    rates = Rates(window=10.0)
    for second in range(31):
        told = rates.add(float(second), session(second**2))
    # From second 20 on: (900 - 400) / 10.
    assert told.values["data_sent"] == 50.0
    assert Rates(window=60.0).add(0.0, session(1)).values == {}


def test_a_part_is_known_by_its_path() -> None:
    told = dict(walk(session(1)))
    assert list(told) == [(("session", "g"),), (("session", "g"), ("sender", "17"))]
    assert [each.name for each in session(1).only("sender")] == ["17"]
    assert session(1).only("object") == []


def test_the_plain_form_leaves_out_what_is_empty_and_nothing_else() -> None:
    plain = Snapshot("session", "", {"data_sent": 0}, {}, buffers({"objects": (1, 2), "nothing": (0, 0)})).plain()
    assert plain == {
        "part": "session",
        "values": {"data_sent": 0},
        "parts": [{"part": "buffer", "name": "objects", "values": {"held": 1, "limit": 2}}],
    }
    with pytest.raises(FrozenInstanceError):
        session(1).name = "other"  # type: ignore[misc]


def test_a_name_without_a_description_is_a_counter() -> None:
    assert measure_of("things_done") == Measure("things_done", "things done")
    assert measure_of("grtt", measures_by_name(protocol("norm").measures)).unit == "seconds"
    assert measure_of("rate").kind == "gauge"


@pytest.mark.parametrize("name", names())
def test_a_name_means_the_same_in_every_protocol(name: str) -> None:
    own = protocol(name).measures
    assert not {each.name for each in own} & MEASURES.keys()
    assert all(each.help and each.name.isidentifier() for each in (*own, *MEASURES.values()))
    assert all(part.isidentifier() for part in PARTS)


def rows(text: str) -> list[tuple[str, ...]]:
    """Return the cells of the rows of tables whose first cell is code; the last of four is the name of a protocol."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")]
    return [(first.strip("`"), *rest[:3], *(cell.strip("`") for cell in rest[3:])) for first, *rest in found]


def test_the_documentation_lists_every_measure_and_part_with_its_unit() -> None:
    text = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    own = [(each, name) for name in names() for each in protocol(name).measures]
    wanted: list[tuple[str, ...]] = [(each.name, each.kind, each.unit, each.help) for each in MEASURES.values()]
    wanted += [(each.name, each.kind, each.unit, each.help, name) for each, name in own]
    assert rows(text[text.index("## Measures") :]) == wanted
    parts = rows(re.search(r"## Parts\n(.*?)\n\n[A-Z]", text, re.S)[1])  # type: ignore[index]
    assert parts == list(PARTS.items())
