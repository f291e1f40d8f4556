"""The disk of a real host: opened at the first request of the machine, with its answers as inputs of the machine."""

from collections.abc import Callable, Sequence

from emu.disk import Disk, OpenDisk
from emu.tcp import Inputs
from protocols.errors import StorageError
from protocols.storage import Change, Record

__all__ = ["HostDisk"]


class HostDisk:
    """Stable storage of one host; `in_loop` calls a function in its event loop. StorageError where it can't be opened."""

    def __init__(self, open_disk: OpenDisk | None, in_loop: Callable[..., object], inputs: Inputs) -> None:
        self._open, self._in_loop, self._inputs = open_disk, in_loop, inputs
        self._disk: Disk | None = None

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """See `StoragePorts.store`."""
        return self._opened().store(changes, port)

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None, port: int = 0) -> int:
        """See `StoragePorts.fetch`."""
        return self._opened().fetch(first, last, most, port)

    def close(self) -> None:
        """Serve all requests made so far, and close the disk."""
        if self._disk is not None:
            self._disk.close()

    def _opened(self) -> Disk:
        if self._disk is None:
            if self._open is None:
                raise StorageError("this program stores messages, and its host has no folder for them")
            self._disk = self._open(self._in_loop, self._on_stored, self._on_failed)
        return self._disk

    def _on_stored(self, ticket: int, records: Sequence[Record] | None) -> None:
        machine = self._inputs.machine()
        if machine is None:
            return
        if records is None:
            self._inputs.call(machine.stored, ticket)
        else:
            self._inputs.call(machine.fetched, ticket, records)

    @staticmethod
    def _on_failed(error: StorageError) -> None:
        raise error
