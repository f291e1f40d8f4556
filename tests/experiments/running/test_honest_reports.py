"""`mcastlab send` claims no more than is known: sources that change, interfaces that vanish, thousands of files."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from emu.namespaces import run_isolated
from experiments.cli import invoke
from experiments.commands import send
from experiments.contract.worlds import new_group
from experiments.session import outbox
from experiments.session.outbox import MOST_UNSENT
from experiments.session.session import Session
from experiments.session.transmission import Transmission
from tests.support.transfers import QUICK, Processes, contents, events, until

pytestmark = pytest.mark.emu


def overwrite(path: Path, size: int) -> None:
    """Overwrite the beginning of a file in place; its length stays."""
    with path.open("r+b") as file:
        file.write(os.urandom(size))


def test_a_source_that_changes_is_an_error_whenever_it_does(tmp_path: Path, live: Processes) -> None:
    small, large, got = tmp_path / "small", tmp_path / "large", tmp_path / "got"
    small.write_bytes(os.urandom(5000))
    large.write_bytes(os.urandom(2_000_000))
    receiver = live.receiver("--dir", got, "--count", "2", "--json")
    sender = live.start("send", small, large, "--rate", "4Mbit", "--grtt", "10ms", "--robust", "40", "--json")
    until(lambda: any(path.name.endswith(".part") for path in got.iterdir()) if got.exists() else False, sender)
    overwrite(large, 1000)
    assert sender.stdout is not None
    # It is still repeating its end when the other file, which is read and received completely, changes too.
    while "object_aborted" not in sender.stdout.readline():
        assert sender.poll() is None
    overwrite(small, 1000)
    last = json.loads(sender.communicate(timeout=30)[0].splitlines()[-1])
    assert (sender.returncode, last["ok"]) == (1, False)
    assert last["failures"] == dict.fromkeys(("small", "large"), "the file was changed while it was sent")
    until(lambda: set(contents(got)) == {"small"}, receiver)
    receiver.terminate()
    found = events(receiver)
    assert [event["reason"] for event in found if event["event"] == "object_aborted"] == ["squelched"]
    assert (found[-1]["objects"], found[-1]["objects_lost"]) == (1, 1)


@pytest.mark.parametrize("json_lines", [True, False])
def test_a_file_whose_sender_was_killed_is_told_as_incomplete(tmp_path: Path, live: Processes, json_lines: bool) -> None:
    large, got = tmp_path / "large", tmp_path / "got"
    large.write_bytes(os.urandom(2_000_000))
    receiver = live.receiver("--dir", got, *(["--json"] if json_lines else []))
    sender = live.start("send", large, "--rate", "4Mbit", "--grtt", "10ms")
    until(lambda: any(path.name.endswith(".part") for path in got.iterdir()) if got.exists() else False, sender)
    sender.kill()
    receiver.terminate()
    out, err = receiver.communicate(timeout=30)
    if json_lines:
        last = json.loads(out.splitlines()[-1])
        assert (last["ok"], last["objects"], last["objects_incomplete"]) == (False, 0, 1)
    else:
        assert err.startswith("incomplete: large (object 0 of sender ")
        assert ", 1 incomplete, " in out
    assert contents(got) == {}


def lose_the_interface(folder: Path) -> tuple[int, str, str]:
    """Send over an interface that is deleted meanwhile; return the exit code and the output."""
    for line in (
        "ip link add v0 type veth peer v1",
        "ip addr add 10.99.0.1/24 dev v0",
        "ip link set v0 up",
        "ip link set v1 up",
    ):
        subprocess.run(line.split(), check=True)
    processes = Processes(new_group(), "v0")
    sent = Path("/sys/class/net/v0/statistics/tx_packets")
    sender = processes.start("send", folder / "f", "--rate", "2Mbit")
    until(lambda: int(sent.read_text()) > 100, sender)
    subprocess.run(["ip", "link", "delete", "v0"], check=True)
    out, err = sender.communicate(timeout=15)
    return sender.returncode, out, err


def test_a_sender_whose_interface_is_deleted_gives_up(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(20_000_000))
    code, out, err = run_isolated(lambda: lose_the_interface(tmp_path))
    assert code == 1
    assert err.startswith("the kernel refuses to send: ")
    assert "gave up: 0 of 1 file" in out
    assert int(out.rpartition("; ")[2].split()[0]) > 100
    assert "packets refused by the kernel" in out


def test_thousands_of_files_need_few_descriptors(tmp_path: Path, live: Processes) -> None:
    wanted = {f"{number}": b"%d" % number for number in range(2000)}
    (tmp_path / "files").mkdir()
    for name, content in wanted.items():
        (tmp_path / "files" / name).write_bytes(content)
    got, quick = tmp_path / "got", [*QUICK, "--backoff", "0", "--grtt", "2ms", "--rate", "10Mbit"]
    receiver = live.receiver("--dir", got, "--count", "2000", "--timeout", "50", descriptors=40)
    sender = live.start("send", *sorted((tmp_path / "files").iterdir()), *quick, descriptors=40)
    out, err = sender.communicate(timeout=50)
    assert (sender.returncode, err) == (0, "")
    assert "sent, reception not confirmed: 2000 files" in out
    assert receiver.communicate(timeout=30)[1] == ""
    assert receiver.returncode == 0
    assert contents(got) == wanted


def test_a_part_of_many_files_is_queued_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two objects that wait must not have the same id, of which there are 65536."""
    queued: list[Transmission] = []
    waiting: list[int] = []

    def submit(session: Session, *given: Any) -> Transmission:
        queued.append(sent := plain(session, *given))
        waiting.append(sum(item.state == "queued" for item in queued))
        return sent

    plain = Session.submit
    monkeypatch.setattr(Session, "submit", submit)
    monkeypatch.setattr(send, "AT_ONCE", 50)
    for number in range(200):
        (tmp_path / f"{number}").touch()
    where = ["--group", new_group(), "--iface", "lo", "--rate", "50Mbit", "--grtt", "1ms", "--backoff", "0", "--robust", "2"]
    assert invoke(["send", *map(str, sorted(tmp_path.iterdir())), *where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["objects"] == 200
    assert max(waiting) < 50 + MOST_UNSENT


class Watched(Transmission):
    """A transmission that counts how often the state of any is read."""

    reads = 0

    def __getattribute__(self, name: str) -> Any:
        """Count what is read."""
        Watched.reads += name == "state"
        return super().__getattribute__(name)


def test_files_that_fail_by_the_thousands_are_each_looked_at_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def submit(session: Session, *given: Any) -> Transmission:
        for path in tmp_path.iterdir():
            path.unlink()
        return plain(session, *given)

    plain = Session.submit
    monkeypatch.setattr(Session, "submit", submit)
    monkeypatch.setattr(outbox, "Transmission", Watched)
    for number in range(1000):
        (tmp_path / f"{number}").write_bytes(b"x")
    Watched.reads = 0
    where = ["--group", new_group(), "--iface", "lo", "--rate", "50Mbit", "--grtt", "1ms", "--backoff", "0", "--robust", "2"]
    assert invoke(["send", *map(str, sorted(tmp_path.iterdir())), *where, "--json"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["failures"] == dict.fromkeys(map(str, range(1000)), "No such file or directory")
    assert Watched.reads < 100 * 1000


def test_the_progress_of_small_files_counts_their_bytes() -> None:
    assert send.bytes_sent([4] * 1000, 1400, 500) == 2000
    assert send.bytes_sent([3000], 1400, 1) == 1000
    assert send.bytes_sent([0, 0], 1400, 0) == 0
    assert send.bytes_sent([3000, 4], 1400, 9) == 3004
