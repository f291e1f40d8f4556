"""What this machine has: tests marked `emu` or `peer` are skipped with a reason where it is missing, and fail with CI=true."""

import os

import pytest

from tests.support.needs import missing


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look at the marks before the fixtures of the test are made."""
    needed = ["emulation"] if item.get_closest_marker("emu") else []
    for mark in item.iter_markers("peer"):
        needed.extend(map(str, mark.args or ("libnorm1",)))
    for name in needed:
        reason = missing(name)
        if reason is None:
            continue
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to have everything: {reason}", pytrace=False)
        pytest.skip(reason)
