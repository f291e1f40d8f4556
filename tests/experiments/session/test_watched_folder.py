"""`mcastlab send --watch`: each file once, also after a kill; the command after each; files that change or fail."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import invoke
from experiments.contract.worlds import new_group
from experiments.session.watched_folder import WatchedFolder
from protocols.errors import UsageError
from tests.support.transfers import QUICK, Processes, contents, until

pytestmark = pytest.mark.emu


@pytest.fixture
def live() -> Iterator[Processes]:
    """Return the processes of a group of the test's own."""
    processes = Processes(new_group())
    yield processes
    processes.close()


def told(process: "subprocess.Popen[str]", kind: str) -> dict[str, Any]:
    """Return the next JSON object of a kind from a process."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        found: dict[str, Any] = json.loads(line)
        if found["event"] == kind:
            return found
    raise AssertionError(process.communicate())


def watch(live: Processes, folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start a sender of a folder."""
    return live.start("send", "--watch", folder, *QUICK, "--json", *options)


def test_each_file_is_sent_once_and_the_command_follows_also_after_a_kill(tmp_path: Path, live: Processes) -> None:
    folder, got, log = tmp_path / "in", tmp_path / "got", tmp_path / "log"
    folder.mkdir()
    (folder / "first").write_bytes(b"1")
    (folder / ".hidden").write_bytes(b"no")
    receiver = live.receiver("--dir", got, "--json")
    then = f'echo "$(basename "$1")" >> {log}; echo noise'
    sender = watch(live, folder, "--then", then)
    sent = told(sender, "file_sent")
    assert (sent["name"], sent["size"], sent["then"], sent["problem"]) == ("first", 1, 0, None)
    (folder / "second name").write_bytes(b"22")
    assert told(sender, "file_sent")["name"] == "second name"
    sender.send_signal(signal.SIGKILL)
    sender.communicate()
    again = watch(live, folder, "--then", then)
    (folder / "third").write_bytes(b"333")
    assert told(again, "file_sent")["name"] == "third"
    again.terminate()
    summary = json.loads(again.communicate(timeout=20)[0].splitlines()[-1])
    assert (again.returncode, summary["ok"], summary["objects"]) == (130, True, 1)
    until(lambda: set(contents(got)) == {"first", "second name", "third"}, receiver)
    assert log.read_text() == "first\nsecond name\nthird\n"


def test_a_command_that_was_cut_off_or_failed_is_run_again_without_sending_again(tmp_path: Path, live: Processes) -> None:
    folder, mark = tmp_path / "in", tmp_path / "mark"
    folder.mkdir()
    (folder / "file").write_bytes(b"x")
    then = f"test -e {mark}"
    sender = watch(live, folder, "--then", then)
    failed = told(sender, "file_failed")
    assert (failed["problem"], failed["then"]) == ("the command exited with 1", 1)
    sender.kill()
    sender.communicate()
    mark.touch()
    again = watch(live, folder, "--then", then)
    done = told(again, "file_sent")
    # `confirmed` is null where nothing was sent.
    assert (done["name"], done["then"], done["confirmed"]) == ("file", 0, None)
    again.terminate()
    assert json.loads(again.communicate(timeout=20)[0].splitlines()[-1])["ok"] is True


def test_the_command_follows_what_is_confirmed_and_nothing_else(tmp_path: Path, live: Processes) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    (folder / "file").write_bytes(b"x")
    sender = watch(live, folder, "--then", f'echo "$1" >> {log}', "--acker", "7")
    failed = told(sender, "file_failed")
    assert (failed["problem"], failed["then"]) == ("not confirmed by node 7", None)
    sender.terminate()
    sender.communicate(timeout=20)
    assert not log.exists()
    live.receiver("--dir", tmp_path / "got", "--node", "7")
    again = watch(live, folder, "--then", f'echo "$1" >> {log}', "--acker", "7")
    sent = told(again, "file_sent")
    assert (sent["confirmed"], sent["then"]) == ([7], 0)
    assert log.read_text() == f"{folder / 'file'}\n"


def test_a_file_with_new_content_is_sent_again(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "file").write_bytes(b"old")
    sender = watch(live, tmp_path)
    assert told(sender, "file_sent")["size"] == 3
    (tmp_path / "file").write_bytes(b"newer")
    assert told(sender, "file_sent")["size"] == 5


def test_the_command_waits_for_new_content_that_is_not_sent_yet(tmp_path: Path, live: Processes) -> None:
    folder, got, done, goes_on = tmp_path / "in", tmp_path / "got", tmp_path / "done", tmp_path / "goes on"
    for path in (folder, done):
        path.mkdir()
    live.receiver("--dir", got)
    (folder / "first").write_bytes(b"x")
    sender = watch(live, folder, "--then", f'while [ ! -e "{goes_on}" ]; do sleep 0.01; done; mv "$1" "{done}"')
    state = folder / ".mcastlab-sent.json"
    until(lambda: state.exists() and "first" in state.read_text(), sender)
    (folder / "second").write_bytes(b"old")
    until(lambda: "second" in state.read_text(), sender)
    (folder / "second").write_bytes(b"newer")
    goes_on.touch()
    until(lambda: contents(done) == {"first": b"x", "second": b"newer"}, sender)
    until(lambda: b"newer" in contents(got).values(), sender)


def test_the_state_file_in_the_folder_is_not_sent(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "file").write_bytes(b"x")
    sender = watch(live, tmp_path, "--state", str(tmp_path / "state"), "--timeout", "3s")
    out, _ = sender.communicate(timeout=20)
    assert [found.get("name") for found in map(json.loads, out.splitlines())] == ["file", None]


def test_the_end_stops_a_command_that_runs(tmp_path: Path, live: Processes) -> None:
    (tmp_path / "file").write_bytes(b"x")
    mark = tmp_path / ".mark"
    sender = watch(live, tmp_path, "--then", f"echo $$ > {mark}; exec sleep 60")
    until(lambda: mark.exists() and mark.read_text().strip(), sender)
    begin = time.monotonic()
    sender.send_signal(signal.SIGINT)
    sender.communicate(timeout=20)
    assert sender.returncode == 130
    assert time.monotonic() - begin < 5
    until_gone(int(mark.read_text()))


def until_gone(number: int) -> None:
    """Wait until a process has ended."""
    for _ in range(500):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("the command still runs")


def test_a_folder_that_goes_away_ends_the_sender_with_the_reason(tmp_path: Path, live: Processes) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    sender = live.start("send", "--watch", folder, "--state", tmp_path / "state", *QUICK)
    until(live.members, sender)
    folder.rmdir()
    out, err = sender.communicate(timeout=20)
    assert sender.returncode == 1
    assert "No such file or directory" in err
    assert out.startswith("failed: 0 files sent")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--watch", "/nowhere"], "--watch: value '/nowhere' is not allowed; a folder"),
        (["--watch", "/tmp", "/etc/hostname"], "FILE: value '/etc/hostname' is not allowed; none with --watch"),
        ([], "FILE: is missing; at least one, or --watch DIR"),
        (["/etc/hostname", "--then", "true"], "--then: is not allowed; only with --watch"),
    ],
)
def test_wrong_options_are_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["send", *options, "--group", new_group(), "--iface", "127.0.0.1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_files_are_complete_when_two_looks_see_the_same(tmp_path: Path) -> None:
    folder = WatchedFolder(tmp_path)
    (tmp_path / "young").write_bytes(b"a")
    (tmp_path / "old").write_bytes(b"b")
    os.utime(tmp_path / "old", ns=(1, 1))
    (tmp_path / "folder").mkdir()
    assert folder.look() == {}
    with (tmp_path / "young").open("ab") as file:
        file.write(b"more")
    assert list(folder.look()) == ["old"]
    assert list(folder.look()) == ["old", "young"]
    with pytest.raises(UsageError, match="--watch: value"):
        WatchedFolder(tmp_path / "old")


def test_a_link_that_leads_nowhere_keeps_nobody_from_sending_the_rest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "through a file").symlink_to("file/below")
    (tmp_path / "dangling").symlink_to("nothing")
    folder = WatchedFolder(tmp_path)
    folder.look()
    assert list(folder.look()) == ["file"]
