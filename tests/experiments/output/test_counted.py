"""Numbers of things in words: a single one has no s."""

import subprocess
from pathlib import Path

import pytest

from experiments.cli import invoke
from experiments.commands.sweep import summary_text
from experiments.output.counted import counted
from experiments.running.authentication import REASONS, refusals_told
from experiments.sweep.run.driver import SweepSummary
from tests.experiments.running.test_pub_sub import publisher, subscriber


def test_a_noun_has_an_s_unless_there_is_one() -> None:
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(0, "file", 1), counted(1, "file", 2)] == ["0 of 1 file", "1 of 2 files"]
    assert counted(1, "run", more="timed") == "1 timed run"
    assert [counted(1, "packet", spec=","), counted(1000, "packet", spec=",")] == ["1 packet", "1,000 packets"]


def test_a_subscriber_and_a_publisher_of_one_message_say_so() -> None:
    waiting: subprocess.Popen[str] = subscriber(6306, "t", "--protocol", "fjm2", "--count", "1")
    sent = publisher(6306, "t", "--protocol", "fjm2", lines="one\n")
    _, told = waiting.communicate(timeout=40)
    assert "received: 1 message in " in told
    assert ": 1 message in " in sent.stderr


def test_one_refused_packet_and_one_row_of_another_version_have_no_s() -> None:
    reason = next(iter(REASONS))
    assert refusals_told({reason: 1}) == f"refused: 1 packet {REASONS[reason]}"
    summary = SweepSummary(Path("small"), "1", total=1, other_versions=1, unreadable=1)
    told = summary_text(summary, Path("small.yaml")).splitlines()
    assert told[1:3] == ["kept apart: 1 row of another version of the code", "broken off: 1 file, whose runs were made again"]


def test_a_search_of_one_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["search", "lan-file", "--runs", "1", "--set", "workload.size=10kB"]) == 0
    assert "1 run, and nothing was broken" in capsys.readouterr().out
