"""The part "store" of benchmarks.connections: a commit of the real disk, and how long a million messages take to recover."""

import resource
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue
from subprocess import run
from sys import executable
from typing import Any

from emu.disk import Disk, disk_opener
from protocols.errors import StorageError
from protocols.storage import Put
from topologies.disk_model import DiskModel

__all__ = ["measure_store"]

_MESSAGES = 1_000_000
_SIZE = 100
_COMMITS = 300
_PAGE = 1000


class _Store:
    """A disk whose answers are waited for."""

    def __init__(self, file: Path) -> None:
        self._answers: SimpleQueue[Any] = SimpleQueue()
        opened = disk_opener(file, "host", DiskModel())
        self.disk: Disk = opened(
            lambda function, *arguments: function(*arguments),
            lambda ticket, records: self._answers.put(records),
            self._fail,
        )

    @staticmethod
    def _fail(error: StorageError) -> None:
        raise error

    def answer(self) -> Any:
        """Wait for the next answer."""
        return self._answers.get()


def measure_store() -> dict[str, float]:
    """Return the microseconds of a commit, and for a million stored messages of 100 bytes the seconds and MB to read them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store"
        commit = _fill(file)
        # In a process of its own, whose memory is that of the recovery.
        done = run([executable, "-m", __name__, str(file)], check=True, capture_output=True, text=True)
    seconds, memory = map(float, done.stdout.split())
    return {"commit_us": round(commit * 1e6, 1), "recover_s": round(seconds, 2), "recover_mb": round(memory, 1)}


def _fill(file: Path) -> float:
    """Store the messages; return the median seconds of a commit of one message."""
    store = _Store(file)
    times = []
    for number in range(_COMMITS):
        began = time.perf_counter()
        store.disk.store([Put(number.to_bytes(8, "big"), bytes(_SIZE))])
        store.answer()
        times.append(time.perf_counter() - began)
    for first in range(_COMMITS, _MESSAGES, _PAGE):
        last = min(first + _PAGE, _MESSAGES)
        store.disk.store([Put(number.to_bytes(8, "big"), bytes(_SIZE)) for number in range(first, last)])
        store.answer()
    store.disk.close()
    return sorted(times)[len(times) // 2]


def _recover(file: Path) -> int:
    """Read all messages, a page at a time, as a broker does when it starts; return their number."""
    store = _Store(file)
    found, first = 0, b""
    while True:
        store.disk.fetch(first, None, _PAGE)
        records = store.answer()
        if not records:
            store.disk.close()
            return found
        found += len(records)
        first = records[-1].key + b"\0"


if __name__ == "__main__":
    import sys

    before = time.perf_counter()
    assert _recover(Path(sys.argv[1])) == _MESSAGES
    print(time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
