"""Open files are bounded: the least recently used one is closed, and opened again when it is needed."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.running.open_files import MOST_OPEN, OpenFiles, most_open


class Named:
    """A file that counts how often it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        path.write_bytes(path.name.encode())

    def open(self) -> int:
        """Open the file."""
        self.opened += 1
        return os.open(self.path, os.O_RDONLY)


@contextmanager
def descriptors(most: int) -> Iterator[None]:
    """Allow this process only so many descriptors within a `with` block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_least_recently_used_file_is_closed_and_opened_again(tmp_path: Path) -> None:
    files, opened = [Named(tmp_path / name) for name in "abc"], OpenFiles(2)
    for index in (0, 1, 0, 2, 0, 1):
        assert os.pread(opened.descriptor(files[index]), 1, 0) == files[index].path.name.encode()
        assert len(opened) <= 2
    assert [file.opened for file in files] == [1, 2, 1]
    for file in files:
        opened.close(file)
    assert len(opened) == 0


def test_without_descriptors_others_are_closed_until_one_is_free(tmp_path: Path) -> None:
    files, opened = [Named(tmp_path / str(number)) for number in range(100)], OpenFiles(1000)
    lowest = os.dup(0)
    os.close(lowest)
    with descriptors(lowest + 10):
        for file in files:
            assert os.pread(opened.descriptor(file), 1, 0)
        assert 0 < len(opened) <= 10
    for file in files:
        opened.close(file)


def test_an_error_that_no_descriptor_helps_against_is_raised(tmp_path: Path) -> None:
    file, opened = Named(tmp_path / "a"), OpenFiles(2)
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        opened.descriptor(file)


def test_an_error_of_closing_a_file_reaches_its_owner_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, opened = Named(tmp_path / "a"), Named(tmp_path / "b"), OpenFiles(1)
    opened.descriptor(first)
    close = os.close

    def refused(fd: int) -> None:
        close(fd)
        raise OSError(errno.EDQUOT, "quota")

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", refused)
        opened.descriptor(second)
    with pytest.raises(OSError, match="quota"):
        opened.descriptor(first)
    opened.close(second)


@pytest.mark.parametrize(("limit", "expected"), [(20, 2), (64, 24), (1024, MOST_OPEN)])
def test_half_of_the_descriptors_are_used(limit: int, expected: int) -> None:
    with descriptors(limit):
        assert most_open() == expected
