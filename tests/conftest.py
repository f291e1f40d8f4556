"""Skip tests whose requirements this machine does not meet, and schedule tests over worker processes.

Tests marked `emu` or `peer` are skipped with a reason where what they need is missing, and fail with CI=true. With pytest-xdist
(`-n`), [workers](support/workers.py) says which tests stay together.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from experiments.sweep.run.spark_servers import servers, stop_server
from tests.support.needs import missing
from tests.support.workers import Kinds, holding, in_order, kind_of

SESSION = "MCASTLAB_TEST_SESSION"
"""Environment variable with the folder that all processes of a test session know."""


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment that processes started by tests inherit."""
    # A shell that starts pytest in the background ignores SIGINT for it and its children, and `nohup` SIGHUP, but tests send
    # them to their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Each of some hundred processes would compile all modules again, and each worker all tests.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Many short Spark sessions are started: the serial collector costs less than threads for garbage collection.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC")
    if not hasattr(config, "workerinput"):
        os.environ[SESSION] = tempfile.mkdtemp(prefix="mcastlab-tests-")
        # Tests share a warm Spark server of their own, which ends with the session, or a minute after a killed one.
        os.environ["MCASTLAB_SPARK_DIR"] = tempfile.mkdtemp(prefix="mcastlab-spark-")
        os.environ["MCASTLAB_SPARK_IDLE"] = "60"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the Spark servers that tests started."""
    if hasattr(config, "workerinput"):
        return
    for path in list(servers()):
        stop_server(path)
    for name in (SESSION, "MCASTLAB_SPARK_DIR"):
        shutil.rmtree(os.environ[name], ignore_errors=True)
    # Tables are as wide as in a pipe, also under pytest-xdist, which sets this.
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign whole units to a worker; return None to keep the scheduling of other modes (`--dist`)."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    setattr(scheduler, "_split_scope", Kinds(Path(os.environ[SESSION])).unit_of)  # noqa: B010 - a method that is meant to be replaced
    return scheduler


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Start two workers more than processors, since about half of the time is waiting; none on a single processor."""
    processors = len(os.sched_getaffinity(0))
    return processors + 2 if processors > 1 else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests when several workers run them; a single process keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)
        Kinds(Path(os.environ[SESSION])).tell(items)


def pytest_collection_finish() -> None:
    """Exclude objects made during collection from garbage collection, since they stay until the end, and search less often."""
    gc.set_threshold(20_000, *gc.get_threshold()[1:])
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test while no other worker runs one that it excludes; its timeout starts only then."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with holding(Path(os.environ[SESSION]), kind_of(item)):
        return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check the marks before the fixtures of the test are made."""
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
