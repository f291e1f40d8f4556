"""Unfinished files of receivers that were killed are removed, those of living ones stay."""

import fcntl
import os
from pathlib import Path

import pytest

from experiments.running.part_files import PartFiles, remove_stale


@pytest.fixture
def folder(tmp_path: Path) -> int:
    """Return the descriptor of the test's folder."""
    return os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)


def part(parts: PartFiles, folder: int) -> str:
    """Create an unfinished file and return its name."""
    name = parts.next_name()
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    return name


def die(parts: PartFiles) -> None:
    """Do what the kernel does when a receiver is killed."""
    os.close(parts._lock)


def test_only_files_of_receivers_that_were_killed_are_removed(folder: int) -> None:
    dead, alive = PartFiles(folder), PartFiles(folder)
    for _ in range(3):
        part(dead, folder)
    kept = part(alive, folder)
    die(dead)
    assert remove_stale(folder) == (3, True)
    assert sorted(os.listdir(folder)) == sorted([kept, kept.replace("-1.part", ".lock")])
    assert remove_stale(folder) == (0, False)
    os.unlink(kept, dir_fd=folder)
    alive.release()
    assert os.listdir(folder) == []


def test_a_receiver_killed_before_it_wrote_anything_is_noticed(folder: int) -> None:
    dead = PartFiles(folder)
    dead.claim()
    die(dead)
    assert remove_stale(folder) == (0, True)
    assert os.listdir(folder) == []


def test_files_without_a_lock_are_removed_and_others_are_not_touched(folder: int, tmp_path: Path) -> None:
    names = [".mcastlab-0123456789abcdef.part", ".mcastlab-0123456789abcdef-7.part"]
    others = ["a.part", ".mcastlab-0123.part", ".mcastlab-0123456789abcdef-x.part", ".other.lock"]
    for name in (*names, *others):
        (tmp_path / name).touch()
    assert remove_stale(folder) == (2, True)
    assert sorted(os.listdir(folder)) == sorted(others)


def test_a_lock_that_is_no_file_is_left_alone(folder: int, tmp_path: Path) -> None:
    lock = tmp_path / ".mcastlab-0123456789abcdef.lock"
    lock.with_name(".mcastlab-0123456789abcdef-1.part").touch()
    lock.symlink_to("/dev/null")
    assert remove_stale(folder) == (0, False)
    assert len(os.listdir(folder)) == 2


def test_a_lock_that_another_receiver_removes_at_once_is_made_again(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock
    removed: list[str] = []

    def late(fd: int, operation: int) -> None:
        if not removed:
            removed.extend(os.listdir(folder))
            assert remove_stale_with(flock) == (0, True)
        flock(fd, operation)

    def remove_stale_with(original: object) -> tuple[int, bool]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fcntl, "flock", original)
            return remove_stale(folder)

    monkeypatch.setattr(fcntl, "flock", late)
    parts = PartFiles(folder)
    parts.claim()
    assert len(removed) == 1
    assert os.listdir(folder) not in ([], removed)
    parts.release()
    assert os.listdir(folder) == []


def test_without_locks_nothing_is_removed(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    name = part(PartFiles(folder), folder)
    assert remove_stale(folder) == (0, False)
    assert name in os.listdir(folder)
