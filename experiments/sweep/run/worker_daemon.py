"""Spark's daemon that forks Python workers, with the packages of a run imported before the first fork.

Spark starts it instead of `pyspark.daemon` (`spark.python.daemon.module`), so that a worker has nothing left to import.
"""

import gc
import os
import signal
from pathlib import Path
from types import FrameType

from pyspark.daemon import manager

import experiments.sweep.run.single_run
import experiments.sweep.run.task  # noqa: F401

__all__ = ["main"]

IDLE = 300
"""Seconds without a worker after which the daemon ends; Spark starts another when it needs one."""
EVERY = 60


def main() -> None:
    """Serve Spark until it closes stdin, or until there was no worker for IDLE seconds."""
    quiet = 0

    def check(number: int, frame: FrameType | None) -> None:
        nonlocal quiet
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        quiet = 0 if children else quiet + EVERY
        if quiet >= IDLE:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    # Collections of the workers leave out what they share with the daemon.
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
