"""Stable storage of fake hosts: told durable in order, and what a crash keeps."""

from collections.abc import Sequence

import pytest

from experiments.contract.bench import Bench
from protocols.composite import CompositeMachine
from protocols.machine import Address, Machine, Message
from protocols.storage import Change, Delete, Put, Record


class Clerk(Machine):
    """Keep the tickets that became durable and the records that were fetched."""

    __slots__ = ("found", "told")

    def start(self, now: float) -> None:
        """Begin with nothing."""
        self.told: list[int] = []
        self.found: dict[int, list[Record]] = {}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore messages."""

    def wake(self, now: float) -> None:
        """Do nothing: there are no timers."""

    def stored(self, ticket: int, now: float) -> None:
        """Note a ticket."""
        self.told.append(ticket)

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        """Note records."""
        self.found[ticket] = list(records)

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


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
