"""Hashing many files: their digests in order, and little memory for those that wait."""

import os
import tracemalloc
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event

from experiments.running.hashing import Hasher


def opening(path: Path) -> int:
    return os.open(path, os.O_RDONLY)


def test_digests_come_in_order_and_a_file_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    contents = [b"first", b"", b"third"]
    for number, content in enumerate(contents):
        (tmp_path / str(number)).write_bytes(content)
    hasher = Hasher()
    paths = [tmp_path / name for name in ("0", "missing", "1", "2")]
    found = hasher.hash_all(partial(opening, path) for path in paths).result()
    hasher.close()
    first, empty, third = [sha256(content).hexdigest() for content in contents]
    assert found == [first, None, empty, third]


def test_files_that_wait_when_hashing_is_given_up_have_no_digest(tmp_path: Path) -> None:
    hasher, reached, path = Hasher(), Event(), tmp_path / "file"
    path.write_bytes(b"content")

    def last() -> int:
        hasher.stop()
        reached.set()
        return opening(path)

    found = hasher.hash_all([lambda: opening(path), last, lambda: opening(path)])
    assert reached.wait(30)
    hasher.close()
    assert found.result() == [sha256(b"content").hexdigest(), None, None]


def test_files_that_wait_for_their_turn_take_little_memory(tmp_path: Path) -> None:
    hasher, gate, path, count = Hasher(), Event(), tmp_path / "file", 5000
    path.write_bytes(b"content")

    def first() -> int:
        gate.wait(30)
        return opening(path)

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = hasher.hash_all(first if not number else (lambda: opening(path)) for number in range(count))
    waiting = tracemalloc.get_traced_memory()[0] - before
    gate.set()
    assert len(found.result()) == count
    tracemalloc.stop()
    hasher.close()
    assert waiting < 10 * count
