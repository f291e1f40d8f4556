"""Find the sessions of this user on this machine, and ask them for their statistics."""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from emu.attachment import peer_user
from experiments.monitor.announcement import PREFIX
from protocols.snapshot import MEASURES, Measure, Snapshot

__all__ = ["Answer", "Questioning", "ask", "read_answer", "read_time", "running"]

LONGEST = 8 << 20
"""Bytes of an answer, beyond which it is refused."""
PATIENCE = 1.0
"""Seconds that a session may take to answer."""
DEEPEST, MOST_PARTS = 8, 10_000
_UNITS = ("", "bytes", "seconds", "bytes/s", "ratio")


@dataclass(frozen=True, slots=True)
class Answer:
    """One report of a session: process, command, its time in seconds, statistics, and the meaning of their names."""

    pid: int
    command: str
    time: float
    statistics: Snapshot
    measures: Mapping[str, Measure]
    managed: int | None = None
    """The id by which the process announces itself on a management group, if it does."""


def running(table: Path = Path("/proc/net/unix")) -> list[str]:
    """Return the names of the sockets at which sessions of this user listen (proc(5))."""
    own = f"@{PREFIX}{os.geteuid()}/"
    rows = [line.split() for line in table.read_text(encoding="ascii", errors="replace").splitlines()[1:]]
    return sorted({row[7][1:] for row in rows if len(row) == 8 and row[7].startswith(own) and row[3] == "00010000"})


async def ask(name: str) -> Answer | None:
    """Return the answer of a session; None if it has ended, is another user's, is slow, or makes no sense."""
    with Questioning(name) as questioning:
        questioning.ask()
        await questioning.wait()
        return questioning.answer


class Questioning:
    """A connection with a session, which is asked again and again. It opens itself with the first question.

    `answer` is the last one, None before the first and after anything went wrong.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.answer: Answer | None = None
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._data = bytearray()
        self._told = b""
        self._answered = asyncio.Event()
        self._asked_at = 0.0
        self._is_reused = False

    def __enter__(self) -> "Questioning":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self) -> None:
        """Ask; `wait` for the answer."""
        self._answered.clear()
        self._asked_at = self._loop.time()
        try:
            if self._socket is None:
                self._open()
            else:
                self._is_reused = True
                self._socket.send(b"?")
        except OSError:
            self._go_on()

    def _open(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.setblocking(False)
        # To connect to a Unix socket takes no time.
        self._socket.connect(f"\0{self.name}")
        if peer_user(self._socket) != os.geteuid():
            raise PermissionError(self.name)
        self._loop.add_reader(self._socket, self._read)

    async def wait(self) -> None:
        """Wait for the answer, for a limited time; a session that gives none is asked again by a new connection."""
        if self._answered.is_set():
            return
        try:
            async with asyncio.timeout_at(self._asked_at + PATIENCE):
                await self._answered.wait()
        except TimeoutError:
            self._fail()

    def _read(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._data += data
        if self._data.count(b"\n") >= 2:
            self._take()
        elif len(self._data) > LONGEST:
            self._fail()
        if not data:
            if self._answered.is_set():
                self._close_socket()
            else:
                self._go_on()

    def _go_on(self) -> None:
        """Ask again by a new connection where an earlier answer was the last of the old one, as an emulation does."""
        if not self._is_reused:
            self._fail()
            return
        self._close_socket()
        try:
            self._open()
        except OSError:
            self._fail()

    def _take(self) -> None:
        """Read an answer. Where only the time is new, the statistics are those of before."""
        time, told, _ = bytes(self._data).split(b"\n", 2)
        self._data.clear()
        try:
            at = read_time(json.loads(time))
            if self.answer is None or told != self._told:
                self.answer = read_answer(json.loads(told), at)
            else:
                self.answer = replace(self.answer, time=at)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            self._fail()
        self._told = told
        self._answered.set()

    def _fail(self) -> None:
        self.answer = None
        self.close()
        self._answered.set()

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        self._close_socket()
        self._told = b""

    def _close_socket(self) -> None:
        self._is_reused = False
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._data.clear()


def read_time(plain: Any) -> float:
    """Return a time in seconds. Raises ValueError or TypeError for anything else."""
    time = float(plain)
    if not isfinite(time):
        raise ValueError(f"time {time}")
    return time


def read_answer(plain: Any, time: float = 0.0) -> Answer:
    """Return the answer in plain values, made at `time`.

    Raises ValueError, KeyError, TypeError or AttributeError for anything else.
    """
    own = [_measure(row) for row in plain["measures"]]
    left = [MOST_PARTS]
    statistics = _snapshot(plain["statistics"], DEEPEST, left)
    measures, managed = {**MEASURES, **{each.name: each for each in own}}, plain.get("managed")
    return Answer(
        int(plain["pid"]), str(plain["command"]), time, statistics, measures, None if managed is None else int(managed)
    )


def _measure(row: Any) -> Measure:
    name, kind, unit, told = map(str, row)
    if kind not in ("counter", "gauge") or unit not in _UNITS:
        raise ValueError(f"{kind} in {unit}")
    return Measure(name, told, unit, kind)  # type: ignore[arg-type]


def _snapshot(plain: Any, depth: int, left: list[int]) -> Snapshot:
    left[0] -= 1
    if depth < 0 or left[0] < 0:
        raise ValueError("too many parts")
    values, states = plain.get("values", {}), plain.get("states", {})
    for value in values.values():
        if type(value) not in (int, float) or not isfinite(value):
            raise ValueError(f"{value!r} is no number")
    for word in states.values():
        if type(word) is not str:
            raise ValueError(f"{word!r} is no word")
    parts = [_snapshot(part, depth - 1, left) for part in plain.get("parts", ())]
    return Snapshot(str(plain["part"]), str(plain.get("name", "")), values, states, parts)
