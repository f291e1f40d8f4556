"""A file that can't be written keeps its old contents, and nothing else is left."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from experiments.commands.text_file import write_text
from protocols.errors import UsageError


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file become larger than 64 kB."""
    soft, hard = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (1 << 16, hard))
    yield
    setrlimit(RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_page_that_has_no_room_leaves_the_old_one(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")
    with pytest.raises(
        UsageError, match=r"--out: value '.*report.html' is not allowed; it can't be written \(File too large\)"
    ):
        write_text("--out", page, "x" * (1 << 17))
    assert (page.read_text(), os.listdir(tmp_path)) == ("old", ["report.html"])


def test_a_link_to_a_page_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to("page.html")
    write_text("--out", tmp_path / "link.html", "new \udcff")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "new \\udcff"


def test_a_page_that_others_may_not_read_stays_so(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.touch(0o600)
    write_text("--out", page, "new")
    assert (page.read_text(), page.stat().st_mode & 0o777) == ("new", 0o600)


def test_a_page_can_go_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text("--out", pipe, "page")
    reader.join(10)
    assert (read, pipe.is_fifo()) == (["page"], True)
