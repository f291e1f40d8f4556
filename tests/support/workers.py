"""Distribution of tests over the processes of pytest-xdist, and exclusive execution of tests marked `serial`.

A unit is what one process runs from its first test to its last: a file, so that the fixtures of a module are made once; all
files that share one expensive fixture; or a single test where those of a file are long and have nothing in common.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["holding", "in_order", "unit_of"]

SHARED = {
    # They share one Java process and one synthetic sweep.
    "spark": (
        "tests/experiments/analysis/",
        "tests/experiments/report/",
        "tests/experiments/sweep/test_driver.py",
    ),
}
"""Unit -> folders and files."""

DIVIDED = (
    "tests/tidy/test_commands.py",
    "tests/emu/test_user_mode_kernel.py",
    "tests/sim/test_fingerprint.py",
)
"""Files of which every test is a unit."""


def unit_of(nodeid: str) -> str:
    """Name the unit of a test."""
    path = nodeid.partition("::")[0]
    for unit, places in SHARED.items():
        if path.startswith(places):
            return unit
    return nodeid if path in DIVIDED else path


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort tests: units with a test marked `slow` first, so that none remains for the end, and `serial` tests last."""
    slow = {unit_of(item.nodeid) for item in items if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return item.get_closest_marker("serial") is not None, unit_of(item.nodeid) not in slow

    return sorted(items, key=place)


@contextmanager
def holding(lock: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on this file, exclusively or shared with others."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
