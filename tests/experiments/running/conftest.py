"""Fixtures for `mcastlab send` and `mcastlab recv` as processes."""

from collections.abc import Iterator

import pytest

from tests.support.transfers import Processes, new_group


@pytest.fixture
def live() -> Iterator[Processes]:
    """Return the processes of a group of the test's own; those that still run after it are killed."""
    processes = Processes(new_group())
    yield processes
    processes.close()
