"""Change qdiscs and filters during a run without the cost of a new process: one running `tc -batch` for each namespace."""

import os
import select
import subprocess
import time

from protocols.errors import UnsupportedError

__all__ = ["TcProcess"]

_TIMEOUT = 5.0


class TcProcess:
    """A `tc` that reads commands, in the network namespace of process `pid`, or this one's for None. It ends with its input."""

    def __init__(self, pid: int | None) -> None:
        within = [] if pid is None else ["mnexec", "-a", str(pid)]
        # With -force tc goes on after a command that fails.
        self._process = subprocess.Popen(
            [*within, "tc", "-force", "-batch", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    def run(self, *commands: str) -> None:
        """Run commands that print nothing. Raises UnsupportedError when the kernel refuses one."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        # Every namespace has a loopback device: the output for it says that all commands before are done.
        process.stdin.write("\n".join([*commands, "qdisc show dev lo", ""]).encode())
        output, until = b"", time.monotonic() + _TIMEOUT
        while not output.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
            chunk = process.stdout.read() if ready else None
            if not chunk:
                raise UnsupportedError(f"tc does not answer: {self._errors()}")
            output += chunk
        if errors := self._errors():
            raise UnsupportedError(f"the kernel refused {'; '.join(commands)}: {errors}")

    def _errors(self) -> str:
        assert self._process.stderr is not None
        return " ".join((self._process.stderr.read() or b"").decode().split())
