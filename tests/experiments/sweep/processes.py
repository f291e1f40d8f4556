"""Descendants of a process, so that tests can kill some of them."""

import os
from pathlib import Path

__all__ = ["alive", "below", "command_of"]


def command_of(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, int] | None:
    """Return state and parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def alive(pid: int) -> bool:
    """Return whether a process still runs; a zombie does not."""
    found = _stat(pid)
    return found is not None and found[0] != "Z"


def below(pid: int) -> list[int]:
    """Return all descendants of a process, parents before their children."""
    parents = {int(name): found[1] for name in os.listdir("/proc") if name.isdigit() and (found := _stat(int(name)))}
    below_it: list[int] = []
    left = [pid]
    while left:
        children = [child for child, parent in parents.items() if parent == left[0]]
        left = left[1:] + children
        below_it += children
    return below_it
