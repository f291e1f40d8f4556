"""A limit of the memory of this process, by the kernel (getrlimit(2), RLIMIT_DATA)."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["limited_memory"]

_STATUS = Path("/proc/self/status")


@contextmanager
def limited_memory(octets: int | None) -> Iterator[None]:
    """Limit the data of this process to `octets` bytes more than now, within the block; None: no limit.

    Beyond it the kernel refuses memory, and Python raises MemoryError.
    """
    if octets is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_used() + octets, hard))
    try:
        yield
    finally:
        # What reports the end needs some, too.
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _used() -> int:
    """Return the bytes of data of this process."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024
