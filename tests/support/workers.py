"""Distribution of tests over the processes of pytest-xdist, and exclusive execution of tests marked `timed` or `serial`.

A unit is what one process runs from its first test to its last: a file, so that the fixtures of a module are made once; all
files that share one expensive fixture; or a single test where those of a file are long and have nothing in common. Each `timed`
test is a unit, and so are the `serial` ones of a file; they come after all others.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

__all__ = ["Kinds", "holding", "in_order", "kind_of", "unit_of"]

NORMAL, TIMED, SERIAL = KINDS = ("normal", "timed", "serial")
EXCLUDED: Final = {NORMAL: (TIMED, SERIAL), TIMED: (NORMAL, SERIAL), SERIAL: KINDS}
"""Kind of a test -> kinds of tests of which none runs at the same time."""

SHARED = {
    # They share one Java process and one synthetic sweep, or the syntax trees of all files.
    "spark": (
        "tests/experiments/analysis/",
        "tests/experiments/report/",
        "tests/experiments/sweep/test_driver.py",
    ),
    "syntax": (
        "tests/tidy/test_cycles.py",
        "tests/tidy/test_imports.py",
        "tests/tidy/test_shape.py",
        "tests/tidy/test_words.py",
        "tests/scripts/test_compiled.py",
    ),
}
"""Unit -> folders and files."""

DIVIDED = (
    "tests/tidy/test_commands.py",
    "tests/emu/test_user_mode_kernel.py",
    "tests/sim/test_fingerprint.py",
)
"""Files of which every test is a unit."""


def kind_of(item: pytest.Item) -> str:
    """Return which kind a test is of by its marks."""
    return next((kind for kind in (SERIAL, TIMED) if item.get_closest_marker(kind)), NORMAL)


def unit_of(nodeid: str, kind: str = NORMAL) -> str:
    """Name the unit of a test."""
    path = nodeid.partition("::")[0]
    if kind == TIMED:
        return nodeid
    if kind == SERIAL:
        return f"{path} {kind}"
    for unit, places in SHARED.items():
        if path.startswith(places):
            return unit
    return nodeid if path in DIVIDED else path


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort tests: units with a test marked `slow` first, so that none remains for the end; then `timed`, then `serial` ones."""
    units = {item.nodeid: unit_of(item.nodeid, kind_of(item)) for item in items}
    slow = {units[item.nodeid] for item in items if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[int, bool]:
        return KINDS.index(kind_of(item)), units[item.nodeid] not in slow

    return sorted(items, key=place)


class Kinds:
    """The kinds of tests that are not normal, passed from the workers, which collect, to the process that distributes.

    Args:
        folder: one that all processes of a test session know.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "kinds.json"
        self._known: dict[str, str] | None = None

    def tell(self, items: Sequence[pytest.Item]) -> None:
        """Write the kinds. All workers write the same."""
        part = self._file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({item.nodeid: kind for item in items if (kind := kind_of(item)) != NORMAL}))
        part.replace(self._file)

    def unit_of(self, nodeid: str) -> str:
        """Name the unit of a test, after the workers have collected."""
        if self._known is None:
            self._known = json.loads(self._file.read_text())
        return unit_of(nodeid, self._known.get(nodeid, NORMAL))


@contextmanager
def holding(folder: Path, kind: str, pause: float = 0.02) -> Iterator[None]:
    """Wait until no test runs that excludes one of this kind, and exclude those meanwhile.

    Args:
        folder: one that all processes of a test session know.
        kind: of the test that begins.
        pause: seconds between two looks.
    """
    while not (held := _taken(folder, kind)):
        time.sleep(pause)
    with held:
        yield


def _taken(folder: Path, kind: str) -> ExitStack | None:
    """Lock the file of a kind, shared, if nobody has locked one that is excluded; return how to release it."""
    with ExitStack() as looks, suppress(BlockingIOError):
        _lock(looks, folder / "look.lock", fcntl.LOCK_EX)
        for other in EXCLUDED[kind]:
            with ExitStack() as free:
                _lock(free, folder / f"{other}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = ExitStack()
        _lock(held, folder / f"{kind}.lock", fcntl.LOCK_SH)
        return held
    return None


def _lock(stack: ExitStack, path: Path, how: int) -> None:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    stack.callback(os.close, file)
    fcntl.flock(file, how)
