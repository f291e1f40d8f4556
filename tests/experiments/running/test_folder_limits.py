"""Unfinished files are bounded: those that bring nothing make room for others."""

import errno
import os
from collections import namedtuple
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest

from experiments.running import folder as folders
from experiments.running import unfinished
from experiments.running.folder import FileSink, Folder, Stored
from experiments.running.unfinished import NEW
from protocols.machine import Offer

Disk = namedtuple("Disk", "f_bavail f_frsize f_blocks")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Allow eight unfinished files, two new ones among them before these are given up."""
    monkeypatch.setattr(unfinished, "MOST_OBJECTS", 8)
    monkeypatch.setattr(unfinished, "MOST_NEW", 2)
    return 8


class Clock:
    """A clock for silence."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in (unfinished, folders):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)


def opened(path: Path) -> Folder:
    stored: list[Stored] = []
    return Folder(path, force=False, on_stored=stored.append)


def offered(folder: Folder, number: int, size: int = 100_000, sender: int = 1) -> FileSink | None:
    return folder.sink(Offer(sender, number, size, True))


def begun(folder: Folder, number: int, segments: int, size: int = 100_000) -> FileSink:
    sink = offered(folder, number, size)
    assert sink is not None
    for segment in range(segments):
        sink.write(segment * 10, bytes(10))
    return sink


def given_up(folder: Folder) -> list[int]:
    return [refused.offer.object_id for refused in folder.given_up]


def test_a_file_under_way_is_not_taken_for_the_one_silent_longest(few: int, tmp_path: Path) -> None:
    folder = opened(tmp_path)
    busy = begun(folder, 0, NEW + 1)
    for number in range(1, few):
        begun(folder, number, NEW)
    busy.write(10 * (NEW + 1), bytes(10))
    offered(folder, few)
    assert given_up(folder) == [1]
    folder.close()


def test_an_object_that_was_announced_alone_makes_no_file(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    for number in range(100):
        offered(folder, number)
    assert len(folder.opened) == 0
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_new_objects_displace_each_other_and_not_one_under_way(tmp_path: Path, few: int) -> None:
    folder = opened(tmp_path)
    under_way = begun(folder, 0, NEW)
    for number in range(1, 100):
        offered(folder, number)
        assert len(folder.unfinished) <= few
    # The first seven found room; later on the oldest of the new ones made room for the next.
    assert given_up(folder) == list(range(1, 93))
    under_way.write(NEW * 10, b"more")
    folder.close()


def test_among_objects_under_way_the_one_silent_longest_makes_room(tmp_path: Path, few: int) -> None:
    folder = opened(tmp_path)
    sinks = [begun(folder, number, NEW) for number in range(few)]
    for sink in (sinks[0], sinks[2]):
        sink.write(NEW * 10, b"more")
    offered(folder, 100)
    offered(folder, 101)
    assert given_up(folder) == [1, 3]
    with pytest.raises(OSError, match="given up for other files"):
        sinks[1].write(NEW * 10, b"more")
    with pytest.raises(OSError, match="given up for other files"):
        sinks[1].commit(b"name")
    sinks[1].abort()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_no_more_is_accepted_than_fits_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, folder = Clock(monkeypatch), opened(tmp_path)
    monkeypatch.setattr(os, "fstatvfs", lambda fd: Disk(1000, 1000, 5000))
    assert offered(folder, 0, 1_000_001) is None
    assert folder.refused[-1].reason == "1MB were announced, 1MB are free"
    honest = begun(folder, 1, NEW, 600_000)
    assert offered(folder, 2, 500_000) is None
    assert folder.refused[-1].reason == "500kB were announced, 1MB are free, 600kB of them for other files"
    assert offered(folder, 3, 300_000) is not None
    # What has hardly begun makes room for something smaller, not for something larger.
    assert offered(folder, 4, 350_000) is None
    assert given_up(folder) == []
    assert offered(folder, 5, 250_000) is not None
    assert given_up(folder) == [3]
    clock.now = 11.0
    honest.write(NEW * 10, b"more")
    clock.now = 20.0
    assert offered(folder, 6, 390_000) is not None
    assert given_up(folder) == [3, 5]
    clock.now = 22.0
    # The silent one alone would not be enough, so it stays.
    assert offered(folder, 7, 800_000) is None
    assert offered(folder, 8, 600_000) is not None
    assert given_up(folder) == [3, 5, 1]
    folder.close()


def test_a_disk_that_does_not_know_its_space_takes_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda fd: Disk(0, 0, 0))
    folder = opened(tmp_path)
    assert offered(folder, 0, 1 << 47) is not None
    folder.close()


def test_what_was_announced_is_free_again_when_a_file_ends(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    for number in range(3):
        sink = begun(folder, number, 10, 100)
        if number:
            sink.read(0, 10)
        if number < 2:
            sink.commit(b"name")
        else:
            sink.abort()
    assert (folder.unfinished.claimed, folder.unfinished.waiting, len(folder.unfinished)) == (0, 0, 0)
    folder.close()


def test_when_much_waits_in_memory_it_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfinished, "MOST_WAITING", 1000)
    folder = opened(tmp_path)
    for number in range(100):
        begun(folder, number, 5)
    assert folder.unfinished.waiting <= 1000
    assert len(list(tmp_path.glob("*.part"))) == 80
    folder.close()


def test_a_silent_file_makes_room_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, folder = Clock(monkeypatch), opened(tmp_path)
    silent = begun(folder, 0, 10)
    silent.read(0, 100)
    pwrite = os.pwrite

    def full(fd: int, data: bytes, offset: int) -> int:
        if len(list(tmp_path.glob("*.part"))) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    fresh = begun(folder, 1, 10)
    with pytest.raises(OSError, match="No space left on device"):
        fresh.read(0, 100)
    fresh.abort()
    assert given_up(folder) == []
    clock.now = 11.0
    sink = begun(folder, 2, 10, 100)
    sink.commit(b"name")
    assert given_up(folder) == [0]
    assert (tmp_path / "name").read_bytes() == bytes(100)
    folder.close()


def test_an_unfinished_file_that_was_replaced_is_not_written(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    sink = begun(folder, 0, 10)
    sink.read(0, 10)
    folder.opened.close(sink)
    (part,) = tmp_path.glob("*.part")
    # A file that is made while the first one exists can't have its inode number.
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    part.unlink()
    with pytest.raises(OSError, match="the unfinished file was removed"):
        sink.read(0, 10)
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        sink.read(0, 10)
    os.replace(other, part)
    with pytest.raises(OSError, match="replaced by another"):
        sink.read(0, 10)
    folder.close()


def test_files_that_wait_to_be_hashed_need_no_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.running.hashing.most_open", lambda: 4)
    stored: list[Stored] = []
    folder = Folder(tmp_path, force=True, on_stored=stored.append)
    before = len(os.listdir("/proc/self/fd"))
    # Nothing is hashed until the thread is free.
    gate = Event()
    folder._hasher._pool.submit(gate.wait, 30)
    for number in range(20):
        sink = begun(folder, number, 1, 10)
        sink.commit(b"%d" % number)
    sink = begun(folder, 20, 1, 10)
    sink.commit(b"19")
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    gate.set()
    folder.close()
    digests = folder._hasher.results([each.digest for each in stored])
    # The file that was replaced while it waited can't be hashed any more.
    assert digests == [sha256(bytes(10)).hexdigest()] * 19 + [None] + [sha256(bytes(10)).hexdigest()]
