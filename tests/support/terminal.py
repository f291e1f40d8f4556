"""A program on a pseudo-terminal, as a user in front of it sees it."""

import os
import pty
import re
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Terminal", "terminal"]

SECONDS = 60.0
COLOURS = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]")


class Terminal:
    """A pseudo-terminal with a program in it, which is process `pid`."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self._master = master
        self._text = ""

    def type(self, text: str) -> None:
        """Type text; a line ends with \\n, and \\x03 is Ctrl-C, \\x04 Ctrl-D."""
        os.write(self._master, text.encode())

    def expect(self, wanted: str) -> str:
        """Wait until the text is on the terminal; return all until there, and forget it."""
        end = time.monotonic() + SECONDS
        while wanted not in self._text:
            assert self._read(end), f"no {wanted!r} in {self._text!r}"
        before, _, self._text = self._text.partition(wanted)
        return before + wanted

    def insist(self, text: str, wanted: str) -> str:
        """Type text every second until `wanted` is on the terminal; see `expect`.

        For Ctrl-C at a prompt: Python notices a signal only once it waits for input, shortly after it has shown the prompt.
        """
        for _ in range(int(SECONDS)):
            self.type(text)
            end = time.monotonic() + 1
            while wanted not in self._text and self._read(end):
                pass
            if wanted in self._text:
                break
        return self.expect(wanted)

    def end(self) -> tuple[int, str]:
        """Wait for the end of the program; return its exit code, negative for a signal, and the rest of its text."""
        while self._read(time.monotonic() + SECONDS):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self._text

    def _read(self, end: float) -> bool:
        """Read what comes next; returns whether something came before the time and the end of the program."""
        if not select.select([self._master], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            # Linux reports the end of the other side as an error.
            return False
        self._text += COLOURS.sub("", data.decode(errors="replace").replace("\r", ""))
        return bool(data)


@contextmanager
def terminal(command: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ) -> Iterator[Terminal]:
    """Run a command on a terminal of its own, which hangs up at the end of the block."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], list(command), {**environment, "TERM": "dumb", "COLUMNS": "80"})
    try:
        yield Terminal(pid, master)
    finally:
        os.close(master)
