"""Send what appears in a folder, each file once, and run a command after each."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from experiments.session.events import Delivery
from experiments.session.sent_files import SentFiles, Version
from experiments.session.session import Session
from protocols.acknowledgement import AckRequest
from protocols.errors import TransferError, UsageError

__all__ = ["FileOutcome", "FolderSender", "WatchedFolder"]

PERIOD = 0.5
"""Seconds between two scans of the folder."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """The outcome of a file: `problem` is empty if it was sent and `then`, the exit code of the command, is 0 or None.

    `then` is None without a command, and for a file that has new content before the command's turn: it is sent again first.
    """

    name: str
    size: int
    problem: str = ""
    delivery: Delivery | None = None
    then: int | None = None


class WatchedFolder:
    """Finds regular files that are complete: two scans in a row found them the same. Hidden ones are ignored."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UsageError(f"--watch: value {str(path)!r} is not allowed; a folder")
        self.path = path
        self.names: set[str] = set()
        """All files found by the last scan."""
        self._before: dict[str, Version] = {}

    def look(self) -> dict[str, Version]:
        """Return the complete files by name, the one changed first at the front. OSError if the folder is gone."""
        now: dict[str, Version] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                # A file may be gone meanwhile, and a symbolic link lead nowhere, in a circle or where nobody may look.
                with suppress(OSError):
                    state = entry.stat()
                    if stat.S_ISREG(state.st_mode) and not entry.name.startswith("."):
                        now[entry.name] = _version(state)
        self.names = set(now)
        same = [(version[1], name) for name, version in now.items() if self._before.get(name) == version]
        self._before = now
        return {name: now[name] for _, name in sorted(same)}


class FolderSender:
    """Sends the files of a folder in a session, and calls `report` after each. With `acks` they have to be confirmed.

    A file is noted when it was sent, and once more when `command` ended with 0 after it. After a crash it is sent again, or
    only the command is run again, as far as was noted. Commands are run by sh(1), one at a time, with the file's path as $1.
    """

    def __init__(
        self,
        folder: WatchedFolder,
        files: SentFiles,
        command: str,
        report: Callable[[FileOutcome], None],
        acks: AckRequest | None = None,
    ) -> None:
        self._folder, self._files, self._command, self._report = folder, files, command, report
        # The state file would be sent after each change, and each note of that changes it.
        is_inside = files.path.parent.resolve() == folder.path.resolve()
        self._own_names = files.names if is_inside else frozenset[str]()
        self._acks = acks
        self._under_way: dict[str, Version] = {}
        self._failed: dict[str, Version] = {}
        self._turn = asyncio.Lock()

    async def run(self, session: Session) -> None:
        """Look at the folder and send, until cancelled. OSError if the folder or the state file can't be used any more."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                found = self._folder.look()
                for name, version in found.items():
                    if self._is_due(name, version):
                        self._under_way[name] = version
                        await session.room()
                        tasks.create_task(self._process(session, name, version))
                if self._files.forget_others(self._folder.names | set(self._under_way)):
                    await self._saved()
                await asyncio.sleep(PERIOD)

    def _is_due(self, name: str, version: Version) -> bool:
        if name in self._own_names or name in self._under_way or self._failed.get(name) == version:
            return False
        stage = self._files.stage(name, version)
        return stage is None or (stage == "sent" and bool(self._command))

    async def _process(self, session: Session, name: str, version: Version) -> None:
        """Send a file as far as it was not, and run the command."""
        try:
            delivery = None
            if self._files.stage(name, version) is None:
                delivery = await self._send(session, name)
                self._files.note(name, version, "sent" if self._command else "done")
                await self._saved()
            code = await self._then(self._folder.path / name, version) if self._command else None
            if code:
                # It is run again by the next sender.
                self._failed[name] = version
            elif code == 0:
                self._files.note(name, version, "done")
                await self._saved()
            problem = f"the command exited with {code}" if code else ""
            self._report(FileOutcome(name, version[0], problem, delivery, code))
        except (TransferError, UsageError) as error:
            if session.is_closed:
                raise
            # A file that was changed while it was sent is another one; one that can't be read stays as it is, and receivers
            # that did not confirm one were asked as often as configured.
            if isinstance(error, (UsageError, _NotConfirmed)):
                self._failed[name] = version
            self._report(FileOutcome(name, version[0], str(error).removeprefix(f"{self._folder.path / name}: ")))
        finally:
            del self._under_way[name]

    async def _saved(self) -> None:
        """Wait until what was noted is on the disk."""
        await asyncio.wrap_future(self._files.save())

    async def _send(self, session: Session, name: str) -> Delivery:
        """Send a file. TransferError when it can't be sent or is not confirmed, or the kernel refused its last packets."""
        (delivery,) = await session.sent(await session.send_file(self._folder.path / name), by=self._acks)
        if self._acks is not None and (delivery.missing or len(delivery.confirmed) < max(1, self._acks.expected)):
            nodes = ", ".join(map(str, delivery.missing))
            raise _NotConfirmed(f"not confirmed by {f'node {nodes}' if nodes else 'enough receivers'}")
        refused, reason = session.host.refusal
        if refused:
            raise TransferError(f"the kernel refuses to send: {reason}")
        return delivery

    async def _then(self, path: Path, version: Version) -> int | None:
        """Run the command after a file and return its exit code; what it prints goes to stderr.

        None without running it where the file has got new content meanwhile, which is not sent yet: the command may remove it.
        """
        async with self._turn:
            with suppress(OSError):
                if _version(path.stat()) != version:
                    return None
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", self._command, "sh", path, stdout=sys.stderr.fileno()
            )
            try:
                return await process.wait()
            except asyncio.CancelledError:
                with suppress(ProcessLookupError):
                    process.terminate()
                raise


def _version(state: os.stat_result) -> Version:
    return state.st_size, state.st_mtime_ns, state.st_ino


class _NotConfirmed(TransferError):
    """A file was sent, and not confirmed by all that had to."""
