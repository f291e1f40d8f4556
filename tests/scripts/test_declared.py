"""Declarations that the compiled build adds to a module are correct."""

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.tidy.tree import ROOT


@pytest.fixture(scope="module")
def declare() -> Iterator[Callable[[str], str]]:
    """Import `declare` of `scripts/declared.py`."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from declared import declare  # type: ignore[import-not-found]

        yield declare
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.mark.parametrize(
    ("line", "declared"),
    [
        ("LIMIT = 4", "LIMIT: _Final = 4"),
        ("ONE, TWO = 1, -2  # both", "ONE: _Final = 1; TWO: _Final = -2  # both"),
        ("TABLE: dict[int, str] = {}", "TABLE: _Final[dict[int, str]] = {}"),
        ("made = lru_cache(maxsize=8)(Thing)", "made: _Final = lru_cache(maxsize=8)(Thing)"),
        ("def at(place: tuple[int, int, int]) -> None: ...", "def at(place: tuple[int, ...]) -> None: ..."),
    ],
)
def test_a_name_set_once_is_final_and_a_tuple_parameter_may_have_any_length(
    declare: Callable[[str], str], line: str, declared: str
) -> None:
    begin, *rest = declare(f"import math\n{line}\n").splitlines()
    assert rest == [declared]
    assert begin in ("import math", "import math; from typing import Final as _Final")


@pytest.mark.parametrize(
    "lines",
    [
        "count = 0\ncount += 1",
        "count = 0\ndef tell() -> None:\n    global count\n    count = 1",
        "Place = tuple[int, int]",
        "Number = int | None",
        "T = TypeVar('T')",
        "Kind: TypeAlias = list[int]",
        "Later: TypeAlias = 'list[Thing]'",
        "__all__ = ['LIMIT']",
        "rows: list[tuple[int, int, int]]",
    ],
)
def test_types_and_reassigned_names_are_unchanged(declare: Callable[[str], str], lines: str) -> None:
    source = f"import math\n\n{lines}\n"
    assert declare(source) == source
