"""`mcastlab pub` and `mcastlab sub` as programs, over the loopback device."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

from experiments.cli import invoke
from tests.tidy.tree import ROOT

DISTRIBUTOR = ("--protocol", "distributor")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command(verb: str, port: int, *options: str) -> list[str]:
    """Return a command line."""
    common = ["--protocol", "distributor", "--group", f"239.7.7.43:{port}", "--iface", "lo", "--timeout", "30"]
    return [sys.executable, "-m", "mcastlab", verb, *common, *options]


def subscriber(port: int, *options: str, out: IO[str] | int = subprocess.PIPE) -> "subprocess.Popen[str]":
    """Start a subscriber and wait until it has bound the port (proc(5), net/udp)."""
    started = subprocess.Popen(
        command("sub", port, *options), stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT, text=True
    )
    for _ in range(1000):
        if f":{port:04X} " in Path("/proc/net/udp").read_text():
            return started
        time.sleep(0.02)
    pytest.fail("the subscriber did not start")


def publisher(port: int, *options: str, lines: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a publisher to its end."""
    return subprocess.run(
        command("pub", port, *options), input=lines, capture_output=True, env=ENVIRONMENT, cwd=ROOT, text=True, check=False
    )


def test_lines_with_their_subjects_reach_who_subscribed_to_them() -> None:
    waiting = subscriber(6141, "/quotes/...", "/news", "--count", "3")
    sent = publisher(6141, lines="/quotes/ABB 12.5\n/other x\n/news two words\n/quotes/a/b \n/late")
    out, told = waiting.communicate(timeout=40)
    assert (sent.returncode, waiting.returncode) == (0, 0), (sent.stderr, told)
    assert sorted(out.splitlines()) == ["/news two words", "/quotes/ABB 12.5", "/quotes/a/b "]
    assert "publisher mcastlab pub" in told
    assert "sent, reception not confirmed: 5 updates" in sent.stderr


def test_generated_updates_keep_their_rate_and_both_summaries_agree() -> None:
    waiting = subscriber(6142, "/a/*", "--count", "2000", "--json")
    options = ("--subject", "/a/1", "--subject", "/a/2", "--size", "60", "--count", "2000", "--rate", "2000", "--json")
    sent = publisher(6142, *options, "--stats", "200ms")
    out, told = waiting.communicate(timeout=40)
    rows: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    summary, ours = rows[-1], json.loads(sent.stdout)
    assert (sent.returncode, waiting.returncode) == (0, 0), (sent.stderr, told)
    assert (summary["updates"], summary["bytes"], summary["segments_lost"]) == (2000, 120_000, 0)
    assert (ours["updates"], ours["bytes"]) == (2000, 120_000)
    assert ours["data_sent"] == summary["data_received"]
    # A second of updates, and a second for requests.
    assert 1.9 < ours["seconds"] < 10
    assert [row["subject"] for row in rows if row["event"] == "update"][:4] == ["/a/1", "/a/2", "/a/1", "/a/2"] or len(
        rows
    ) > 2000
    assert "messages published" in sent.stderr


@pytest.mark.parametrize(("port", "topic", "line"), [(6158, "/a", "/a 1\n"), (6159, "prices", "1\n")])
def test_a_subscriber_whose_output_is_full_says_so(port: int, topic: str, line: str) -> None:
    of_fjm2 = () if topic[0] == "/" else ("--protocol", "fjm2")
    with Path("/dev/full").open("w") as full:
        waiting = subscriber(port, topic, *of_fjm2, "--count", "1", out=full)
        publisher(port, *([topic] if of_fjm2 else []), *of_fjm2, lines=line)
        _, told = waiting.communicate(timeout=40)
    assert waiting.returncode == 1
    assert "standard output: No space left on device" in told


def test_a_subscriber_without_updates_ends_with_one() -> None:
    waiting = subprocess.run(
        command("sub", 6143, "/x", "--timeout", "0.2"), capture_output=True, env=ENVIRONMENT, cwd=ROOT, text=True, check=False
    )
    assert waiting.returncode == 1
    assert "0 updates" in waiting.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sub", "abc", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--iface", "lo"], "subscription 'abc'"),
        (["sub", "/a", *DISTRIBUTOR, "--group", "10.0.0.1:5"], "--group"),
        (["sub", "/a", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--segment", "1"], "--segment"),
        (["pub", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--size", "5"], "--subject"),
        (["pub", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--size", "x", "--subject", "/a"], "--size"),
        (["pub", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--bandwidth", "fast"], "--bandwidth"),
        (["pub", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--stay", "long"], "--stay"),
        (["pub", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--iface", "lo", "--subject", "/*", "--size", "1"], "wildcards"),
        (["sub", "/a", "--group", "239.7.7.43:6144", "--protocol", "smoke"], "protocol"),
        (["sub", "/\udcff", *DISTRIBUTOR, "--group", "239.7.7.43:6144"], "TOPIC: subscription '/\\udcff' is no text"),
        (["pub", "/\udcff", *DISTRIBUTOR, "--group", "239.7.7.43:6144"], "--subject: subject '/\\udcff' is no text"),
        (
            ["pub", "/a", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--application", "\udcff"],
            "--application: value '\\udcff' is not allowed; at most 255 bytes of UTF-8",
        ),
        (["pub", "/a", *DISTRIBUTOR, "--group", "239.7.7.43:6144", "--application", "x" * 256], "at most 255 bytes"),
    ],
)
def test_bad_input_is_one_line_that_names_it(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_what_was_published_before_an_update_that_is_refused_is_sent() -> None:
    waiting = subscriber(6145, "/...", "--count", "2")
    sent = publisher(6145, lines="/a one\n/a two\nwrong\n")
    out, told = waiting.communicate(timeout=40)
    assert (sent.returncode, waiting.returncode) == (2, 0), (sent.stderr, told)
    assert out == "/a one\n/a two\n"
    assert "update 3: subject 'wrong' does not begin with '/'" in sent.stderr
