"""`mcastlab send` and `mcastlab recv` as separate processes, over multicast on the loopback device."""

import hashlib
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.transfers import QUICK, Processes, contents, events

pytestmark = pytest.mark.emu

SUMMARY = {
    *("event", "ok", "objects", "bytes", "files", "seconds", "goodput_mbit_s", "nacks_sent", "nacks_received", "repairs"),
    *("loss", "cpu_s", "send_errors", "send_error"),
}
OF_SEND, OF_RECV = {"confirmed", "unconfirmed", "feedback_received", "failures"}, {"objects_lost", "objects_incomplete"}


def test_files_arrive_with_names_and_contents_and_both_sides_report_equal_digests(tmp_path: Path, live: Processes) -> None:
    wanted = {"empty": b"", "one": b"x", "segment": os.urandom(1400), "bigger.bin": os.urandom(300_000)}
    for name, content in wanted.items():
        (tmp_path / name).write_bytes(content)
    got = tmp_path / "got"
    receiver = live.receiver("--dir", got, "--count", "4", "--timeout", "20", "--json")
    sender = live.start("send", *(tmp_path / name for name in wanted), *QUICK, "--json")
    sender_summary, receiver_summary = events(sender)[-1], events(receiver)[-1]
    assert (sender.returncode, receiver.returncode) == (0, 0)
    assert contents(got) == wanted
    rows = [
        {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in wanted.items()
    ]
    assert sender_summary["files"] == receiver_summary["files"] == rows
    for last, own in ((sender_summary, OF_SEND), (receiver_summary, OF_RECV)):
        assert set(last) == SUMMARY | own
        assert (last["ok"], last["objects"], last["bytes"]) == (True, 4, 301_401)


def test_an_existing_file_is_kept_and_the_event_has_the_new_name(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "note").write_bytes(b"new")
    got = tmp_path / "got"
    got.mkdir()
    (got / "note").write_bytes(b"old")
    receiver = live.receiver("--dir", got, "--count", "1", "--timeout", "20", "--json")
    live.start("send", tmp_path / "note", *QUICK)
    (stored,) = [event for event in events(receiver) if event["event"] == "file_stored"]
    assert (stored["asked"], stored["name"], stored["renamed"]) == ("note", "note.1", True)
    assert contents(got) == {"note": b"old", "note.1": b"new"}


def test_two_receivers_on_one_machine_both_receive_the_file(tmp_path: Path, live: Processes) -> None:
    content = os.urandom(100_000)
    (tmp_path / "f").write_bytes(content)
    places = [tmp_path / "a", tmp_path / "b"]
    receivers = [live.receiver("--dir", place, "--count", "1", "--timeout", "20") for place in places]
    sender = live.start("send", tmp_path / "f", *QUICK)
    for process in (sender, *receivers):
        process.communicate(timeout=30)
    assert [process.returncode for process in (sender, *receivers)] == [0, 0, 0]
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == {"f": content}


def test_a_receiver_that_times_out_exits_with_code_1(tmp_path: Path, live: Processes) -> None:
    receiver = live.start("recv", "--dir", tmp_path / "got", "--timeout", "0.1", "--json")
    last = events(receiver)[-1]
    assert (receiver.returncode, last["ok"], last["objects"], last["files"]) == (1, False, 0, [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_receiver_exits_with_code_130_and_removes_partial_files(
    tmp_path: Path, live: Processes, number: signal.Signals
) -> None:
    (tmp_path / "f").write_bytes(os.urandom(2_000_000))
    got = tmp_path / "got"
    receiver = live.receiver("--dir", got, "--json")
    sender = live.start("send", tmp_path / "f", "--rate", "2Mbit")
    while not (got.exists() and contents(got)):
        assert receiver.poll() is None
        time.sleep(0.01)
    receiver.send_signal(number)
    last = events(receiver)[-1]
    assert (receiver.returncode, last["ok"], last["objects"]) == (130, False, 0)
    assert contents(got) == {}
    sender.send_signal(number)
    assert re.search(r"interrupted: 0 of 1 file, \S+B of \S+B in ", sender.communicate(timeout=20)[0])
    assert sender.returncode == 130


def test_a_sender_that_times_out_exits_with_code_1(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "f").write_bytes(os.urandom(1_000_000))
    sender = live.start("send", tmp_path / "f", "--rate", "1Mbit", "--timeout", "0.2", "--json")
    last = events(sender)[-1]
    assert (last["ok"], last["objects"], last["bytes"]) == (False, 0, 0)
    assert sender.returncode == 1


def test_a_sender_without_receivers_ends_after_its_last_flush(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "f").write_bytes(b"content")
    sender = live.start("send", tmp_path / "f", *QUICK)
    out, err = sender.communicate(timeout=20)
    assert sender.returncode == 0
    assert hashlib.sha256(b"content").hexdigest() in out
    assert "sent, reception not confirmed: 1 file, 7B" in out
    assert "no receiver answered" in out
    assert err == ""


def test_the_time_is_over_for_the_digest_too(tmp_path: Path, live: Processes) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(5 << 30)
    begin = time.monotonic()
    sender = live.start("send", tmp_path / "huge", "--timeout", "0.3", "--json")
    last = events(sender)[-1]
    # Hashing 5 GiB takes more than ten seconds.
    assert time.monotonic() - begin < 8
    assert (sender.returncode, last["ok"]) == (1, False)
    assert last["files"] == [{"name": "huge", "size": 5 << 30, "sha256": None}]


def test_any_name_is_shown_on_a_terminal_that_knows_ascii_alone(
    tmp_path: Path, live: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("LC_ALL", "C")
    name = "Grüße\n\x1b[31m"
    (tmp_path / name).write_bytes(b"x")
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "20")
    sender = live.start("send", tmp_path / name, *QUICK)
    for process in (sender, receiver):
        out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
        assert "Gr\\xfc\\xdfe" in out
        assert out.isascii()
        assert "\x1b" not in out
