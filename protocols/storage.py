"""Stable storage: records that survive a crash of their host.

Rules, for machines and for hosts:

1. `store` returns at once; the batch is durable when `Machine.stored` gets its ticket. Batches become durable in the order in
   which they were given, each as a whole.
2. After a crash a machine finds what was durable, then perhaps further batches in order, and nothing else: a batch is there as
   a whole or not at all. A disk that loses its content (a fault) holds nothing.
3. `fetch` answers by `Machine.fetched` with the records as of all earlier `store`, durable or not.
4. Tickets of a machine are different and increase; `stored` and `fetched` are inputs like any other.
5. A disk that fails or is full ends the program with StorageError; it is never a silent loss.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

__all__ = ["Change", "Delete", "Put", "Record", "StoragePorts", "size_of"]


class Put(NamedTuple):
    """Store `value` under `key`, in the place of what is there. `extra` counts bytes of content that only have a size."""

    key: bytes
    value: bytes
    extra: int = 0


class Delete(NamedTuple):
    """Remove what is stored under `key`; nothing happens when there is nothing."""

    key: bytes


Change: TypeAlias = Put | Delete
Record: TypeAlias = Put


def size_of(change: Change) -> int:
    """Return the bytes of a change: of its key and, if it puts a value, of the value."""
    return len(change.key) + (len(change.value) + change.extra if isinstance(change, Put) else 0)


class StoragePorts(Protocol):
    """The part of a machine's ports that concerns stable storage; every machine of a host has records of its own."""

    def store(self, changes: Sequence[Change]) -> int:
        """Make a batch of changes durable; returns the ticket that `Machine.stored` gets."""

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> int:
        """Read records with `first` <= key < `last` (None: all) in the order of keys, at most `most` of them (None: all).

        Returns the ticket that `Machine.fetched` gets.
        """
