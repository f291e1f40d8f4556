"""What is on a disk after a loss of power: each write to the store's files is recorded, and every prefix of them is recovered.

Writes that were not yet synchronised may be missing in any combination, which is sampled.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import apsw
import pytest

from emu.disk import Disk, open_store, prepare
from protocols.errors import StorageError
from protocols.storage import Change, Delete, Put
from topologies.disk_model import DiskModel

_BATCHES = 36
_KEYS = 7


class Operation(NamedTuple):
    """Something that happened to the files, or `told`: batch `place` was reported durable."""

    kind: str
    file: str
    place: int = 0
    data: bytes = b""


class _RecordedFile(apsw.VFSFile):
    """A file whose writes are recorded."""

    def __init__(self, inner: str, name: Any, flags: list[int], operations: list[Operation]) -> None:
        super().__init__(inner, name, flags)
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        self._operations = operations

    def xWrite(self, data: bytes, offset: int) -> None:
        """Record and write."""
        self._operations.append(Operation("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        """Record and truncate."""
        self._operations.append(Operation("truncate", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        """Record and synchronise."""
        self._operations.append(Operation("sync", self._name))
        super().xSync(flags)


class _RecordingVfs(apsw.VFS):
    """A file system that records what is written."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations
        super().__init__("recording", base="")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        """Open a recorded file."""
        return _RecordedFile("", name, flags, self._operations)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Record and delete."""
        self._operations.append(Operation("delete", Path(filename).name))
        super().xDelete(filename, syncdir)


def _changes(batch: int) -> list[Change]:
    """Return the changes of a batch: every key is replaced often, one is deleted again and again."""
    changes: list[Change] = [Put(b"key%d" % ((batch + n) % _KEYS), b"%d" % batch * 300, extra=batch) for n in range(3)]
    return [*changes, Delete(b"sometimes") if batch % 2 else Put(b"sometimes", b"%d" % batch)]


def _states() -> list[dict[bytes, Put]]:
    """Return the records after 0, 1, 2, ... batches."""
    states: list[dict[bytes, Put]] = [{}]
    for batch in range(1, _BATCHES + 1):
        state = dict(states[-1])
        for change in _changes(batch):
            if isinstance(change, Put):
                state[change.key] = change
            else:
                state.pop(change.key, None)
        states.append(state)
    return states


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> list[Operation]:
    """Return all that happens to the files of a store while batches are stored, checkpoints included."""
    recorded: list[Operation] = []
    vfs = _RecordingVfs(recorded)
    file = tmp_path_factory.mktemp("recorded") / "store"
    store = apsw.Connection(str(file), vfs="recording")
    prepare(store, "store", None)
    # Files made and deleted until here are durable: `open_store` synchronises their folder.
    recorded.append(Operation("ready", ""))
    store.execute("PRAGMA wal_autocheckpoint = 8")
    done = Event()

    def fail(error: StorageError) -> None:
        raise error

    def in_loop(function: Callable[..., None], *arguments: object) -> None:
        function(*arguments)

    def answer(ticket: int, records: object) -> None:
        del records
        recorded.append(Operation("told", "", ticket))
        done.set()

    disk = Disk(store, "h1", DiskModel(), in_loop, answer, fail)
    for batch in range(1, _BATCHES + 1):
        done.clear()
        disk.store(_changes(batch))
        if batch % 4:
            # Else two batches share a commit.
            assert done.wait(10)
    disk.close()
    vfs.unregister()
    return recorded


def _write(files: dict[str, bytearray], operation: Operation) -> None:
    """Apply one operation to the files of an image."""
    if operation.kind == "write":
        content = files.setdefault(operation.file, bytearray())
        content.extend(bytes(max(operation.place + len(operation.data) - len(content), 0)))
        content[operation.place : operation.place + len(operation.data)] = operation.data
    elif operation.kind == "truncate":
        del files.setdefault(operation.file, bytearray())[operation.place :]
    elif operation.kind == "delete":
        files.pop(operation.file, None)


def _recovered(folder: Path, files: dict[str, bytearray]) -> dict[bytes, Put]:
    """Return the records that are found in an image."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with closing(open_store(folder / "store")) as store:
        rows: Iterator[tuple[bytes, bytes, int]] = store.execute("SELECT key, value, extra FROM records")
        return {row[0]: Put(*row) for row in rows}


def _told(operations: list[Operation]) -> int:
    return max((operation.place for operation in operations if operation.kind == "told"), default=0)


def test_the_recorded_run_has_commits_and_checkpoints(operations: list[Operation]) -> None:
    assert _told(operations) == _BATCHES
    synced = [operation.file for operation in operations if operation.kind == "sync"]
    assert synced.count("store-wal") >= 24
    assert synced.count("store") >= 2, "checkpoints"


def test_every_prefix_of_the_writes_holds_what_was_told_durable(operations: list[Operation], tmp_path: Path) -> None:
    states = _states()
    files: dict[str, bytearray] = {}
    told = 0
    for operation in operations:
        told = max(told, operation.place if operation.kind == "told" else 0)
        if operation.kind == "write":
            torn = {name: bytearray(content) for name, content in files.items()}
            _write(torn, operation._replace(data=operation.data[: len(operation.data) // 2]))
            assert _recovered(tmp_path, torn) in states[told:]
        _write(files, operation)
        if operation.kind in ("write", "told"):
            assert _recovered(tmp_path, files) in states[told:]


def test_writes_that_were_not_synchronised_may_be_missing_in_any_combination(
    operations: list[Operation], tmp_path: Path
) -> None:
    states, chance = _states(), random.Random(1)
    for _ in range(150):
        end = chance.randrange(len(operations))
        ready = next(at for at, operation in enumerate(operations) if operation.kind == "ready")
        last_sync = {operation.file: at for at, operation in enumerate(operations[:end]) if operation.kind == "sync"}
        files: dict[str, bytearray] = {}
        for at, operation in enumerate(operations[:end]):
            if at < max(last_sync.get(operation.file, 0), ready) or chance.random() < 0.5:
                _write(files, operation)
        assert _recovered(tmp_path, files) in states[_told(operations[:end]) :]
