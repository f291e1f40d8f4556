"""Tests with unmet requirements are skipped with the reason, and fail with CI=true."""

from collections.abc import Iterator

import pytest

from tests import conftest


class Item:
    """The part of a pytest item that the check uses."""

    def __init__(self, *marks: pytest.MarkDecorator) -> None:
        self._marks = [decorator.mark for decorator in marks]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        """Return the mark of this name."""
        return next(self.iter_markers(name), None)

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        """Return all marks of this name."""
        return (mark for mark in self._marks if mark.name == name)


MARKED = [
    (Item(pytest.mark.emu), "emulation"),
    (Item(pytest.mark.peer), "libnorm1"),
    (Item(pytest.mark.peer("tshark")), "tshark"),
]


@pytest.fixture(autouse=True)
def _nothing_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "missing", lambda name: f"needs {name}: get it")


@pytest.mark.parametrize(("item", "name"), MARKED)
def test_a_missing_requirement_skips_with_its_reason(item: Item, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"needs {name}"):
        conftest.pytest_runtest_setup(item)  # type: ignore[arg-type]


@pytest.mark.parametrize(("item", "name"), MARKED)
def test_a_missing_requirement_fails_in_ci(item: Item, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"needs {name}"):
        conftest.pytest_runtest_setup(item)  # type: ignore[arg-type]


def test_tests_without_marks_always_run() -> None:
    conftest.pytest_runtest_setup(Item())  # type: ignore[arg-type]
