"""Files as sources and sinks, checked by the content of the file system."""

import errno
import hashlib
import os
import resource
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.running import names as naming
from experiments.running.files import FileSource, ScratchSink
from experiments.running.folder import FileSink, Folder, Stored
from experiments.running.hashing import Hasher
from experiments.running.names import FinalNames
from protocols.errors import UsageError
from protocols.machine import Offer


def accepted(folder: Folder, size: int, object_id: int = 0, sender: int = 7) -> FileSink:
    sink = folder.sink(Offer(sender, object_id, size, True))
    assert sink is not None
    return sink


def receive(folder: Folder, name: bytes, content: bytes, object_id: int = 0) -> None:
    sink = accepted(folder, len(content), object_id)
    for start in range(0, len(content), 100):
        sink.write(start, content[start : start + 100])
    sink.commit(name)


def open_folder(path: Path, force: bool = False) -> tuple[Folder, list[Stored]]:
    stored: list[Stored] = []
    return Folder(path, force=force, on_stored=stored.append), stored


def test_a_file_appears_under_its_name_only_when_complete(tmp_path: Path) -> None:
    folder, stored = open_folder(tmp_path)
    sink = accepted(folder, 5)
    sink.write(0, b"hel")
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    sink.write(3, b"lo")
    sink.commit(b"greeting")
    folder.close()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("greeting", b"hello")]
    assert stored[0].digest.result() == hashlib.sha256(b"hello").hexdigest()


def test_an_incomplete_file_cannot_be_committed_and_leaves_nothing(tmp_path: Path) -> None:
    folder, stored = open_folder(tmp_path)
    sink = accepted(folder, 5)
    sink.write(0, b"hel")
    with pytest.raises(OSError, match="3 bytes are there, 5 were announced"):
        sink.commit(b"greeting")
    sink.abort()
    sink.abort()
    folder.close()
    assert list(tmp_path.iterdir()) == []
    assert stored == []


def test_closing_the_folder_removes_unfinished_files(tmp_path: Path) -> None:
    folder, _ = open_folder(tmp_path)
    accepted(folder, 5).write(0, b"hel")
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_outside_the_object_raises_a_sink_error(tmp_path: Path) -> None:
    folder, _ = open_folder(tmp_path)
    with pytest.raises(OSError, match="outside"):
        accepted(folder, 5).write(3, b"more")
    folder.close()


def test_segments_are_written_in_any_order_and_read_back(tmp_path: Path) -> None:
    folder, stored = open_folder(tmp_path)
    content = bytes(range(256)) * 4
    sink = accepted(folder, len(content))
    for start in (512, 0, 768, 256):
        sink.write(start, memoryview(content)[start : start + 256])
        assert sink.read(start, 256) == content[start : start + 256]
    sink.commit(b"x")
    folder.close()
    assert (tmp_path / stored[0].name).read_bytes() == content


def test_an_existing_name_gets_a_number_and_the_old_file_stays(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"mine")
    folder, stored = open_folder(tmp_path)
    for number in range(3):
        receive(folder, b"report", b"theirs %d" % number, number)
    folder.close()
    assert [(item.asked, item.name) for item in stored] == [("report", f"report.{n}") for n in (1, 2, 3)]
    assert (tmp_path / "report").read_bytes() == b"mine"
    assert (tmp_path / "report.2").read_bytes() == b"theirs 1"


def test_force_replaces_a_file_but_neither_a_folder_nor_the_target_of_a_link(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "outside"
    inside.mkdir()
    outside.write_bytes(b"precious")
    (inside / "a").write_bytes(b"old")
    (inside / "b").mkdir()
    (inside / "c").symlink_to(outside)
    folder, stored = open_folder(inside, force=True)
    for name in (b"a", b"b", b"c"):
        receive(folder, name, b"new")
    folder.close()
    assert [item.name for item in stored] == ["a", "b.1", "c"]
    assert (inside / "a").read_bytes() == b"new"
    assert outside.read_bytes() == b"precious"
    assert not (inside / "c").is_symlink()


def test_a_symbolic_link_with_the_requested_name_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "outside"
    inside.mkdir()
    (inside / "c").symlink_to(outside)
    folder, stored = open_folder(inside)
    receive(folder, b"c", b"new")
    folder.close()
    assert stored[0].name == "c.1"
    assert not outside.exists()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=6), st.booleans())
def test_files_never_leave_the_folder_or_replace_other_files(names: list[bytes], force: bool) -> None:
    with TemporaryDirectory() as where:
        home = Path(where)
        inside = home / "in"
        inside.mkdir()
        (home / "outside").write_bytes(b"precious")
        kept = {} if force else {"kept": b"mine"}
        for old, content in kept.items():
            (inside / old).write_bytes(content)
        folder, stored = open_folder(inside, force)
        for number, name in enumerate([*names, b"kept", b"../outside"]):
            receive(folder, name, b"%d" % number, number)
        folder.close()
        assert sorted(path.name for path in home.iterdir()) == ["in", "outside"]
        assert (home / "outside").read_bytes() == b"precious"
        found = {path.name: path.read_bytes() for path in inside.iterdir()}
        # Later files replace earlier ones of the same name only with force; without it every file is kept.
        assert found == kept | {item.name: b"%d" % item.object_id for item in stored}
        assert force or len({item.name for item in stored}) == len(names) + 2


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"folder: .* is not allowed"):
        open_folder(tmp_path / "file")


def test_a_source_reads_in_blocks_and_fails_if_the_file_shrank(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(range(100)))
    source = FileSource(path)
    assert source.size == 100
    assert source.read(0, 0) == b""
    assert source.read(90, 10) == bytes(range(90, 100))
    os.truncate(path, 50)
    with pytest.raises(OSError, match="was changed while it was sent"):
        source.read(40, 20)
    source.close()


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_source_that_is_no_file_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        FileSource(tmp_path / name)


def test_a_source_with_content_and_without_a_size_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/proc/self/status: can't be sent \(it has content and no size\); a copy of it can"):
        FileSource(Path("/proc/self/status"))
    (tmp_path / "empty").touch()
    assert FileSource(tmp_path / "empty").size == 0


def test_a_source_in_a_folder_that_may_not_be_entered_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_file(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(UsageError, match=r"^secret/f: can't be read \(Permission denied\)$"):
        FileSource(Path("secret/f"))


def test_a_folder_that_can_only_be_read_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    with pytest.raises(UsageError, match=r"a folder to write to \(no permission to write\)$"):
        Folder(tmp_path, force=False, on_stored=lambda stored: None)


def test_a_scratch_sink_leaves_no_file_and_has_a_digest() -> None:
    hasher, content = Hasher(), os.urandom(3_000_000)
    sink = ScratchSink(len(content), hasher)
    for start in range(0, len(content), 1400):
        sink.write(start, content[start : start + 1400])
    sink.commit(b"")
    assert sink.digest is not None
    assert sink.digest.result() == hashlib.sha256(content).hexdigest()
    hasher.close()


def test_a_big_file_is_not_held_in_memory(tmp_path: Path) -> None:
    size, piece = 256 << 20, bytes(1400)
    folder, stored = open_folder(tmp_path)
    sink = accepted(folder, size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(0, size, len(piece)):
        sink.write(start, piece[: size - start])
    sink.commit(b"big")
    folder.close()
    stored[0].digest.result()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 16 << 20


def test_many_files_of_one_name_are_each_compared_with_a_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, stored = open_folder(tmp_path)
    tried: list[str] = []
    rename = FinalNames._rename

    def noted(self: FinalNames, temporary: str, name: str) -> None:
        tried.append(name)
        rename(self, temporary, name)

    monkeypatch.setattr(FinalNames, "_rename", noted)
    for number in range(100):
        receive(folder, b"same", b"x", number)
    folder.close()
    assert [each.name for each in stored] == ["same", *(f"same.{number}" for number in range(1, 100))]
    assert len(tried) <= 2 * 100
    again, stored = open_folder(tmp_path)
    tried.clear()
    receive(again, b"same", b"x")
    again.close()
    assert stored[0].name == "same.100"
    assert tried == ["same.100"], "the row that is there is found by halving"


def test_the_numbers_of_a_bounded_count_of_names_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "NAMES_KEPT", 2)
    folder, stored = open_folder(tmp_path)
    for name in (b"a", b"b", b"c"):
        for number in range(3):
            receive(folder, name, b"x", number)
    receive(folder, b"a", b"x")
    folder.close()
    assert stored[-1].name == "a.3"
    assert len(folder._names._numbers) == 2


def test_a_scratch_file_is_made_when_something_is_written() -> None:
    hasher, before = Hasher(), len(os.listdir("/proc/self/fd"))
    sinks = [ScratchSink(100, hasher) for _ in range(10)]
    assert len(os.listdir("/proc/self/fd")) == before
    sinks[0].write(0, bytes(100))
    sinks[0].commit(b"")
    for sink in sinks[1:]:
        sink.abort()
    hasher.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("touched", [True, False])
def test_a_source_that_is_touched_or_replaced_can_not_be_read_any_more(tmp_path: Path, touched: bool) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(bytes(100))
    other.write_bytes(bytes(100))
    source = FileSource(path)
    source.read(0, 10)
    source.check()
    if touched:
        os.utime(path, ns=(0, 0))
    else:
        os.replace(other, path)
    with pytest.raises(OSError, match="changed while it was sent"):
        source.check()
    source.close()
    with pytest.raises(OSError, match="changed while it was sent"):
        source.read(0, 10)
