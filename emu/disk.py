"""Stable storage of a real host (protocols/storage.py): an SQLite file, written by a thread of its own with group commit.

SQLite keeps a write-ahead log and synchronises it at each commit (journal_mode WAL, synchronous FULL), so that a commit is
durable when it returns, and whole or absent after a crash.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeAlias

from protocols.errors import StorageError
from protocols.storage import Change, Put, Record
from topologies.disk_model import DiskModel

__all__ = ["VERSION", "Disk", "OpenDisk", "Store", "disk_opener", "open_store", "prepare"]

VERSION = 1
"""Of the table's layout; a file of another version is refused."""
_APPLICATION = 0x6D63_6173
_PAGE = 4096
_KEY_ONLY = 2
"""Length of a row that deletes: port and key."""
_MOST_BATCHES = 10_000
"""Most batches of one commit."""
_TABLE = """CREATE TABLE records
    (port INTEGER, key BLOB, value BLOB, extra INTEGER, filler BLOB, PRIMARY KEY (port, key)) WITHOUT ROWID"""
_PUT = "REPLACE INTO records VALUES (?1, ?2, ?3, ?4, zeroblob(?4))"
_DELETE = "DELETE FROM records WHERE port = ? AND key = ?"
_READ = """SELECT key, value, extra FROM records
    WHERE port = ?1 AND key >= ?2 AND (?3 IS NULL OR key < ?3) ORDER BY key LIMIT ?4"""

Answer: TypeAlias = Callable[[int, Sequence[Record] | None], None]
"""Takes a ticket, and the records of a read or None for a batch that is durable."""


class Store(Protocol):
    """An open SQLite database, of the module sqlite3 or another with the same methods."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run one statement."""

    def executemany(self, sql: str, rows: Any, /) -> Any:
        """Run one statement for each row."""

    def close(self) -> None:
        """Close the database."""


class _Batch(NamedTuple):
    ticket: int
    port: int
    changes: Sequence[Change]


class _Read(NamedTuple):
    ticket: int
    port: int
    first: bytes
    last: bytes | None
    most: int | None


_Request: TypeAlias = _Batch | _Read


def open_store(file: Path, size: int | None = None) -> Store:
    """Open or make the store in `file`, of at most `size` bytes.

    StorageError when it is in use, damaged, of another version or no store at all.
    """
    try:
        store = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=0.0)
        prepare(store, str(file), size)
        _synchronise(file.parent)
    except sqlite3.Error as error:
        raise StorageError(f"{file}: {_REASONS.get(str(error), error)}") from error
    return store


def _synchronise(folder: Path) -> None:
    """Make durable which files are in a folder (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_REASONS = {
    "database is locked": "the store is in use by another program",
    "file is not a database": "is no store",
    "database or disk is full": "the disk is full",
}


def prepare(store: Store, name: str, size: int | None) -> None:
    """Set up an open database as a store, whose file is called `name` in errors. StorageError when it is something else."""
    store.execute("PRAGMA locking_mode = EXCLUSIVE")
    store.execute(f"PRAGMA page_size = {_PAGE}")
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = FULL")
    store.execute("BEGIN EXCLUSIVE")
    application, version, tables = (
        store.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if not application and not tables:
        store.execute(f"PRAGMA application_id = {_APPLICATION}")
        store.execute(f"PRAGMA user_version = {VERSION}")
        store.execute(_TABLE)
    elif application != _APPLICATION:
        raise StorageError(f"{name}: is a database of another program")
    elif version != VERSION:
        raise StorageError(f"{name}: is a store of version {version}; this program reads version {VERSION}")
    store.execute("COMMIT")
    if size is not None:
        store.execute(f"PRAGMA max_page_count = {max(size // _PAGE, 4)}")


class Disk:
    """The stable storage of one host.

    `store` and `fetch` return at once. The thread serves requests in order, all batches that wait as one commit, and calls
    `answer` by means of `in_loop`, which runs a function in the thread of the host. `failed` takes the StorageError after which
    nothing more is served. `model` adds its times to those of the real disk.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        model: DiskModel,
        in_loop: Callable[..., object],
        answer: Answer,
        failed: Callable[[StorageError], None],
    ) -> None:
        self._store = store
        self._name = name
        self._model = model
        self._in_loop, self._answer, self._failed = in_loop, answer, failed
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._tickets = 0
        self.commits = 0
        self._thread = Thread(target=self._run, name="disk", daemon=True)
        self._thread.start()

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """See `StoragePorts.store`; every port has records of its own."""
        self._tickets += 1
        self._requests.put(_Batch(self._tickets, port, tuple(changes)))
        return self._tickets

    def fetch(self, first: bytes, last: bytes | None, most: int | None, port: int = 0) -> int:
        """See `StoragePorts.fetch`."""
        self._tickets += 1
        self._requests.put(_Read(self._tickets, port, first, last, most))
        return self._tickets

    def close(self) -> None:
        """Serve all requests made so far, then close the file."""
        self._requests.put(None)
        self._thread.join()

    # In the disk's thread

    def _run(self) -> None:
        try:
            while self._serve(self._waiting()):
                pass
        except Exception as error:  # noqa: BLE001 - of sqlite3 or of another module of SQLite
            reason = _REASONS.get(str(error), str(error))
            self._in_loop(self._failed, StorageError(f"{self._name}: {reason}"))
        finally:
            self._store.close()

    def _waiting(self) -> list[_Request | None]:
        """Wait for a request; return it with those that follow it."""
        found: list[_Request | None] = [self._requests.get()]
        while len(found) < _MOST_BATCHES:
            try:
                found.append(self._requests.get_nowait())
            except Empty:
                break
        return found

    def _serve(self, requests: Sequence[_Request | None]) -> bool:
        """Serve requests in order; False after the last one."""
        for kind, group in groupby(requests, type):
            if kind is _Batch:
                self._commit([request for request in group if isinstance(request, _Batch)])
            elif kind is _Read:
                for request in group:
                    assert isinstance(request, _Read)
                    self._in_loop(self._answer, request.ticket, self._read(request))
            else:
                return False
        return True

    def _commit(self, batches: Sequence[_Batch]) -> None:
        """Make batches durable by one commit and answer them."""
        store = self._store
        store.execute("BEGIN")
        rows = ((batch.port, *change) for batch in batches for change in batch.changes)
        for is_put, some in groupby(rows, _is_put):
            store.executemany(_PUT if is_put else _DELETE, some)
        store.execute("COMMIT")
        self.commits += 1
        self._wait(commit=True)
        for batch in batches:
            self._in_loop(self._answer, batch.ticket, None)

    def _read(self, read: _Read) -> list[Record]:
        rows: Iterator[tuple[bytes, bytes, int]] = self._store.execute(
            _READ, (read.port, read.first, read.last, -1 if read.most is None else read.most)
        )
        records = [Put(*row) for row in rows]
        self._wait(commit=False)
        return records

    def _wait(self, *, commit: bool) -> None:
        seconds = self._model.time(0, commit=commit)
        if seconds:
            time.sleep(seconds)


OpenDisk: TypeAlias = Callable[[Callable[..., object], Answer, Callable[[StorageError], None]], Disk]
"""Opens the disk of a host; the arguments are those of `Disk` from `in_loop` on."""


def disk_opener(file: Path, name: str, model: DiskModel) -> OpenDisk:
    """Return a function that opens the disk of the host `name`, stored in `file`, and makes the folders above it."""

    def open_disk(in_loop: Callable[..., object], answer: Answer, failed: Callable[[StorageError], None]) -> Disk:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{file.parent}: {error.strerror}") from error
        return Disk(open_store(file, model.size), name, model, in_loop, answer, failed)

    return open_disk


def _is_put(row: tuple[object, ...]) -> bool:
    """Return whether a row of port and change is one to be put, not one to be deleted."""
    return len(row) > _KEY_ONLY
