"""`mcastlab stream`: standard input to standard output, by line, message and byte, over the loopback device."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.session.boundaries import LENGTH
from tests.tidy.tree import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command(verb: str, port: int, *options: str) -> list[str]:
    """Return the command line of one end."""
    common = ["--group", f"239.7.7.21:{port}", "--iface", "lo", "--timeout", "30", "--json"]
    return [sys.executable, "-m", "mcastlab", "stream", verb, *common, *options]


def transfer(port: int, content: bytes, by: str) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    """Send bytes; return what came and the summaries of both ends."""
    receiver = subprocess.Popen(
        command("recv", port, "--by", by, "--count", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    _wait_for_group(port)
    sent = subprocess.run(
        command("send", port, "--by", by, "--rate", "50Mbit", "--grtt", "10ms"),
        input=content,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=True,
    )
    came, told = receiver.communicate(timeout=40)
    assert receiver.returncode == 0, told
    return came, json.loads(sent.stderr), json.loads(told)


def _wait_for_group(port: int) -> None:
    """Wait until a program has bound the port (proc(5), net/udp)."""
    for _ in range(1000):
        if f":{port:04X} " in Path("/proc/net/udp").read_text():
            return
        time.sleep(0.02)
    pytest.fail("the receiver did not start")


@pytest.mark.parametrize("by", ["line", "message", "byte"])
def test_receivers_write_what_the_sender_reads(by: str) -> None:
    chance = random.Random(by)
    pieces = [chance.randbytes(chance.randrange(1, 3000)).replace(b"\n", b" ") for _ in range(200)]
    if by == "message":
        content = b"".join(len(piece).to_bytes(LENGTH, "big") + piece for piece in pieces)
    else:
        content = b"\n".join(pieces)
    came, sent, received = transfer({"line": 6121, "message": 6122, "byte": 6123}[by], content, by)
    assert came == content
    assert sent["ok"]
    assert sent["bytes"] == received["bytes"] == len(content)
    assert received["gaps"] == 0
    if by != "byte":
        assert sent["messages"] == len(pieces)


def test_an_empty_input_is_a_stream_of_nothing() -> None:
    came, sent, received = transfer(6124, b"", "line")
    assert came == b""
    assert sent["ok"]
    assert received["streams"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--buffer", "lots"], "--buffer: "),
        (["--rate", "fast"], "--rate: "),
        (["--group", "0.0.0.0:1"], "--group: value '0.0.0.0:1' is not allowed"),
    ],
)
def test_a_wrong_option_is_one_line(options: list[str], message: str) -> None:
    done = subprocess.run(
        command("send", 6125, *options), input=b"", capture_output=True, text=False, env=ENVIRONMENT, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
