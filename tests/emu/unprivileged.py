"""Work done by a process that gave up all its rights."""

import ctypes
import json
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.support.stranger import NOBODY

__all__ = ["NOBODY", "run_unprivileged"]


def run_unprivileged(work: Callable[[], Any]) -> Any:
    """What `work()` returns, JSON-able, in a process of the user nobody; to be called by root."""
    # A process without rights may not be able to read our libraries, so what it will need is loaded before.
    for name in ("mininet.net", "mininet.nodelib"):
        import_module(name)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            # A process that gave up its rights does not own its own files in /proc until it says so.
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)
