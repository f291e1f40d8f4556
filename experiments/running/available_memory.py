"""The memory this process may still take: what the machine has, its control group allows, and its own limits allow."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["available_memory"]


def available_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that can be allocated: the least of all limits.

    `proc` and `groups` are where the kernel shows processes and control groups (version 1 or 2).
    """
    return max(0, min(_machine(proc), _address_space(proc), *_groups(proc, groups)))


def _machine(proc: Path) -> int:
    """Return MemAvailable: what can be allocated without swapping."""
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _address_space(proc: Path) -> int:
    """Return what RLIMIT_AS and RLIMIT_DATA leave of address space and data segment."""
    pages = [int(field) for field in (proc / "self" / "statm").read_text().split()]
    rest = []
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            rest.append(soft - used * os.sysconf("SC_PAGE_SIZE"))
    return min(rest, default=1 << 62)


def _groups(proc: Path, groups: Path) -> Iterator[int]:
    """Yield what each control group of this process leaves; file cache that it can drop counts as free."""
    with suppress(OSError):
        for line in (proc / "self" / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _rest(groups, path, "memory.max", "memory.current", "inactive_file")
            elif "memory" in controllers.split(","):
                names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
                yield from _rest(groups / "memory", path, *names)


def _rest(root: Path, path: str, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield what a group and those above it leave; a group without a limit, or that is not shown, leaves everything."""
    here = root / path.lstrip("/")
    for folder in (here, *here.parents):
        if folder == root.parent:
            return
        with suppress(OSError, ValueError):
            allowed, used = int((folder / limit).read_text()), int((folder / usage).read_text())
            yield allowed - used + _field(folder / "memory.stat", cache)


def _field(file: Path, name: str) -> int:
    fields = dict(line.split() for line in file.read_text().splitlines())
    return int(fields.get(name, 0))
