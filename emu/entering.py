"""Run a command in the namespaces of an emulated node, in the foreground of this terminal."""

import ctypes
import os
import signal
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from emu.namespaces import die_with_parent

__all__ = ["run_in_namespaces", "shell_command", "shell_environment"]

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOT_STARTED = 127


def shell_command(line: str = "") -> list[str]:
    """Return the words that run a line in bash, or an interactive bash for an empty line."""
    return ["bash", "-c", line] if line else ["bash", "--norc", *(["-i"] if sys.stdin.isatty() else [])]


def shell_environment(node: str) -> dict[str, str]:
    """Return the environment of commands on a node: that of this process, with a prompt that names the node."""
    return {**os.environ, "PS1": f"{node}:\\w\\$ ", "HISTFILE": ""}


def run_in_namespaces(namespaces: Sequence[int], command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in namespaces, given as descriptors in the order in which to enter them; returns its exit code.

    A command that a signal ended has 128 and the signal's number, like in a shell. The command is in the PID namespace, so it
    ends with the emulation at the latest. The descriptors are closed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with _terminal_restored():
        helper = os.fork()
        if helper == 0:
            _help(namespaces, command, environment)
        for descriptor in namespaces:
            os.close(descriptor)
        return _await(helper)


@contextmanager
def _terminal_restored() -> Iterator[None]:
    """Afterwards take the terminal back into the foreground, with its settings: a shell that was killed leaves it changed."""
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        os.tcsetpgrp(terminal, os.getpgrp())
        termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
        signal.signal(signal.SIGTTOU, before)


def _help(namespaces: Sequence[int], command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run the process between: enter the namespaces, start the command in them, exit like it.

    A process of its own: entering a PID namespace concerns only children, and mount namespaces are entered for good.
    """
    code = _NOT_STARTED
    try:
        die_with_parent()
        folder = os.getcwd()
        # A process is refused entry into the user namespace it is in.
        own = os.stat("/proc/self/ns/user")
        for descriptor in [each for each in namespaces if not os.path.samestat(os.fstat(each), own)]:
            if _LIBC.setns(descriptor, 0) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        child = os.fork()
        if child == 0:
            _execute(command, environment, folder)
        code = _await(child)
    except OSError as error:
        os.write(2, f"mcastlab: the node can't be entered ({error.strerror})\n".encode())
    finally:
        os._exit(code)


def _execute(command: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
    """Become the command: leader of a process group of its own, in the foreground of the terminal, for job control."""
    try:
        die_with_parent()
        with suppress(OSError):
            os.chdir(folder)
        if os.isatty(0):
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpgrp())
        for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        os.write(2, f"mcastlab: {command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _await(child: int) -> int:
    """Wait for a child and return its exit code. A stopped child is continued, since nothing here could do so later."""
    while True:
        try:
            _, status = os.waitpid(child, os.WUNTRACED)
        except KeyboardInterrupt:
            continue
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGCONT)
            continue
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
