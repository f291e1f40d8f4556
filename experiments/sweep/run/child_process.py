"""Makes runs in a child process, so that one that hangs, crashes or eats the memory is one failed row and no more."""

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

__all__ = ["ChildProcess", "Perform", "RunOutcome"]

Perform: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes a run, in the child; what it returns can be pickled."""

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of a run: `status` is ok, error, timeout or crashed; `told` is what `perform` returned when it is ok."""

    status: str
    error: str | None
    told: dict[str, Any] | None
    duration: float
    cpu: float


class ChildProcess:
    """A child that makes one run after the other, and is replaced when it dies. Forked: what is imported here is there."""

    def __init__(self, perform: Perform, time_limit: float, memory: int) -> None:
        self._perform = perform
        self._limit = time_limit
        self._memory = memory
        self._child: Any = None
        self._line: Connection | None = None

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(self, job: Mapping[str, Any]) -> RunOutcome:
        """Make one run; always comes back, with the reason when it went wrong."""
        if self._child is None:
            self._start()
        assert self._line is not None
        began = time.monotonic()
        try:
            self._line.send(job)
            if not self._line.poll(self._limit):
                self.close()
                return RunOutcome("timeout", f"not over after {self._limit:g} s", None, time.monotonic() - began, 0.0)
            status, error, told, cpu = self._line.recv()
        except (EOFError, OSError):
            return RunOutcome("crashed", self._bury(), None, time.monotonic() - began, 0.0)
        return RunOutcome(status, error, told, time.monotonic() - began, cpu)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._bury()

    def _start(self) -> None:
        # Forked, so that a child costs milliseconds and not an interpreter with everything to import.
        context = multiprocessing.get_context("fork")
        self._line, far = context.Pipe()
        self._child = context.Process(target=_serve, args=(far, self._line, self._perform, self._memory), daemon=True)
        self._child.start()
        far.close()

    def _bury(self) -> str:
        """Forget a child that is dead or dying; says of what."""
        assert self._line is not None
        self._line.close()
        self._child.join()
        code = self._child.exitcode
        self._child = self._line = None
        if code < 0:
            return f"its process was killed by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


def _serve(line: Connection, far: Connection, perform: Perform, memory: int) -> None:
    """What the child does until nobody listens any more."""
    far.close()
    # When the worker dies, by whatever signal, nobody would wait for this run.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory(memory)
    # What is there already is not looked through again and again.
    gc.collect()
    gc.freeze()
    while True:
        try:
            job = line.recv()
        except (EOFError, OSError):
            os._exit(0)
        began = time.process_time()
        told: dict[str, Any] | None = None
        try:
            told = perform(job)
            status, error = "ok", None
        except Exception as raised:  # noqa: BLE001  (whatever a run raises is its result)
            status, error = "error", _reason(raised)
        line.send((status, error, told, time.process_time() - began))


def _limit_memory(more: int) -> None:
    """Allow that many bytes more than there are now; beyond that, MemoryError."""
    used = sum(map(int, Path("/proc/self/statm").read_text().split()[5:6])) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + more
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _reason(error: Exception) -> str:
    """One line, the same wherever the code lies: what was raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{where}"
