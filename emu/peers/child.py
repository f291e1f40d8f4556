"""A foreign program on a host: a child process that ends with this one, its output, and the port at which it listens."""

import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from emu.addresses import SocketAddress, text_of
from emu.peers.output import last_line
from protocols.errors import UsageError

__all__ = ["Child"]

_POLL = 0.02
_TERMINATION = 2.0
"""Seconds that a program may take to end after SIGTERM."""
_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Runs a command so that the kernel kills it when the process that started it dies."""


class Child:
    """A running command.

    Its output is a pipe with `reads`, else the file `output` in its folder; its input is a pipe with `writes`, else empty.
    """

    def __init__(self, command: Sequence[str], folder: Path, *, reads: bool = False, writes: bool = False) -> None:
        self._command = command
        self._output = folder / "output"
        wrapped = [shutil.which(_WITH_PARENT[0]) or _WITH_PARENT[0], *_WITH_PARENT[1:], *command]
        with self._output.open("ab") as log:
            self.process = subprocess.Popen(
                wrapped,
                stdin=subprocess.PIPE if writes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if reads else log,
                stderr=log,
                cwd=folder,
            )

    def await_port(self, where: SocketAddress, longest: float) -> None:
        """Wait until it listens at a TCP port. UsageError if it ends before, or takes longer than `longest` seconds."""
        until = time.monotonic() + longest
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(where) == 0:
                    return
            if self.process.poll() is not None:
                raise UsageError(f"{self.failure}, before it listened at {text_of(where)}")
            if time.monotonic() > until:
                raise UsageError(f"{self._command[0]} did not listen at {text_of(where)} within {longest:g} s")
            time.sleep(_POLL)

    @property
    def failure(self) -> str:
        """How the process ended, with the last line that it printed; empty while it runs and after a success."""
        code = self.process.poll()
        if not code:
            return ""
        how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        return f"{self._command[0]} {how}: {last_line(self._output)}"

    def end(self) -> str:
        """End the process if it runs, and return its failure if it had ended by itself before."""
        failed = self.failure
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_TERMINATION)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return failed
