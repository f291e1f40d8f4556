"""`mcastlab send --ack`, `--expect` and `--acker`: what the sender is told of receivers, and its exit code."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.transfers import QUICK, Processes, contents, events

pytestmark = pytest.mark.emu


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_bytes(os.urandom(100_000))
    return path


def last_of(live: Processes, *command: Any) -> tuple[int, dict[str, Any]]:
    """Run a sender; return its exit code and its summary."""
    sender = live.start("send", *command, *QUICK, "--json")
    return sender.wait(timeout=30), events(sender)[-1]


def test_everybody_confirms_and_receivers_stay_until_they_have(tmp_path: Path, file: Path, live: Processes) -> None:
    receivers = [
        live.receiver("--dir", tmp_path / str(node), "--count", "1", "--timeout", "30", "--node", str(node))
        for node in (21, 22)
    ]
    code, last = last_of(live, file, "--expect", "2")
    assert (code, last["ok"], last["confirmed"], last["unconfirmed"]) == (0, True, [21, 22], [])
    assert [receiver.wait(timeout=20) for receiver in receivers] == [0, 0]
    assert contents(tmp_path / "21") == contents(tmp_path / "22") == {"f": file.read_bytes()}


def test_two_senders_on_one_machine_are_two_nodes(tmp_path: Path, live: Processes) -> None:
    files = [tmp_path / name for name in ("one", "two")]
    for path in files:
        path.write_bytes(os.urandom(300_000))
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "2", "--timeout", "30", "--node", "21", "--json")
    slowly = ["--rate", "2Mbit", "--grtt", "10ms", "--robust", "5", "--timeout", "20", "--acker", "21", "--json"]
    senders = [live.start("send", path, *slowly) for path in files]
    assert [events(sender)[-1]["confirmed"] for sender in senders] == [[21], [21]]
    assert len({line["sender"] for line in events(receiver) if line["event"] == "file_stored"}) == 2
    assert contents(tmp_path / "got") == {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize(("feedback", "code"), [("unicast", 0), ("none", 1)])
def test_receivers_confirm_by_unicast_and_silent_ones_do_not(
    tmp_path: Path, file: Path, live: Processes, feedback: str, code: int
) -> None:
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "30", "--feedback", feedback)
    assert last_of(live, file, "--expect", "1")[0] == code
    assert receiver.wait(timeout=20) == 0
    assert contents(tmp_path / "got") == {"f": file.read_bytes()}


def test_a_named_receiver_that_is_not_there_is_told_and_fails_the_transfer(tmp_path: Path, file: Path, live: Processes) -> None:
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "30", "--node", "21")
    sender = live.start("send", file, *QUICK, "--acker", "21", "--acker", "22")
    out, err = sender.communicate(timeout=30)
    assert (sender.returncode, err) == (1, "")
    assert "not confirmed by node 22\n" in out
    assert "confirmed by 1 of 2 receivers: 1 file, 100kB in " in out
    assert receiver.wait(timeout=20) == 0


def test_too_few_or_none_are_a_failure(tmp_path: Path, file: Path, live: Processes) -> None:
    code, last = last_of(live, file, "--ack")
    assert (code, last["ok"], last["confirmed"], last["unconfirmed"]) == (1, False, [], [])
    live.receiver("--dir", tmp_path / "got", "--timeout", "30", "--node", "21")
    code, last = last_of(live, file, "--expect", "2")
    assert (code, last["ok"], last["confirmed"]) == (1, False, [21])


def test_a_receiver_that_could_not_store_the_file_does_not_confirm(tmp_path: Path, file: Path, live: Processes) -> None:
    got = tmp_path / "got"
    live.receiver("--dir", got, "--timeout", "30", "--node", "21", "--json")
    live.receiver("--dir", tmp_path / "other", "--timeout", "30", "--node", "22")
    while not got.exists():
        time.sleep(0.01)
    got.rmdir()
    got.write_bytes(b"")
    code, last = last_of(live, file, "--acker", "21", "--acker", "22")
    assert (code, last["confirmed"], last["unconfirmed"]) == (1, [22], [21])


def test_a_receiver_ends_at_once_when_nobody_asks(tmp_path: Path, file: Path, live: Processes) -> None:
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "30", "--json")
    sender = live.start("send", file, *QUICK, "--robust", "200")
    lines = events(receiver)
    # The sender goes on to announce its end.
    assert (receiver.returncode, sender.poll()) == (0, None)
    assert [line["event"] for line in lines].count("file_stored") == 1


def test_a_receiver_that_has_enough_declines_what_follows(tmp_path: Path, live: Processes) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(os.urandom(100_000))
    receiver = live.receiver("--dir", tmp_path / "got", "--count", "1", "--timeout", "30", "--json")
    live.start("send", tmp_path / "a", tmp_path / "b", *QUICK)
    last = events(receiver)[-1]
    assert (receiver.returncode, last["objects"], set(contents(tmp_path / "got"))) == (0, 1, {"a"})


@pytest.mark.parametrize("options", [("--expect", "0"), ("--acker", "0"), ("--acker", "4294967295"), ("--acker", "x")])
def test_bad_options_are_refused(file: Path, live: Processes, options: tuple[str, str]) -> None:
    sender = live.start("send", file, *QUICK, *options)
    _, err = sender.communicate(timeout=30)
    assert sender.returncode == 2
    assert options[0] in err
    assert "Traceback" not in err


def test_the_events_of_acks_are_lines_of_json(tmp_path: Path, file: Path, live: Processes) -> None:
    live.receiver("--dir", tmp_path / "got", "--timeout", "30", "--node", "21")
    sender = live.start("send", file, *QUICK, "--acker", "21", "--json")
    lines = {line["event"]: line for line in events(sender)}
    assert lines["node_acknowledged"] | {"time": 0} == {
        "event": "node_acknowledged",
        "time": 0,
        "object_id": 0,
        "node": 21,
        "content": "",
    }
    assert lines["acks_completed"]["acknowledged"] == [21]
    assert json.dumps(lines["acks_completed"]["missing"]) == "[]"
