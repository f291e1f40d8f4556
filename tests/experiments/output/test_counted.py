"""Numbers of things in words: a single one has no s."""

import subprocess

import pytest

from experiments.cli import invoke
from experiments.output.counted import counted
from tests.experiments.running.test_pub_sub import publisher, subscriber


def test_a_noun_has_an_s_unless_there_is_one() -> None:
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(0, "file", 1), counted(1, "file", 2)] == ["0 of 1 file", "1 of 2 files"]
    assert counted(1, "run", more="timed") == "1 timed run"


def test_a_subscriber_and_a_publisher_of_one_message_say_so() -> None:
    waiting: subprocess.Popen[str] = subscriber(6306, "t", "--protocol", "fjm2", "--count", "1")
    sent = publisher(6306, "t", "--protocol", "fjm2", lines="one\n")
    _, told = waiting.communicate(timeout=40)
    assert "received: 1 message in " in told
    assert ": 1 message in " in sent.stderr


def test_a_search_of_one_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["search", "lan-file", "--runs", "1", "--set", "workload.size=10kB"]) == 0
    assert "1 run, and nothing was broken" in capsys.readouterr().out
