"""`mcastlab recv` where files can't be stored: no descriptors, no inodes, a folder that is gone, receivers that were killed."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from emu.namespaces import run_isolated
from experiments.contract.worlds import new_group
from tests.support.forged import ForgedSender
from tests.support.transfers import Processes, contents, events, until

pytestmark = pytest.mark.emu

DESCRIPTORS = 48


@contextmanager
def senders(group: str, *nodes: int) -> Iterator[list[ForgedSender]]:
    """Yield forged senders with these node ids."""
    made = [ForgedSender(group, node) for node in nodes]
    yield made
    for sender in made:
        sender.close()


def parts(folder: Path) -> list[str]:
    """Return the names of the unfinished files in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


def test_open_objects_of_forged_senders_beside_a_transfer_neither_stop_it_nor_the_program(
    tmp_path: Path, live: Processes
) -> None:
    content = os.urandom(1_500_000)
    (tmp_path / "honest.bin").write_bytes(content)
    got = tmp_path / "got"
    receiver = live.receiver("--dir", got, descriptors=DESCRIPTORS)
    sender = live.start("send", tmp_path / "honest.bin", "--rate", "8Mbit", "--grtt", "10ms", "--robust", "5")
    until(got.exists, receiver)
    until(lambda: parts(got), receiver)
    with senders(live.group, *range(100, 120)) as forged:
        for number in range(240):
            for each in forged:
                # Two segments that are not adjacent make a file; one segment waits in memory.
                each.symbols(number, 50_000, [0, 3] if number < 10 else [0])
            until(lambda: live.waiting() < 50_000, receiver)
            if number == 10:
                unfinished, open_at_once = len(parts(got)), len(os.listdir(f"/proc/{receiver.pid}/fd"))
        until(lambda: "honest.bin" in os.listdir(got), receiver)
    assert unfinished > 100
    assert open_at_once <= DESCRIPTORS
    receiver.send_signal(signal.SIGHUP)
    out, err = receiver.communicate(timeout=30)
    assert receiver.returncode == 130
    assert contents(got) == {"honest.bin": content}
    assert "honest.bin" in out
    # 4800 objects were opened, more than there may be.
    assert "the one silent longest of too many unfinished files" in err
    assert "Traceback" not in err
    assert sender.wait(30) == 0


def run(*command: str | Path) -> None:
    """Run a command that must succeed."""
    subprocess.run(list(map(str, command)), check=True)


def lost(errors: Path) -> list[tuple[str, str]]:
    """Return the names of lost objects and the reasons, from the lines on stderr."""
    lines = [line.removeprefix("lost: ") for line in errors.read_text().splitlines()]
    return [(re.split(r" \(|: ", line)[0], line.rpartition(": ")[2]) for line in lines]


def _are_over(count: int, folder: Path, errors: Path) -> bool:
    """Return whether so many files are received or lost."""
    names = os.listdir(folder) if folder.exists() else []
    return len([name for name in names if not name.endswith((".part", ".lock"))]) + len(lost(errors)) == count


def break_the_disk(disk: Path, errors: Path) -> list[str]:
    """Receive on a disk that is full, read-only and whole by turns, and loses files; return what is there before the end."""
    run("mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=6", "none", disk)
    processes, folder = Processes(new_group()), disk / "got"
    receiver = processes.receiver("--dir", folder, errors=errors)
    with senders(processes.group, 7) as (forged,):

        def is_first_over() -> bool:
            # Again and again, since the receiver joins the group a moment after it has its port.
            forged.file(0, "f0", b"content")
            return _are_over(1, folder, errors)

        # The disk itself, the folder and the lock take three inodes, and a file takes two until it has its name.
        until(is_first_over, receiver)
        for number in range(1, 4):
            forged.file(number, f"f{number}", b"content")
            # One after the other, so that no two are unfinished at once.
            until(partial(_are_over, number + 1, folder, errors), receiver)
        assert contents(folder) == {"f0": b"content", "f1": b"content"}
        run("mount", "-o", "remount,size=4m,nr_inodes=100", disk)
        forged.file(4, "f4", b"content")
        until(lambda: sorted(os.listdir(folder)) == ["f0", "f1", "f4"], receiver)
        # As long as a file is being hashed, the disk is busy.
        until(lambda: subprocess.run(["mount", "-o", "remount,ro", disk], check=False).returncode == 0, receiver)
        forged.file(5, "f5", b"content")
        until(lambda: len(lost(errors)) == 3, receiver)
        run("mount", "-o", "remount,rw", disk)
        forged.announce(6, "huge", 5_000_000)
        until(lambda: len(lost(errors)) == 4, receiver)
        forged.announce(7, "f7", 5000)
        forged.symbols(7, 5000, [0, 2], bytes(5000))
        until(lambda: parts(folder), receiver)
        (folder / parts(folder)[0]).unlink()
        forged.symbols(7, 5000, [1, 3, 4], bytes(5000))
        forged.file(8, "f8", bytes(3000))
        until(lambda: "f8" in os.listdir(folder), receiver)
        there = sorted(contents(folder))
        run("rm", "-r", folder)
        forged.file(9, "f9", b"content")
        until(lambda: len(lost(errors)) == 6, receiver)
    receiver.terminate()
    assert receiver.wait(20) == 130
    return there


def test_a_broken_disk_costs_the_files_it_can_not_store_and_no_more(tmp_path: Path) -> None:
    errors, disk = tmp_path / "errors", tmp_path / "disk"
    disk.mkdir()
    there = run_isolated(lambda: break_the_disk(disk, errors))
    assert there == ["f0", "f1", "f4", "f8"]
    assert lost(errors) == [
        ("f2", "No space left on device"),
        ("f3", "No space left on device"),
        ("f5", "Read-only file system"),
        ("object 6 of sender 7", "5MB were announced, 4.18MB are free"),
        ("f7", "the unfinished file was removed"),
        ("f9", "the folder was removed"),
    ]


def test_a_killed_receiver_is_replaced_by_one_that_takes_the_object_under_way(tmp_path: Path, live: Processes) -> None:
    content, got = os.urandom(2_000_000), tmp_path / "got"
    (tmp_path / "f").write_bytes(content)
    first = live.receiver("--dir", got)
    sender = live.start("send", tmp_path / "f", "--rate", "5Mbit", "--grtt", "10ms", "--json")
    until(lambda: got.exists() and parts(got), sender)
    first.kill()
    first.wait()
    assert len(parts(got)) == 1
    again = live.start("recv", "--dir", got, "--count", "1", "--timeout", "30", "--json")
    found = events(again)
    assert found[0] == {"event": "unfinished_removed", "files": 1}
    assert found[-1]["ok"]
    assert events(sender)[-1]["repairs"] > 0
    assert {path.name: path.read_bytes() for path in got.iterdir()} == {"f": content}
