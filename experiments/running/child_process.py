"""Execute runs in a child process with limits, so that a run that hangs, crashes or exhausts memory fails alone."""

import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

__all__ = ["CALLS_PER_SECOND", "ChildProcess", "Perform", "RunOutcome"]

Perform: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Function that executes a run in the child; its result must be picklable."""

PR_SET_PDEATHSIG = 1
CALLS_PER_SECOND = 10
"""Checks per second whether a run is to be ended."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run: `status` is ok, error, timeout, crashed or stopped; `result` is the result of `perform` if ok."""

    status: str
    error: str | None
    result: dict[str, Any] | None
    duration: float
    cpu: float


class ChildProcess:
    """A forked child that executes runs one after another, and is replaced when it dies.

    The child inherits imported modules. `time_limit` is in seconds of wall-clock time, `memory` in bytes.
    """

    def __init__(self, perform: Perform, time_limit: float, memory: int) -> None:
        self._perform = perform
        self._limit = time_limit
        self._memory = memory
        self._child: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(self, job: Mapping[str, Any], is_stopped: Callable[[], bool] = _never) -> RunOutcome:
        """Execute one run; failures are reported in the outcome, never raised.

        It is ended when `is_stopped`, which is called `CALLS_PER_SECOND` times a second, returns True.
        """
        if self._child is None:
            self._start()
        assert self._pipe is not None
        began = time.monotonic()
        try:
            self._pipe.send(job)
            while not self._pipe.poll(min(1 / CALLS_PER_SECOND, max(began + self._limit - time.monotonic(), 0.0))):
                if is_stopped():
                    self.close()
                    return RunOutcome("stopped", None, None, time.monotonic() - began, 0.0)
                if time.monotonic() - began >= self._limit:
                    self.close()
                    return RunOutcome("timeout", f"not finished after {self._limit:g} s", None, time.monotonic() - began, 0.0)
            status, error, result, cpu = self._pipe.recv()
        except (EOFError, OSError):
            return RunOutcome("crashed", self._reap(), None, time.monotonic() - began, 0.0)
        return RunOutcome(status, error, result, time.monotonic() - began, cpu)

    def close(self) -> None:
        """Kill the child."""
        if self._child is not None:
            self._child.kill()
            self._reap()

    def _start(self) -> None:
        # Forking takes milliseconds; spawning would start an interpreter and import everything.
        context = multiprocessing.get_context("fork")
        self._pipe, child_end = context.Pipe()
        self._child = context.Process(target=_serve, args=(child_end, self._pipe, self._perform, self._memory), daemon=True)
        self._child.start()
        child_end.close()

    def _reap(self) -> str:
        """Reap a dead or dying child; return how it ended."""
        assert self._pipe is not None
        self._pipe.close()
        self._child.join()
        code = self._child.exitcode
        self._child = self._pipe = None
        if code < 0:
            return f"its process was killed by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


def _serve(pipe: Connection, child_end: Connection, perform: Perform, memory: int) -> None:
    """Loop of the child: receive a job, execute it, send the outcome; exit when the pipe closes."""
    child_end.close()
    # Die with the parent, by whatever signal it ends.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory(memory)
    # Exclude objects inherited from the parent from garbage collection.
    gc.collect()
    gc.freeze()
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        began = time.process_time()
        result: dict[str, Any] | None = None
        try:
            result = perform(job)
            status, error = "ok", None
        except Exception as raised:  # noqa: BLE001  (any exception of a run is its outcome)
            status, error = "error", _reason(raised)
        pipe.send((status, error, result, time.process_time() - began))


def _limit_memory(more: int) -> None:
    """Limit the data segment to the current size plus `more` bytes; allocations beyond it raise MemoryError."""
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + more
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _reason(error: Exception) -> str:
    """Format an exception as one line with its location, independent of the install path."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{where}"
