"""Simulated stable storage (protocols/storage.py): one server per host, with group commit."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Protocol

from protocols.errors import StorageError
from protocols.rng import Rng
from protocols.storage import Change, Delete, Put, Record, size_of
from sim.kernel import Kernel
from topologies.disk_model import DiskModel

__all__ = ["Disk", "StoringHost"]

_INSTANT: Final = DiskModel()
"""A disk without a model: everything is durable at the end of the instant."""


class StoringHost(Protocol):
    """The interface of a host to its disk."""

    machine: Any

    def answer(self, verb: Any, *args: object) -> None:
        """Call a method of `machine` as an input."""


class _Request:
    """A request of the machine of a host to its disk."""

    __slots__ = ("host", "is_answered", "port", "ticket")

    def __init__(self, host: StoringHost, port: int, ticket: int) -> None:
        self.host = host
        self.port = port
        self.ticket = ticket
        self.is_answered = True
        """Whether the machine still runs and gets the answer."""


class _Batch(_Request):
    """Changes that become durable as a whole."""

    __slots__ = ("changes", "size")

    def __init__(self, host: StoringHost, port: int, ticket: int, changes: Sequence[Change]) -> None:
        super().__init__(host, port, ticket)
        self.changes = tuple(changes)
        self.size = sum(map(size_of, changes))


class _Read(_Request):
    """A range of keys to be read."""

    __slots__ = ("first", "last", "most")

    def __init__(self, host: StoringHost, port: int, ticket: int, first: bytes, last: bytes | None, most: int | None) -> None:
        super().__init__(host, port, ticket)
        self.first, self.last, self.most = first, last, most


class _Table:
    """The records of one port of a host."""

    __slots__ = ("keys", "records")

    def __init__(self) -> None:
        self.records: dict[bytes, Put] = {}
        self.keys: list[bytes] = []
        """The keys of `records`, sorted."""

    def apply(self, change: Change) -> int:
        """Make a change; returns by how many bytes the records grew."""
        old = self.records.pop(change.key, None)
        grown = 0 if old is None else -size_of(old)
        if isinstance(change, Delete):
            if old is not None:
                del self.keys[bisect_left(self.keys, change.key)]
            return grown
        self.records[change.key] = change
        if old is None:
            insort(self.keys, change.key)
        return grown + size_of(change)

    def range(self, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Return the records of a range, in the order of their keys."""
        begin = bisect_left(self.keys, first)
        end = len(self.keys) if last is None else bisect_left(self.keys, last)
        if most is not None:
            end = min(end, begin + most)
        return [self.records[key] for key in self.keys[begin:end]]


class Disk:
    """The stable storage of one host: records that survive its crashes, and a queue of requests.

    Requests are served in order, one after another; all batches at the head of the queue become durable by one commit. `rng`
    decides what a crash leaves of the batches that were not durable.
    """

    __slots__ = (
        "_is_halted",
        "_kernel",
        "_lives",
        "_model",
        "_name",
        "_pending_size",
        "_queue",
        "_rng",
        "_serving",
        "_size",
        "_tables",
        "_tickets",
        "busy",
        "commits",
        "torn",
    )

    def __init__(self, kernel: Kernel, name: str, model: DiskModel | None, rng: Rng) -> None:
        self._kernel = kernel
        self._name = name
        self._model = _INSTANT if model is None else model
        self._rng = rng
        self._tables: dict[int, _Table] = {}
        """The records, by port."""
        self._size = self._pending_size = 0
        self._queue: deque[_Batch | _Read] = deque()
        self._serving: list[_Batch] | _Read | None = None
        self._lives = 0
        self._is_halted = False
        self._tickets = 0
        self.busy = 0.0
        """Seconds in which the disk served requests."""
        self.commits = 0
        self.torn = 0
        """Batches found incomplete after a crash, and dropped as a whole."""

    def store(self, host: StoringHost, changes: Sequence[Change], port: int) -> int:
        """See `StoragePorts.store`. StorageError when the records would not fit."""
        batch = _Batch(host, port, self._next_ticket(), changes)
        if self._is_halted:
            return batch.ticket
        self._pending_size += batch.size
        room = self._model.size
        if room is not None and self._size + self._pending_size > room:
            raise StorageError(f"{self._name}: the disk is full: {self._size} of {room} bytes, and {batch.size} more to store")
        self._enqueue(batch)
        return batch.ticket

    def fetch(self, host: StoringHost, first: bytes, last: bytes | None, most: int | None, port: int) -> int:
        """See `StoragePorts.fetch`."""
        read = _Read(host, port, self._next_ticket(), first, last, most)
        self._enqueue(read)
        return read.ticket

    def forget_requests(self) -> None:
        """Give no answers to the requests made so far; batches become durable all the same."""
        for request in self._requests():
            request.is_answered = False

    def halt(self) -> None:
        """Ignore what the machine stores until the crash that follows."""
        self._is_halted = True

    def crash(self) -> None:
        """Keep what is durable and a random number of the first batches after that; drop all other requests."""
        waiting = [request for request in self._requests() if isinstance(request, _Batch)]
        self._drop_requests()
        if not waiting:
            return
        kept = int(self._rng.uniform() * (len(waiting) + 1))
        for batch in waiting[:kept]:
            self._apply(batch)
        if kept < len(waiting):
            self.torn += self._rng.uniform() < 0.5

    def lose(self) -> None:
        """Lose all records and requests, as a disk that was replaced."""
        self._drop_requests()
        self._tables.clear()
        self._size = 0

    def counts(self) -> dict[str, float]:
        """Return the number of records, their bytes, commits, torn batches and the busy time in seconds."""
        return {
            "records": sum(len(table.records) for table in self._tables.values()),
            "octets": self._size,
            "commits": self.commits,
            "torn": self.torn,
            "busy": self.busy,
        }

    def _next_ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _requests(self) -> list[_Batch | _Read]:
        """Return the requests that are not answered, in order."""
        serving = self._serving
        first = [] if serving is None else serving if isinstance(serving, list) else [serving]
        return [*first, *self._queue]

    def _drop_requests(self) -> None:
        self._queue.clear()
        self._serving = None
        self._pending_size = 0
        self._lives += 1
        self._is_halted = False

    def _enqueue(self, request: _Batch | _Read) -> None:
        self._queue.append(request)
        if self._serving is None:
            # Begin when the present input is over, so that all batches of one instant become durable together.
            self._serving = []
            self._finish_in(0.0)

    def _serve(self) -> None:
        """Begin with the request at the head of the queue: all batches up to the next read, or one read."""
        queue = self._queue
        if not queue:
            self._serving = None
            return
        head = queue.popleft()
        if isinstance(head, _Read):
            self._serving = head
            seconds = self._model.time(sum(map(size_of, self._range(head))), commit=False)
        else:
            batches = [head]
            while queue and isinstance(queue[0], _Batch):
                batches.append(queue.popleft())  # type: ignore[arg-type]
            self._serving = batches
            self.commits += 1
            seconds = self._model.time(sum(batch.size for batch in batches), commit=True)
        self.busy += seconds
        self._finish_in(seconds)

    def _finish_in(self, seconds: float) -> None:
        life = self._lives
        self._kernel.later(self._kernel.env.now + seconds, lambda: self._finish(life))

    def _finish(self, life: int) -> None:
        """Answer what was served, then begin with the next request; nothing if the host crashed meanwhile."""
        if life != self._lives:
            return
        serving = self._serving
        if isinstance(serving, _Read):
            records = self._range(serving)
            if serving.is_answered:
                serving.host.answer(serving.host.machine.fetched, serving.ticket, records)
        elif serving:
            for batch in serving:
                self._apply(batch)
            self._serving = []
            for batch in serving:
                if batch.is_answered and life == self._lives:
                    batch.host.answer(batch.host.machine.stored, batch.ticket)
        if life == self._lives:
            self._serve()

    def _apply(self, batch: _Batch) -> None:
        """Make the changes of a batch part of the records."""
        self._pending_size = max(self._pending_size - batch.size, 0)
        table = self._table(batch)
        self._size += sum(map(table.apply, batch.changes))

    def _range(self, read: _Read) -> list[Record]:
        return self._table(read).range(read.first, read.last, read.most)

    def _table(self, request: _Request) -> _Table:
        """Return the records of the port of a request."""
        return self._tables.setdefault(request.port, _Table())
