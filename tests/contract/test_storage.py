"""Stable storage: its rules in every world, disks that break one, and what a crash of a fake host keeps."""

from collections.abc import Callable, Sequence

import pytest

from experiments.contract.bench import Bench
from experiments.contract.fake_disk import FakeDisk
from experiments.contract.recorder import Recorder
from experiments.contract.storage_checks import (
    STORAGE_RULES,
    Clerk,
    batches_become_durable_in_order,
    every_machine_has_records_of_its_own,
    reads_see_all_earlier_batches,
)
from experiments.contract.watch import Watch
from experiments.contract.worlds import WORLDS, BenchWorld, Coded, ContractWorld
from protocols.composite import CompositeMachine
from protocols.storage import Change, Delete, Put, Record


def clerk_on(bench: Bench) -> Clerk:
    """Return a running clerk."""
    clerk = Clerk(bench["a"])
    bench["a"].run(clerk)
    return clerk


def write(bench: Bench, *keys: int) -> list[int]:
    """Store a record for each key, each in a batch of its own, and return the tickets."""
    ports = bench["a"]
    return [ports.call(lambda now, key=key: ports.store([Put(b"%d" % key, b"x")])) for key in keys]


def read(bench: Bench, clerk: Clerk, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> list[bytes]:
    """Return the keys that are read."""
    ticket = bench["a"].call(lambda now: bench["a"].fetch(first, last, most))
    bench.run()
    return [record.key for record in clerk.found[ticket]]


def test_batches_become_durable_in_order_and_are_read_at_once() -> None:
    bench = Bench(("a",))
    clerk = clerk_on(bench)
    tickets = write(bench, 3, 1, 2)
    assert read(bench, clerk) == [b"1", b"2", b"3"]
    assert clerk.told == tickets == sorted(tickets)
    assert read(bench, clerk, b"2") == [b"2", b"3"]
    assert read(bench, clerk, b"", b"3", 1) == [b"1"]


def test_changes_of_a_batch_apply_in_order() -> None:
    bench = Bench(("a",))
    clerk = clerk_on(bench)
    changes: list[Change] = [Put(b"k", b"old"), Put(b"k", b"new", 1000), Put(b"gone", b""), Delete(b"gone"), Delete(b"never")]
    bench["a"].call(lambda now: bench["a"].store(changes))
    ticket = bench["a"].call(lambda now: bench["a"].fetch())
    bench.run()
    assert clerk.found[ticket] == [Put(b"k", b"new", 1000)]


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_a_crash_keeps_what_was_told_durable_and_perhaps_batches_after_it(keep: int) -> None:
    bench = Bench(("a",))
    clerk = clerk_on(bench)
    first = write(bench, 1)
    bench.run()
    write(bench, 2, 3)
    bench.crash("a", keep=keep)
    bench.run()
    assert clerk.told == first
    again = clerk_on(bench)
    assert read(bench, again) == [b"1", b"2", b"3"][: 1 + keep]
    assert again.told == []


def test_every_component_has_records_of_its_own() -> None:
    bench = Bench(("a",))
    composite = CompositeMachine(bench["a"])
    hosts = [composite.component(name) for name in ("", "other")]
    clerks = [Clerk(host) for host in hosts]
    for host, clerk in zip(hosts, clerks, strict=True):
        host.run(clerk, lambda event: None)
        host.call(lambda now, clerk=clerk: clerk.ports.store([Put(b"k", str(clerk).encode())]))
        host.call(lambda now, clerk=clerk: clerk.ports.fetch())
    bench.run()
    for clerk in clerks:
        assert [record.value for records in clerk.found.values() for record in records] == [str(clerk).encode()]
    assert sorted(ticket for clerk in clerks for ticket in clerk.told) == [1, 3]


def test_work_is_recorded() -> None:
    bench = Bench(("a",))
    clerk = clerk_on(bench)
    bench["a"].call(lambda now: clerk.ports.work(0.25))
    assert bench["a"].works == [0.25]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("rule", STORAGE_RULES)
def test_the_rules_of_storage_hold(rule: Callable[..., None], world: str) -> None:
    rule(WORLDS[world])


class Loses(FakeDisk):
    """Lose the second batch."""

    def sync(self) -> None:
        """Drop a batch."""
        if len(self.durable.get(0, {})) == 2:
            self.pending.popleft()
        else:
            super().sync()


class Tears(FakeDisk):
    """Apply only the first change of a batch."""

    def store(self, port: int, changes: Sequence[Change]) -> None:
        """Take part of a batch."""
        super().store(port, changes[:1])


class ReadsLate(FakeDisk):
    """Read only what is durable."""

    def read(self, port: int, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Leave out what is pending."""
        kept, self.pending = self.pending, type(self.pending)()
        try:
            return super().read(port, first, last, most)
        finally:
            self.pending = kept


class Unsorted(FakeDisk):
    """Read in the reverse order."""

    def read(self, port: int, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Reverse."""
        return super().read(port, first, last, most)[::-1]


class Shared(FakeDisk):
    """Have one set of records for all ports."""

    def store(self, port: int, changes: Sequence[Change]) -> None:
        """Take a batch of any port."""
        super().store(0, changes)

    def read(self, port: int, first: bytes, last: bytes | None, most: int | None) -> list[Record]:
        """Read for any port."""
        return super().read(0, first, last, most)


BROKEN_DISKS: list[tuple[type[FakeDisk], Callable[..., None]]] = [
    (Loses, batches_become_durable_in_order),
    (Tears, batches_become_durable_in_order),
    (ReadsLate, reads_see_all_earlier_batches),
    (Unsorted, reads_see_all_earlier_batches),
    (Shared, every_machine_has_records_of_its_own),
]


@pytest.mark.parametrize(("disk", "rule"), BROKEN_DISKS)
def test_a_disk_that_breaks_a_rule_is_caught(disk: type[FakeDisk], rule: Callable[..., None]) -> None:
    def make(case: Coded, count: int, loss: float) -> ContractWorld:
        world = BenchWorld(case, count, loss)
        for host in world.bench.hosts.values():
            host.disk = disk()
        return world

    with pytest.raises(AssertionError):
        rule(make)


def tell(watch: Watch, tickets: list[int]) -> None:
    """Tell a machine that batches are durable, and nothing more."""
    for ticket in tickets:
        watch.stored(ticket, 1.0)
    watch.expect_all_ended()


@pytest.mark.parametrize(
    ("tells", "words"),
    [
        ([2, 1], "2 is durable, and the first that is not is 1"),
        ([1, 1], "1 is durable, and the first that is not is 2"),
        ([1, 3], "3 is durable, and the first that is not is 2"),
        ([1], r"never told that \[2\] are durable"),
    ],
)
def test_a_host_that_tells_batches_wrongly_is_caught(tells: list[int], words: str) -> None:
    watch = Watch(Recorder(), Clerk)
    for _ in range(2):
        watch.act(lambda: watch.inner.ports.store([Put(b"k", b"v")]), 0.0)
    with pytest.raises(AssertionError, match=words):
        tell(watch, tells)
