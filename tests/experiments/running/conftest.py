"""Fixtures for `mcastlab send` and `mcastlab recv` as processes."""

from collections.abc import Iterator

import pytest

from experiments.contract.worlds import new_group
from tests.support.transfers import Processes


@pytest.fixture
def live() -> Iterator[Processes]:
    """Return the processes of a group of the test's own; those that still run after it are killed."""
    processes = Processes(new_group())
    yield processes
    processes.close()
