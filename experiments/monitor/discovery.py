"""Find the sessions of this user on this machine, and ask them for their statistics."""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from emu.attachment import peer_user
from experiments.monitor.announcement import PREFIX
from protocols.snapshot import MEASURES, Measure, Snapshot

__all__ = ["Answer", "ask", "read_answer", "running"]

LONGEST = 8 << 20
"""Bytes of an answer, beyond which it is refused."""
PATIENCE = 1.0
"""Seconds that a session may take to answer."""
DEEPEST, MOST_PARTS = 8, 10_000
_UNITS = ("", "bytes", "seconds", "bytes/s", "ratio")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a session tells: its process, the command, its time in seconds, its statistics, and what their names mean."""

    pid: int
    command: str
    time: float
    statistics: Snapshot
    measures: Mapping[str, Measure]


def running(table: Path = Path("/proc/net/unix")) -> list[str]:
    """Return the names of the sockets at which sessions of this user listen (proc(5))."""
    own = f"@{PREFIX}{os.geteuid()}/"
    rows = [line.split() for line in table.read_text(encoding="ascii", errors="replace").splitlines()[1:]]
    return sorted({row[7][1:] for row in rows if len(row) == 8 and row[7].startswith(own) and row[3] == "00010000"})


async def ask(name: str) -> Answer | None:
    """Return the answer of a session; None if it has ended, is another user's, is slow, or makes no sense."""
    try:
        async with asyncio.timeout(PATIENCE):
            with socket.socket(socket.AF_UNIX) as connection:
                # Streams of asyncio would cost more than the rest; to connect to a Unix socket takes no time.
                connection.setblocking(False)
                connection.connect(f"\0{name}")
                data = await _read(connection) if peer_user(connection) == os.geteuid() else None
        return None if data is None else read_answer(json.loads(data))
    except (OSError, TimeoutError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


async def _read(connection: socket.socket) -> bytes | None:
    """Return all that comes; None if it is too much."""
    loop, pieces, size = asyncio.get_running_loop(), list[bytes](), 0
    while piece := await loop.sock_recv(connection, 1 << 18):
        pieces.append(piece)
        size += len(piece)
        if size > LONGEST:
            return None
    return b"".join(pieces)


def read_answer(plain: Any) -> Answer:
    """Return the answer in plain values. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    own = [_measure(row) for row in plain["measures"]]
    time, left = float(plain["time"]), [MOST_PARTS]
    if not isfinite(time):
        raise ValueError(f"time {time}")
    statistics = _snapshot(plain["statistics"], DEEPEST, left)
    return Answer(int(plain["pid"]), str(plain["command"]), time, statistics, {**MEASURES, **{each.name: each for each in own}})


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
