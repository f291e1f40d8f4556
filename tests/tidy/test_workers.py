"""Distribution of tests over processes: units are not split, slow ones come first and serial ones last."""

import fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.workers import DIVIDED, SHARED, holding, in_order, unit_of
from tests.tidy.tree import ROOT


def item(nodeid: str, *marks: str) -> Any:
    """Return a stand-in for a pytest item."""
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if name in marks else None)


def test_every_listed_path_exists() -> None:
    named = [*DIVIDED, *(place for places in SHARED.values() for place in places)]
    assert not [place for place in named if not (ROOT / place).exists()]


def test_a_unit_is_a_file_or_files_with_a_shared_fixture_or_one_test() -> None:
    assert unit_of("tests/sim/test_link.py::test_a[x-1]") == "tests/sim/test_link.py"
    assert unit_of("tests/experiments/report/test_page.py::test_a") == unit_of(
        "tests/experiments/analysis/test_runs.py::test_b"
    )
    assert unit_of(f"{DIVIDED[0]}::test_a[1]") != unit_of(f"{DIVIDED[0]}::test_a[2]")


def test_units_with_a_slow_test_come_first_and_serial_tests_last() -> None:
    items = [item("a.py::1"), item("b.py::1", "serial"), item("b.py::2"), item("c.py::1"), item("c.py::2", "slow")]
    assert [one.nodeid for one in in_order(items)] == ["c.py::1", "c.py::2", "a.py::1", "b.py::2", "b.py::1"]


def is_free(lock: Path) -> bool:
    """Return whether an exclusive lock could be taken now."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_lock_is_shared_or_exclusive_and_released_afterwards(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with holding(lock, shared=True), holding(lock, shared=True):
        assert not is_free(lock)
    assert is_free(lock)
    with holding(lock):
        assert not is_free(lock)
    assert is_free(lock)
