"""Distribution of tests over processes: units are not split, slow ones come first, timed and serial ones last."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.workers import DIVIDED, NORMAL, SERIAL, SHARED, TIMED, Kinds, holding, in_order, unit_of
from tests.tidy.tree import ROOT


def item(nodeid: str, *marks: str) -> Any:
    """Return a stand-in for a pytest item."""
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if name in marks else None)


ITEMS = [
    item("a.py::1"),
    item("b.py::1", "serial"),
    item("b.py::2"),
    item("b.py::3", "timed"),
    item("c.py::1"),
    item("c.py::2", "slow"),
]


def test_every_listed_path_exists() -> None:
    named = [*DIVIDED, *(place for places in SHARED.values() for place in places)]
    assert not [place for place in named if not (ROOT / place).exists()]


def test_a_unit_is_a_file_or_files_with_a_shared_fixture_or_one_test() -> None:
    assert unit_of("tests/sim/test_link.py::test_a[x-1]") == "tests/sim/test_link.py"
    assert unit_of("tests/experiments/report/test_page.py::test_a") == unit_of(
        "tests/experiments/analysis/test_runs.py::test_b"
    )
    assert unit_of(f"{DIVIDED[0]}::test_a[1]") != unit_of(f"{DIVIDED[0]}::test_a[2]")


def test_units_with_a_slow_test_come_first_then_timed_and_serial_tests_last() -> None:
    order = ["c.py::1", "c.py::2", "a.py::1", "b.py::2", "b.py::3", "b.py::1"]
    assert [one.nodeid for one in in_order(ITEMS)] == order


def test_timed_and_serial_tests_of_a_file_are_units_of_their_own(tmp_path: Path) -> None:
    Kinds(tmp_path).tell(ITEMS)
    units = [Kinds(tmp_path).unit_of(one.nodeid) for one in ITEMS]
    assert units == ["a.py", "b.py serial", "b.py", "b.py::3", "c.py", "c.py"]


@pytest.mark.parametrize("running", [NORMAL, TIMED, SERIAL])
@pytest.mark.parametrize("begins", [NORMAL, TIMED, SERIAL])
def test_a_test_begins_beside_its_own_kind_and_a_serial_one_beside_none(running: str, begins: str, tmp_path: Path) -> None:
    begun = threading.Event()

    def other() -> None:
        with holding(tmp_path, begins, 0.001):
            begun.set()

    thread = threading.Thread(target=other)
    with holding(tmp_path, running):
        thread.start()
        is_beside = begun.wait(0.05 if running != begins or begins == SERIAL else 10)
    # What was excluded begins as soon as nothing excludes it.
    assert begun.wait(10)
    thread.join()
    assert is_beside == (running == begins != SERIAL)
