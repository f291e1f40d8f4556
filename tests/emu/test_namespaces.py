"""Isolated code has namespaces of its own, reports its errors, and leaves nothing behind however it ends."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from emu.namespaces import IsolatedRunError, run_isolated
from emu.requirements import run
from protocols.errors import ConfigError, UnsupportedError

pytestmark = pytest.mark.emu

BUSY = """
import os, sys, time
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from emu.namespaces import run_isolated
from topologies.generators import Lan

def work():
    network = EmulatedNetwork(plan_emulation(Lan.model_validate({"receivers": 2}).build()))
    print("built", os.readlink("/proc/self/ns/net"), flush=True)
    time.sleep(600)

run_isolated(work)
"""


def test_isolated_code_sees_no_devices_or_processes_outside() -> None:
    devices, numbers, runs = run_isolated(lambda: [os.listdir("/sys/class/net"), _processes(), os.listdir("/run")])
    assert devices == ["lo"]
    assert 1 in numbers
    assert len(numbers) < 10
    assert runs == []


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def test_the_loopback_device_of_a_new_namespace_works() -> None:
    assert "1 received" in run_isolated(lambda: run("ping -c 1 -W 1 127.0.0.1"))


def test_the_result_of_isolated_code_is_returned() -> None:
    assert run_isolated(lambda: {"a": [1, 2.5, None, "ä" * 100_000]}) == {"a": [1, 2.5, None, "ä" * 100_000]}


def test_a_run_does_not_need_its_working_directory(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    def work() -> str:
        os.chdir(gone)
        gone.rmdir()
        return str(run_isolated(lambda: run(f"mnexec -a {os.getpid()} pwd")))

    # The process that leaves its folder must not be that of the tests.
    assert run_isolated(work) == "/\n"


def test_too_many_open_files_are_told_as_such() -> None:
    def work() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(UnsupportedError, match="ulimit -n"):
        run_isolated(work)


def test_errors_of_this_project_are_raised_again() -> None:
    def work() -> None:
        raise ConfigError("rate: 0 is not allowed")

    with pytest.raises(ConfigError, match="rate: 0 is not allowed"):
        run_isolated(work)


@pytest.mark.parametrize("work", [lambda: 1 / 0, object, lambda: sys.exit(3)])
def test_other_exceptions_are_reported_with_their_traceback(work: Callable[[], object]) -> None:
    with pytest.raises(IsolatedRunError, match=r"ZeroDivisionError|not JSON serializable|SystemExit"):
        run_isolated(work)


def test_a_command_that_fails_is_reported_in_one_line_with_what_it_said() -> None:
    with pytest.raises(IsolatedRunError) as failed:
        run_isolated(lambda: run("echo first >&2; echo no such queue >&2; exit 2"))
    assert str(failed.value).startswith("emulation: a command of the set-up failed: no such queue (sh -c 'echo first")
    assert "\n" not in str(failed.value)


def test_a_killed_worker_is_an_error() -> None:
    with pytest.raises(IsolatedRunError, match="killed"):
        run_isolated(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_isolated_runs_can_be_nested() -> None:
    def work() -> list[str]:
        run("ip link add samename type bridge")
        return os.listdir("/sys/class/net")

    def nested() -> list[list[str]]:
        run("ip link add samename type bridge")
        return [run_isolated(work), os.listdir("/sys/class/net")]

    assert [sorted(devices) for devices in run_isolated(nested)] == [["lo", "samename"]] * 2


def start_busy() -> tuple["subprocess.Popen[str]", str]:
    """Start a process that builds a network in namespaces of its own; return it and the name of its network namespace."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    status, namespace = process.stdout.readline().split()
    assert status == "built"
    return process, namespace


def namespaces() -> set[str]:
    """Return the network namespaces of all processes."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            found.add(os.readlink(f"/proc/{name}/ns/net"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whatever_ends_the_caller_leaves_no_process_namespace_or_link(number: signal.Signals) -> None:
    links = sorted(os.listdir("/sys/class/net"))
    process, namespace = start_busy()
    children = descendants(process.pid)
    # At least guard, process 1, worker, and a shell for each of three hosts and the switch.
    assert len(children) >= 7
    # While the namespace is open here, no other gets its number.
    with held_open(namespace, children):
        process.send_signal(number)
        process.wait(10)
        deadline = time.monotonic() + 10
        while alive(children) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert alive(children) == []
        assert namespace not in namespaces()
    assert sorted(os.listdir("/sys/class/net")) == links


def held_open(namespace: str, pids: list[int]) -> BinaryIO:
    """Open the network namespace of this name, in which one of the processes is."""
    for pid in pids:
        if os.readlink(f"/proc/{pid}/ns/net") == namespace:
            return open(f"/proc/{pid}/ns/net", "rb")
    raise LookupError(namespace)


def descendants(pid: int) -> list[int]:
    """Return all descendants of the process `pid`."""
    below = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        below += [int(child), *descendants(int(child))]
    return below


def alive(pids: list[int]) -> list[int]:
    """Return those of the processes that exist."""
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
