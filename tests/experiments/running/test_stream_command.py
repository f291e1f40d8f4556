"""`mcastlab stream`: standard input to standard output, by line, message and byte, over the loopback device."""

import asyncio
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
from experiments.session.stream_copy import copy_input
from protocols.errors import UsageError
from tests.tidy.tree import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


class WrittenStream:
    """Keeps what is written to it."""

    def __init__(self) -> None:
        self.written = b""

    def put(self, data: bytes, is_start: bool) -> None:
        self.written += data

    async def room(self) -> None:
        """Have room at once."""


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


def test_a_receiver_of_files_goes_on_beside_a_stream(tmp_path: Path) -> None:
    port = 6125
    group = ["--group", f"239.7.7.21:{port}", "--iface", "lo", "--timeout", "30", "--json"]
    program = [sys.executable, "-m", "mcastlab"]
    file = tmp_path / "file.bin"
    file.write_bytes(bytes(5000))
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": ENVIRONMENT, "cwd": ROOT}
    receiver = subprocess.Popen([*program, "recv", *group, "--dir", str(tmp_path / "into"), "--count", "1"], **options)
    _wait_for_group(port)
    stream = command("send", port, "--by", "line", "--rate", "50Mbit", "--grtt", "10ms", "--node", "7")
    subprocess.run(stream, input=b"line\n" * 100, check=True, **{**options, "stdout": subprocess.DEVNULL})
    subprocess.run([*program, "send", str(file), *group, "--rate", "50Mbit", "--grtt", "10ms"], check=True, **options)
    told, errors = receiver.communicate(timeout=40)
    assert receiver.returncode == 0, errors
    assert json.loads(told.splitlines()[-1])["objects"] == 1
    assert (tmp_path / "into" / "file.bin").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--buffer", "lots"], "--buffer: "),
        (["--buffer", "0"], "--buffer: value '0' is not allowed; at least 1B"),
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


def test_the_summary_counts_one_message_in_the_singular() -> None:
    quick = ["--rate", "50Mbit", "--grtt", "1ms"]
    arguments = [word for word in command("send", 6119, *quick) if word != "--json"]
    done = subprocess.run(arguments, input=b"line\n", capture_output=True, env=ENVIRONMENT, cwd=ROOT, check=True)
    assert b": 5B, 1 message, 0 NACKs, in " in done.stderr


def test_lines_of_two_senders_without_node_ids_come_whole() -> None:
    port = 6126
    receiver = subprocess.Popen(
        command("recv", port, "--count", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT
    )
    _wait_for_group(port)
    wanted = {name: [f"{name} {number} {'x' * (number % 5000)}" for number in range(400)] for name in ("one", "two")}
    senders = []
    for lines in wanted.values():
        options = ["--rate", "50Mbit", "--grtt", "10ms"]
        sender = subprocess.Popen(
            command("send", port, *options), stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT
        )
        assert sender.stdin is not None
        senders.append((sender, "\n".join([*lines, ""]).encode()))
    for sender, content in senders:
        assert sender.stdin is not None
        # A part of each, so that both are under way at once.
        sender.stdin.write(content[: len(content) // 2])
        sender.stdin.flush()
    for sender, content in senders:
        sender.communicate(content[len(content) // 2 :], timeout=40)
        assert sender.returncode == 0
    came, told = receiver.communicate(timeout=40)
    assert receiver.returncode == 0, told
    lines = came.decode().splitlines()
    for name, written in wanted.items():
        assert [line for line in lines if line.startswith(name)] == written
    assert len(lines) == 800
    assert json.loads(told)["streams"] == 2


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (b"\0\0\0\5ab", "standard input: it ends within a message, after 6 bytes of it"),
        (b"\xff\xff\xff\xff", "standard input: a message of 4294967295 bytes; at most"),
    ],
)
def test_the_messages_before_one_that_is_none_are_sent(rest: bytes, told: str) -> None:
    async def copied() -> bytes:
        pieces = iter([b"\0\0\0\1a\0\0", b"\0\2bc" + rest, b""])
        stream = WrittenStream()

        async def read() -> bytes:
            return next(pieces)

        with pytest.raises(UsageError, match=told):
            await copy_input(read, stream, "message")  # type: ignore[arg-type]
        return stream.written

    assert asyncio.run(copied()) == b"\0\0\0\1a\0\0\0\2bc"


def test_messages_before_a_refused_one_reach_the_receiver() -> None:
    receiver = subprocess.Popen(
        command("recv", 6129, "--by", "message", "--count", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    _wait_for_group(6129)
    done = subprocess.run(
        command("send", 6129, "--by", "message", "--grtt", "10ms"),
        input=b"\0\0\0\1a\0\0\0\5b",
        capture_output=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert receiver.communicate(timeout=40)[0] == b"\0\0\0\1a"


def test_input_that_is_no_message_is_one_line_and_exit_code_2() -> None:
    done = subprocess.run(
        command("send", 6127, "--by", "message"),
        input=b"\xff\xff\xff\xff no length",
        capture_output=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert b"standard input: a message of 4294967295 bytes; at most" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_an_output_that_is_closed_ends_the_receiver_quietly_as_sigpipe_does() -> None:
    port = 6128
    receiver = subprocess.Popen(
        command("recv", port), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT
    )
    _wait_for_group(port)
    assert receiver.stdout is not None
    receiver.stdout.close()
    subprocess.run(
        command("send", port, "--rate", "50Mbit", "--grtt", "10ms"),
        input=b"line\n" * 100,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=True,
    )
    assert receiver.stderr is not None
    assert receiver.stderr.read() == b""
    assert receiver.wait(timeout=20) == 141
