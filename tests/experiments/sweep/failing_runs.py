"""Runs that fail on purpose, by their seed; a module of its own, because Spark workers import it."""

import faulthandler
import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from experiments.sweep.run.single_run import perform

__all__ = ["ERROR", "EXITS", "HANGS", "HUNGRY", "SEGFAULT", "perform_or_fail"]

ERROR, HANGS, EXITS, SEGFAULT, HUNGRY = 2, 3, 4, 5, 6


def perform_or_fail(job: Mapping[str, Any]) -> dict[str, Any]:
    """Run the job, but fail for certain seeds."""
    seed = json.loads(job["scenario"])["seed"]
    if seed == ERROR:
        raise ValueError("on purpose")
    if seed == HANGS:
        time.sleep(1000)
    if seed == EXITS:
        os._exit(17)
    if seed == SEGFAULT:
        # Suppress the stack trace that pytest would print.
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == HUNGRY:
        held = bytearray(8_000_000_000)
        assert held
    return perform(job)
