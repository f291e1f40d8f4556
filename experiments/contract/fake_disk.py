"""The stable storage of a fake host: batches become durable in order, and a crash keeps a prefix of those that were not."""

from collections import deque
from collections.abc import Sequence

from protocols.storage import Change, Delete, Put, Record

__all__ = ["FakeDisk"]

Batch = tuple[int, Sequence[Change]]


class FakeDisk:
    """Records by port and key."""

    def __init__(self) -> None:
        self.durable: dict[int, dict[bytes, Record]] = {}
        """Durable records, by port and key."""
        self.pending: deque[Batch] = deque()
        """The port and the changes of the batches that are not durable, in order."""

    def store(self, port: int, changes: Sequence[Change]) -> None:
        """Take a batch."""
        self.pending.append((port, tuple(changes)))

    def sync(self) -> None:
        """Make the first batch that is not durable so."""
        port, changes = self.pending.popleft()
        _apply(self.durable.setdefault(port, {}), changes)

    def read(self, port: int, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Return records in the order of keys, as of all batches that were taken."""
        records = dict(self.durable.get(port, {}))
        for at, changes in self.pending:
            if at == port:
                _apply(records, changes)
        keys = sorted(key for key in records if key >= first and (last is None or key < last))
        return [records[key] for key in keys[:most]]

    def crash(self, keep: int = 0) -> None:
        """Drop what is not durable, except the first `keep` batches, which became durable without anybody being told."""
        for _ in range(min(keep, len(self.pending))):
            self.sync()
        self.pending.clear()

    def lose(self) -> None:
        """Drop everything."""
        self.durable.clear()
        self.pending.clear()


def _apply(records: dict[bytes, Record], changes: Sequence[Change]) -> None:
    for change in changes:
        if isinstance(change, Put):
            records[change.key] = change
        else:
            assert isinstance(change, Delete)
            records.pop(change.key, None)
