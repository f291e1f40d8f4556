"""What this machine has, and how tests share its processors.

Tests marked `emu` or `peer` are skipped with a reason where what they need is missing, and fail with CI=true. With pytest-xdist
(`-n`), [workers](support/workers.py) says which tests stay together.
"""

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.needs import missing
from tests.support.workers import holding, in_order, unit_of


def pytest_configure(config: pytest.Config) -> None:
    """Set what the processes that tests start inherit."""
    # A shell that starts us in the background ignores SIGINT for us and for all we start; tests interrupt what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Many short sessions of Spark are made: threads that collect garbage cost more than they bring.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give every process whole units; None leaves other modes (`--dist`) as they are."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    setattr(scheduler, "_split_scope", unit_of)  # noqa: B010 - a method that is meant to be replaced
    return scheduler


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than processors, since every third second a test waits for a network; on one processor no extra ones."""
    processors = len(os.sched_getaffinity(0))
    return processors + 1 if processors > 1 else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests where several processes run them; one process keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)


def pytest_collection_finish() -> None:
    """Leave what collection made out of garbage collections; it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let a `serial` test run while no other process runs a test; the clock of its timeout starts only then."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    # The folders for temporary files of all processes are in one.
    lock = Path(item.config.option.basetemp).parent / "serial.lock"
    with holding(lock, shared=item.get_closest_marker("serial") is None):
        return (yield)


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
