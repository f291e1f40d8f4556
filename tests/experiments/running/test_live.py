"""`mcastlab send` and `mcastlab recv` as separate processes, over multicast on the loopback device."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.emu

COMMAND = [sys.executable, "-c", "from experiments.cli import main; main()"]
QUICK = ["--rate", "50Mbit", "--grtt", "10ms", "--robust", "5"]
SUMMARY = {"event", "ok", "objects", "bytes", "files", "seconds", "goodput_mbit_s", "nacks_sent", "nacks_received", "repairs"}

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def group() -> str:
    """Return a group with an unused port, so that parallel test runs do not receive each other's packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"239.255.77.1:{probe.getsockname()[1]}"


@pytest.fixture
def start(group: str) -> Iterator[Start]:
    """Start `mcastlab COMMAND ... --group ... --iface 127.0.0.1`; processes that still run after the test are killed."""
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str | Path) -> "subprocess.Popen[str]":
        session = ["--group", group, "--iface", "127.0.0.1"]
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, *map(str, arguments), *session], stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def members(group: str) -> int:
    """Return the number of sockets bound to the group's port, from the kernel's table."""
    wanted = f":{int(group.rpartition(':')[2]):04X}"
    rows = Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]
    places = [row.split()[1] for row in rows]
    return sum(place.endswith(wanted) and not place.startswith("0100007F") for place in places)


def listening(start: Start, group: str, *arguments: str | Path) -> "subprocess.Popen[str]":
    """Start a receiver and wait until it has joined the group."""
    before = members(group)
    receiver = start("recv", *arguments)
    while members(group) == before:
        assert receiver.poll() is None, receiver.communicate()
        time.sleep(0.01)
    return receiver


def events(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Parse every line of stdout as a JSON object; the last one is the summary."""
    out, err = process.communicate(timeout=30)
    assert err == ""
    found = [json.loads(line) for line in out.splitlines()]
    assert found[-1]["event"] == "summary"
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_arrive_with_names_and_contents_and_both_sides_report_equal_digests(
    tmp_path: Path, start: Start, group: str
) -> None:
    wanted = {"empty": b"", "one": b"x", "segment": os.urandom(1400), "bigger.bin": os.urandom(300_000)}
    for name, content in wanted.items():
        (tmp_path / name).write_bytes(content)
    got = tmp_path / "got"
    receiver = listening(start, group, "--dir", got, "--count", "4", "--timeout", "20", "--json")
    sender = start("send", *(tmp_path / name for name in wanted), *QUICK, "--json")
    sender_summary, receiver_summary = events(sender)[-1], events(receiver)[-1]
    assert (sender.returncode, receiver.returncode) == (0, 0)
    assert contents(got) == wanted
    rows = [
        {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in wanted.items()
    ]
    assert sender_summary["files"] == receiver_summary["files"] == rows
    for last in (sender_summary, receiver_summary):
        assert set(last) - {"loss"} == SUMMARY | {"cpu_s"}
        assert (last["ok"], last["objects"], last["bytes"]) == (True, 4, 301_401)


def test_an_existing_file_is_kept_and_the_event_has_the_new_name(tmp_path: Path, start: Start, group: str) -> None:
    (tmp_path / "note").write_bytes(b"new")
    got = tmp_path / "got"
    got.mkdir()
    (got / "note").write_bytes(b"old")
    receiver = listening(start, group, "--dir", got, "--count", "1", "--timeout", "20", "--json")
    start("send", tmp_path / "note", *QUICK)
    (stored,) = [event for event in events(receiver) if event["event"] == "file_stored"]
    assert (stored["asked"], stored["name"], stored["renamed"]) == ("note", "note.1", True)
    assert contents(got) == {"note": b"old", "note.1": b"new"}


def test_two_receivers_on_one_machine_both_receive_the_file(tmp_path: Path, start: Start, group: str) -> None:
    content = os.urandom(100_000)
    (tmp_path / "f").write_bytes(content)
    places = [tmp_path / "a", tmp_path / "b"]
    receivers = [listening(start, group, "--dir", place, "--count", "1", "--timeout", "20") for place in places]
    sender = start("send", tmp_path / "f", *QUICK)
    for process in (sender, *receivers):
        process.communicate(timeout=30)
    assert [process.returncode for process in (sender, *receivers)] == [0, 0, 0]
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == {"f": content}


def test_a_receiver_that_times_out_exits_with_code_1(tmp_path: Path, start: Start) -> None:
    receiver = start("recv", "--dir", tmp_path / "got", "--timeout", "0.1", "--json")
    last = events(receiver)[-1]
    assert (receiver.returncode, last["ok"], last["objects"], last["files"]) == (1, False, 0, [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_receiver_exits_with_code_130_and_removes_partial_files(
    tmp_path: Path, start: Start, group: str, number: signal.Signals
) -> None:
    (tmp_path / "f").write_bytes(os.urandom(2_000_000))
    got = tmp_path / "got"
    receiver = listening(start, group, "--dir", got, "--json")
    sender = start("send", tmp_path / "f", "--rate", "2Mbit")
    while not (got.exists() and contents(got)):
        assert receiver.poll() is None
        time.sleep(0.01)
    receiver.send_signal(number)
    last = events(receiver)[-1]
    assert (receiver.returncode, last["ok"], last["objects"]) == (130, False, 0)
    assert contents(got) == {}
    sender.send_signal(number)
    assert "interrupted: 1 files" in sender.communicate(timeout=20)[0]
    assert sender.returncode == 130


def test_a_sender_that_times_out_exits_with_code_1(tmp_path: Path, start: Start) -> None:
    (tmp_path / "f").write_bytes(os.urandom(1_000_000))
    sender = start("send", tmp_path / "f", "--rate", "1Mbit", "--timeout", "0.2", "--json")
    assert events(sender)[-1]["ok"] is False
    assert sender.returncode == 1


def test_a_sender_without_receivers_ends_after_its_last_flush(tmp_path: Path, start: Start) -> None:
    (tmp_path / "f").write_bytes(b"content")
    sender = start("send", tmp_path / "f", *QUICK)
    out, err = sender.communicate(timeout=20)
    assert sender.returncode == 0
    assert hashlib.sha256(b"content").hexdigest() in out
    assert "sent: 1 files, 7B" in out
    assert err == ""
