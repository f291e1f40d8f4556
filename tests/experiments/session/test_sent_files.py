"""The state file of `mcastlab send --watch`: replaced as a whole, used by one sender, refused if it is something else."""

import errno
import fcntl
import json
import os
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from experiments.session.sent_files import SentFiles, Version
from protocols.errors import UsageError

ONE: Version = (10, 1, 1)
OTHER: Version = (10, 2, 1)


def test_what_was_noted_is_known_to_the_next_sender(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)) as files:
        files.note("a", ONE, "sent")
        files.note("a", ONE, "done")
        files.note("b\udcff", OTHER, "sent")
        files.save().result()
    with closing(SentFiles(path)) as files:
        assert [files.stage(*key) for key in (("a", ONE), ("a", OTHER), ("b\udcff", OTHER), ("c", ONE))] == [
            *("done", None, "sent", None)
        ]
        assert files.forget_others({"a"})
        assert not files.forget_others({"a"})
        files.save().result()
    with closing(SentFiles(path)) as files:
        assert (files.stage("a", ONE), files.stage("b\udcff", OTHER)) == ("done", None)


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_crash_while_it_is_written_leaves_the_state_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)) as files:
        files.note("a", ONE, "sent")
        files.save().result()

        def crash(*arguments: object, **options: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, call, crash)
            files.note("a", ONE, "done")
            with pytest.raises(KeyboardInterrupt):
                files.save().result()
    with closing(SentFiles(path)) as files:
        assert files.stage("a", ONE) == "sent"
        # What the crash left behind is in nobody's way.
        files.note("a", ONE, "done")
        files.save().result()
    with closing(SentFiles(path)) as files:
        assert files.stage("a", ONE) == "done"


@dataclass
class HeldDisk:
    """A disk on which files are replaced once `goes_on` is set; `begun` is set by the first, and `writes` counts them."""

    begun: Event = field(default_factory=Event)
    goes_on: Event = field(default_factory=Event)
    writes: int = 0


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldDisk:
    disk, replace = HeldDisk(), os.replace

    def slow(*arguments: str) -> None:
        disk.writes += 1
        disk.begun.set()
        assert disk.goes_on.wait(10)
        replace(*arguments)

    monkeypatch.setattr(os, "replace", slow)
    return disk


def test_what_is_noted_during_a_write_is_in_the_one_after_it(tmp_path: Path, held: HeldDisk) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)) as files:
        files.note("0", ONE, "done")
        files.save()
        assert held.begun.wait(10)
        for number in range(1, 50):
            files.note(str(number), ONE, "done")
            last = files.save()
        assert not last.done()
        held.goes_on.set()
        last.result(10)
        with_all = json.loads(path.read_text(encoding="utf-8"))["files"]
    assert len(with_all) == 50
    assert held.writes == 2


def test_the_end_writes_what_nobody_waits_for_any_more(tmp_path: Path, held: HeldDisk) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)) as files:
        files.note("a", ONE, "done")
        files.save()
        assert held.begun.wait(10)
        files.note("b", ONE, "done")
        assert files.save().cancel()
        held.goes_on.set()
    with closing(SentFiles(path)) as files:
        assert (files.stage("a", ONE), files.stage("b", ONE)) == ("done", "done")


def test_a_file_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)), pytest.raises(UsageError, match="is in use by another sender"):
        SentFiles(path)
    SentFiles(path).close()


def test_a_file_system_without_locks_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UsageError, match=r"state file .*/state: can't be locked \(No locks available\)"):
        SentFiles(tmp_path / "state")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "not json", "[" * 100_000, '{"format": "other", "files": {}}'),
        '{"format": "mcastlab-sent-files", "files": {"a": 1}}',
    ],
)
def test_a_file_that_is_something_else_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="is none of `mcastlab send --watch`"):
        SentFiles(path)
    assert path.read_text(encoding="utf-8") == text


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(UsageError, match=rf"state file .*/{name}: can't be read \(not a regular file\)"):
            SentFiles(tmp_path / name)


def test_a_write_that_fails_names_the_file_and_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with closing(SentFiles(path)) as files:
        files.note("a", ONE, "done")
        files.save().result()
        monkeypatch.setattr(os, "fsync", full)
        files.note("b", ONE, "done")
        with pytest.raises(OSError, match=rf"^state file {path}: can't be written \(No space left on device\)$"):
            files.save().result()
    with closing(SentFiles(path)) as files:
        assert (files.stage("a", ONE), files.stage("b", ONE)) == ("done", None)
