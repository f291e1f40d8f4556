"""A user's command line as a node of an emulation, with parameters in environment variables.

A sender is given all its files; a receiver writes what it receives into a folder. Each runs once. Output goes to a file in the
node's folder; its last line is reported when the command fails.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from emu.addresses import socket_address_of
from emu.foreign_program import ForeignContext, ForeignProgram, write_content
from emu.namespaces import die_with_parent
from emu.peers.meter import Meter
from emu.peers.output import last_line
from protocols.errors import UsageError
from protocols.machine import Content, Group

__all__ = ["CommandReceiver", "CommandSender"]

_JOIN_TIMEOUT = 10.0
"""Seconds within which a receiver must join its group."""
_POLL = 0.02
_EXIT_TIMEOUT, _TERMINATION_TIMEOUT = 1.0, 2.0
"""Seconds that a receiver may take to end by itself after the run, and then to end after SIGTERM."""
_VARIABLE = re.compile(r"\$(?:\{(MCASTLAB_[A-Z]+)\}|(MCASTLAB_[A-Z]+))")
_FILES = ("$MCASTLAB_FILES", "${MCASTLAB_FILES}")


class _Command(ForeignProgram):
    """A process on the host, its output, and the traffic meter."""

    role = ""

    def __init__(self, command: Sequence[str], node: int, group: Group) -> None:
        self._command, self._node, self._group = command, node, group
        self._process: subprocess.Popen[bytes] | None = None
        self._failures: list[str] = []

    def prepare(self, context: ForeignContext) -> None:
        """Start metering, then start or schedule the command."""
        self._context = context
        self._meter = Meter(context.loop, context.device, None)
        self._received = context.folder / "received"
        self._received.mkdir()
        self._prepare()

    def _prepare(self) -> None:
        """Start the command or schedule its start."""

    def _environment(self, **more: str) -> dict[str, str]:
        group, port, *_ = socket_address_of(self._group.name)
        variables = {"ROLE": self.role, "HOST": self._context.name, "NODE": str(self._node), "GROUP": group, "PORT": str(port)}
        variables |= {"ADDRESS": self._context.address, "DEVICE": self._context.device, "FOLDER": str(self._received)}
        variables |= {"TTL": str(self._context.ttl), **more}
        return {f"MCASTLAB_{key}": value for key, value in variables.items()}

    def _run(self, **more: str) -> None:
        """Start the command, without waiting for it."""
        variables = self._environment(**more)
        arguments = [new for word in self._command for new in _expand(word, variables)]
        folder, environment = self._context.folder, os.environ | variables
        with self._log.open("ab") as log:
            try:
                # preexec_fn is safe in a process of one thread; the command must not outlive the node.
                self._process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=environment,
                    preexec_fn=die_with_parent,  # noqa: PLW1509
                )
            except OSError as error:
                raise UsageError(f"{arguments[0]}: can't be run ({error.strerror})") from error

    @property
    def _log(self) -> Path:
        return self._context.folder / "output"

    def _record_failure(self, code: int) -> None:
        """Record the exit code of a failed command and the last line of its output."""
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
        self._failures.append(f"{self._command[0]} {how}: {last_line(self._log)}")

    def _report(self, **values: Any) -> dict[str, Any]:
        fault = "; ".join(self._failures) or None
        return {"role": self.role, "counts": {}, "meter": self._meter.report(), "fault": fault, **values}

    def close(self) -> None:
        """Terminate the command if it still runs, and stop metering."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_TERMINATION_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._meter.close()

    def counters(self) -> dict[str, int]:
        """Return the counters of the meter."""
        return self._meter.counters()

    def kill(self) -> None:
        """Kill the command."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._meter.close()


def _expand(word: str, variables: dict[str, str]) -> list[str]:
    """Replace the variables in an argument; $MCASTLAB_FILES alone becomes one argument for each file."""
    if word in _FILES:
        return variables.get("MCASTLAB_FILES", "").split("\n")
    return [_VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), word)]


class CommandSender(_Command):
    """Runs the command at a time of the run; finished when it has ended."""

    role = "sender"

    def __init__(self, command: Sequence[str], node: int, group: Group, at: float, contents: Sequence[Content]) -> None:
        super().__init__(command, node, group)
        self._at = at
        self._contents = contents
        self._paths: list[Path] = []
        self._sent: list[list[int]] = []
        self._ended_at: float | None = None

    def _prepare(self) -> None:
        for number, content in enumerate(self._contents):
            self._paths.append(self._context.folder / (content.info.decode() or f"object-{number}"))
            write_content(content, self._paths[-1])
        self._context.later(self._at, self._send)
        self._context.ready()

    def _send(self) -> None:
        self._sent = [[number, number] for number in range(len(self._paths))]
        self._run(FILE=str(self._paths[0]), FILES="\n".join(map(str, self._paths)))
        self._poll()

    def _poll(self) -> None:
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            self._context.loop.call_later(_POLL, self._poll)
            return
        self._ended_at = self._context.now
        if code:
            self._record_failure(code)

    def finished(self) -> bool:
        """Return whether the command has ended, successfully or not."""
        return self._ended_at is not None

    def result(self) -> dict[str, Any]:
        """Return the result in the form of `SenderProgram`; objects are numbered in the order of the files."""
        return self._report(ended_at=self._ended_at, sent=self._sent, failures=self._failures)


class CommandReceiver(_Command):
    """Starts the command before the run, and is ready when it has joined the group."""

    role = "receiver"

    def _prepare(self) -> None:
        self._run()
        self._await_joining(time.monotonic() + _JOIN_TIMEOUT)

    def _await_joining(self, until: float) -> None:
        assert self._process is not None
        address = socket_address_of(self._group.name)[0]
        # /proc/net/igmp lists groups as integers in host byte order.
        number = f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}"
        if number in Path("/proc/self/net/igmp").read_text():
            self._context.ready()
        elif (code := self._process.poll()) is not None:
            self._record_failure(code)
            raise UsageError(f"{self._failures[0]}, before it joined {address}")
        elif time.monotonic() > until:
            raise UsageError(f"{self._command[0]} did not join {address} within {_JOIN_TIMEOUT:g} s")
        else:
            self._context.loop.call_later(_POLL, self._await_joining, until)

    def finished(self) -> bool:
        """Never: a run does not wait for receivers."""
        return False

    def close(self) -> None:
        """Let the command end by itself for a moment, then terminate it."""
        assert self._process is not None
        try:
            code = self._process.wait(_EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            code = 0
        if code:
            self._record_failure(code)
        super().close()

    def result(self) -> dict[str, Any]:
        """Return the files of the folder; an object counts as complete at the last modification of its file."""
        files = [path for path in sorted(self._received.rglob("*")) if path.is_file()]
        # Modification times are wall-clock times.
        shift = time.time() - self._context.now
        times = [path.stat().st_mtime - shift for path in files]
        return self._report(
            files=[[path.stat().st_size, sha256(path.read_bytes()).hexdigest()] for path in files],
            first_at=min(times, default=None),
            last_at=max(times, default=None),
            duplicates=0,
            aborted=0,
        )
