"""The real disk: what is durable, what is refused, what a killed process leaves."""

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from emu.disk import Disk, open_store
from emu.fault_injection import HostCrash
from emu.launch import Emulation, emulate
from protocols.errors import StorageError
from protocols.storage import Delete, Put, Record
from tests.emu.journal_program import JournalProgram
from tests.emu.number_protocol import PORT, NumberCodec
from topologies.disk_model import DiskModel
from topologies.generators import Star


class Answers:
    """Collects the answers of a disk."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[tuple[int, list[Record] | None]] = SimpleQueue()
        self.errors: SimpleQueue[StorageError] = SimpleQueue()

    def answer(self, ticket: int, records: Any) -> None:
        self.queue.put((ticket, None if records is None else list(records)))

    def next(self) -> tuple[int, list[Record] | None]:
        return self.queue.get(timeout=10)


def at_once(function: Callable[..., None], *arguments: object) -> None:
    function(*arguments)


@contextmanager
def disk_in(folder: Path, **model: Any) -> Iterator[tuple[Disk, Answers]]:
    answers, settings = Answers(), DiskModel(**model)
    disk = Disk(
        open_store(folder / "store", settings.size and int(settings.size)),
        "h1",
        settings,
        at_once,
        answers.answer,
        answers.errors.put,
    )
    try:
        yield disk, answers
    finally:
        disk.close()


def test_records_are_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    with disk_in(tmp_path) as (disk, answers):
        disk.store([Put(b"b", b"1", extra=5), Put(b"a", b"2"), Put(b"c", b"3")])
        disk.store([Delete(b"c"), Put(b"a", b"4"), Delete(b"nothing")])
        assert [answers.next(), answers.next()] == [(1, None), (2, None)]
    with disk_in(tmp_path) as (disk, answers):
        disk.fetch(b"", None, None)
        disk.fetch(b"b", b"c", None)
        disk.fetch(b"", None, 1)
        assert [answers.next()[1] for _ in range(3)] == [
            [Put(b"a", b"4"), Put(b"b", b"1", 5)],
            [Put(b"b", b"1", 5)],
            [Put(b"a", b"4")],
        ]


def test_a_read_finds_what_was_stored_just_before_it(tmp_path: Path) -> None:
    with disk_in(tmp_path) as (disk, answers):
        for number in range(50):
            disk.store([Put(b"k", b"%d" % number)])
            disk.fetch(b"", None, None)
        found = [records for _, records in (answers.next() for _ in range(100)) if records is not None]
    assert found == [[Put(b"k", b"%d" % number)] for number in range(50)]


def test_batches_that_wait_share_a_commit(tmp_path: Path) -> None:
    with disk_in(tmp_path, sync=0.05) as (disk, answers):
        for number in range(200):
            disk.store([Put(b"%d" % number, b"")])
        tickets = [answers.next()[0] for _ in range(200)]
        assert tickets == list(range(1, 201))
        assert disk.commits < 20


def test_a_store_in_use_is_refused(tmp_path: Path) -> None:
    with disk_in(tmp_path), pytest.raises(StorageError, match="store: the store is in use by another program"):
        open_store(tmp_path / "store")


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"something else" * 100)
    with pytest.raises(StorageError, match="is no store"):
        open_store(tmp_path / "store")
    assert (tmp_path / "store").read_bytes() == b"something else" * 100


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path / "store").close()
    with closing(sqlite3.connect(tmp_path / "store")) as other:
        other.execute("PRAGMA user_version = 7")
    with pytest.raises(StorageError, match="is a store of version 7; this program reads version 1"):
        open_store(tmp_path / "store")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "store")) as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(StorageError, match="is a database of another program"):
        open_store(tmp_path / "store")


def test_a_full_disk_is_told_and_nothing_stored_before_is_lost(tmp_path: Path) -> None:
    with disk_in(tmp_path, size=100_000) as (disk, answers):
        disk.store([Put(b"000", bytes(5000))])
        durable = [answers.queue.get(timeout=10)[0]]
        for number in range(1, 100):
            disk.store([Put(b"%03d" % number, bytes(5000))])
            if not answers.errors.empty():
                break
            time.sleep(0.002)
        assert str(answers.errors.get(timeout=10)) == "h1: the disk is full"
        durable += [answers.queue.get()[0] for _ in range(answers.queue.qsize())]
    with disk_in(tmp_path) as (disk, answers):
        disk.fetch(b"", None, None)
        found = answers.next()[1]
        assert found is not None
        assert {b"%03d" % (ticket - 1) for ticket in durable} <= {record.key for record in found}


def kill(folder: Path, after: float | None, at: tuple[str, int] | None = None) -> int:
    """Run a process that stores batches and kill it; return the ticket of the last batch that was reported durable, 0: none.

    It is killed `after` seconds from its first durable batch, or kills itself `at` a batch, "before" or "after" that report.
    """
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _store_for_ever(folder, telling, at)
    os.close(telling)
    tickets = os.read(told, 4) if after is not None else b""
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with open(told, "rb") as pipe:
        tickets += pipe.read()
    return int.from_bytes(tickets[-4:], "big") if tickets else 0


def _store_for_ever(folder: Path, telling: int, at: tuple[str, int] | None) -> None:
    """Store batch after batch and write the ticket of each durable one to a pipe, until the process is killed."""

    def answer(ticket: int, records: object) -> None:
        del records
        if ("before", ticket) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(telling, ticket.to_bytes(4, "big"))
        if ("after", ticket) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    disk = Disk(open_store(folder / "store"), "h1", DiskModel(), at_once, answer, lambda error: None)
    ticket = 0
    while True:
        ticket += 1
        disk.store([Put(b"%06d%d" % (ticket, n), b"") for n in range(3)])
        time.sleep(0.0002)


def recovered(folder: Path) -> list[bytes]:
    """Return the keys in a store, which is emptied."""
    with disk_in(folder) as (disk, answers):
        disk.fetch(b"", None, None)
        found = answers.next()[1]
        assert found is not None
        disk.store([Delete(record.key) for record in found])
        answers.next()
    return [record.key for record in found]


def whole_batches(keys: list[bytes]) -> int:
    """Return how many batches keys are of; fails if one is not whole or those before it are not all there."""
    batches = len(keys) // 3
    assert keys == sorted(b"%06d%d" % (ticket, n) for ticket in range(1, batches + 1) for n in range(3))
    return batches


def test_a_process_killed_at_a_hundred_random_instants_never_loses_what_it_was_told_durable(tmp_path: Path) -> None:
    chance = random.Random(16)
    stored = []
    for _ in range(100):
        told = kill(tmp_path, chance.uniform(0.0, 0.01))
        stored.append(whole_batches(recovered(tmp_path)))
        assert stored[-1] >= told >= 1
    assert len(set(stored)) > 10, "the instants differ"


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_killed_before_or_after_it_is_told_durable_does_not_lose_it(tmp_path: Path, side: str) -> None:
    for ticket in range(1, 26):
        told = kill(tmp_path, None, (side, ticket))
        assert told == (ticket if side == "after" else ticket - 1)
        assert whole_batches(recovered(tmp_path)) >= ticket, "it was durable before it was told"


def play(fault: HostCrash, disk: Path | None = None) -> Emulation:
    """Emulate two hosts that store numbers."""
    return emulate(
        Star.model_validate({"receivers": 1}).build(),
        {"r1": JournalProgram(), "sender": JournalProgram()},
        codec=NumberCodec,
        port=PORT,
        duration=2.0,
        over=lambda finished: False,
        seed=1,
        faults=[fault],
        respawn=lambda name, life: JournalProgram(),
        disk=disk,
    )


@pytest.mark.emu
@pytest.mark.parametrize("kept", [False, True])
def test_a_host_that_is_killed_finds_what_was_durable_when_it_starts_again(tmp_path: Path, kept: bool) -> None:
    run = play(HostCrash("r1 crashes", 0.6, 0.3, ["r1"]), tmp_path if kept else None)
    result = run.nodes["r1"].result
    assert result is not None
    found, durable = result["found"], result["durable"]
    assert len(found) > 20, "of its first life"
    assert found == list(range(len(found)))
    assert durable[:3] == [len(found), len(found) + 1, len(found) + 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == (["r1", "sender"] if kept else [])


@pytest.mark.emu
def test_a_crash_at_a_decision_stops_the_process_at_that_very_point() -> None:
    run = play(HostCrash("r1 crashes", inf, 0.3, ["r1"], decision=("stored", 17)))
    (before,) = run.nodes["r1"].earlier
    assert len(before["durable"]) == 17
    assert before["after"] == 16, "the input did not end"
    after = run.nodes["r1"].result
    assert after is not None
    assert len(after["found"]) >= 17
    assert run.injected == {"crash": 1, "restart": 1}


@pytest.mark.emu
def test_a_disk_that_is_lost_is_empty_after_the_crash() -> None:
    run = play(HostCrash("r1 crashes", 0.6, 0.3, ["r1"], loses_disk=True))
    result = run.nodes["r1"].result
    assert result is not None
    assert result["found"] == []
    assert len(run.nodes["r1"].earlier[0]["durable"]) > 20


def test_each_port_of_a_host_has_records_of_its_own(tmp_path: Path) -> None:
    with disk_in(tmp_path) as (disk, answers):
        disk.store([Put(b"k", b"0")])
        disk.store([Put(b"k", b"1"), Put(b"l", b"2"), Delete(b"l")], 1)
        disk.fetch(b"", None, None, 1)
        disk.fetch(b"", None, None)
        assert [answers.next()[1] for _ in range(4)] == [None, None, [Put(b"k", b"1")], [Put(b"k", b"0")]]
