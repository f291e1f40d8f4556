"""The reports of `mcastlab send` and `recv`: problems on stderr, and not without end."""

import os
import sys

import pytest

from experiments.output.transfer_reporter import MOST_PROBLEMS, TransferReporter, TransferStatus
from protocols.events import NodeClash


def reporter(as_json: bool) -> TransferReporter:
    return TransferReporter("receiving", as_json, lambda: TransferStatus(0, 0, 0.0, 0))


def test_problems_are_lines_on_stderr_with_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(as_json=False) as says:
        says.problem("lost: a\x1b[31m")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "lost: a\\x1b[31m\n")


def test_of_a_flood_of_problems_some_are_written_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(as_json=False) as says:
        for number in range(MOST_PROBLEMS + 7):
            says.problem(f"lost: {number}")
        says.tick()
        says.problem("lost: later")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [*(f"lost: {number}" for number in range(MOST_PROBLEMS)), "... and 7 more", "lost: later"]


def test_with_json_problems_are_events_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(as_json=True) as says:
        for _ in range(MOST_PROBLEMS + 7):
            says.problem("lost: a")
    assert capsys.readouterr() == ("", "")


def test_another_node_with_the_same_node_id_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(as_json=False) as says:
        says.event(NodeClash(21, "10.0.0.7"), 1.0)
    told = "another node, at 10.0.0.7, has node id 21, too, and both are taken for one; give it another --node\n"
    assert capsys.readouterr() == ("", told)


def test_a_log_on_a_full_disk_does_not_end_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with reporter(as_json=True) as says:
            says.object("summary", ok=True)
        with pytest.raises(OSError, match="No space left"):
            full.flush()
        # The line is still there; it would be written if there were space again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
