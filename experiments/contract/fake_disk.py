"""The stable storage of a fake host: batches become durable in order, and a crash keeps a prefix of those that were not."""

from collections import deque
from collections.abc import Sequence

from protocols.storage import Change, Put, Record

__all__ = ["FakeDisk"]


class FakeDisk:
    """The records of one host."""

    def __init__(self) -> None:
        self.durable: dict[bytes, Record] = {}
        """What is durable, by key."""
        self.pending: deque[Sequence[Change]] = deque()
        """The batches that are not durable, in order."""

    def store(self, changes: Sequence[Change]) -> None:
        """Take a batch."""
        self.pending.append(tuple(changes))

    def sync(self) -> None:
        """Make the first batch that is not durable so."""
        _apply(self.durable, self.pending.popleft())

    def read(self, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Return records in the order of keys, as of all batches that were taken."""
        records = dict(self.durable)
        for changes in self.pending:
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
            records.pop(change.key, None)
