"""The state file of `mcastlab send --watch`: replaced as a whole, used by one sender, refused if it is something else."""

import os
from contextlib import closing
from pathlib import Path

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
    with closing(SentFiles(path)) as files:
        assert [files.stage(*key) for key in (("a", ONE), ("a", OTHER), ("b\udcff", OTHER), ("c", ONE))] == [
            *("done", None, "sent", None)
        ]
        files.forget_others({"a"})
    with closing(SentFiles(path)) as files:
        assert (files.stage("a", ONE), files.stage("b\udcff", OTHER)) == ("done", None)


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_crash_while_it_is_written_leaves_the_state_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)) as files:
        files.note("a", ONE, "sent")

        def crash(*arguments: object, **options: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, call, crash)
            with pytest.raises(KeyboardInterrupt):
                files.note("a", ONE, "done")
    with closing(SentFiles(path)) as files:
        assert files.stage("a", ONE) == "sent"
        # What the crash left behind is in nobody's way.
        files.note("a", ONE, "done")
    with closing(SentFiles(path)) as files:
        assert files.stage("a", ONE) == "done"


def test_a_file_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with closing(SentFiles(path)), pytest.raises(UsageError, match="is in use by another sender"):
        SentFiles(path)
    SentFiles(path).close()


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "not json", '{"format": "other", "files": {}}', '{"format": "mcastlab-sent-files", "files": {"a": 1}}'],
)
def test_a_file_that_is_something_else_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="is none of `mcastlab send --watch`"):
        SentFiles(path)
    assert path.read_text(encoding="utf-8") == text
