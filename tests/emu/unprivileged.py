"""Run code in a process that has dropped all privileges."""

import ctypes
import json
import os
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tests.support.unprivileged import NOBODY

__all__ = ["NOBODY", "run_unprivileged"]


def run_unprivileged(work: Callable[[], Any]) -> Any:
    """Return the JSON-able result of `work()`, called in a process of the user nobody. Needs root."""
    # The user may not be allowed to read the libraries, so they are loaded before.
    for name in ("mininet.net", "mininet.nodelib"):
        import_module(name)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            # The checkout may be in a folder that is closed to others, such as root's home.
            os.chdir("/")
            # After a change of user a process owns its files in /proc only once it is dumpable (PR_SET_DUMPABLE).
            ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
            os.write(writer, json.dumps({"result": work()}).encode())
        except BaseException:
            os.write(writer, json.dumps({"error": traceback.format_exc()}).encode())
            raise
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        answer = json.load(pipe)
    os.waitpid(child, 0)
    assert "error" not in answer, answer["error"]
    return answer["result"]
