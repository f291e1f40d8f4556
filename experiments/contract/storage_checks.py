"""The rules of stable storage, one function each: it runs machines in a world and raises AssertionError."""

from collections.abc import Callable, Sequence
from typing import Any

from experiments.contract.connection_checks import MakeWorld, Talk
from protocols.composite import CompositeMachine
from protocols.machine import Address, Machine, Message, Ports
from protocols.storage import Change, Delete, Put, Record

__all__ = [
    "STORAGE_RULES",
    "Clerk",
    "batches_become_durable_in_order",
    "every_machine_has_records_of_its_own",
    "reads_see_all_earlier_batches",
    "records_outlive_the_machine",
]


class Clerk(Machine):
    """Keeps the tickets that became durable and the records that were fetched."""

    __slots__ = ("found", "told")

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.told: list[int] = []
        self.found: dict[int, list[Record]] = {}

    def start(self, now: float) -> None:
        """Do nothing."""

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
        """Return how many batches became durable."""
        return {"batches": len(self.told)}


def _store(talk: Talk, clerk: Clerk, changes: Sequence[Change]) -> int:
    return talk.call(clerk, lambda: clerk.ports.store(changes))


def _read(talk: Talk, clerk: Clerk, first: bytes = b"", last: bytes | None = None, most: int | None = None) -> list[Record]:
    ticket = talk.call(clerk, lambda: clerk.ports.fetch(first, last, most))
    talk.until(lambda: ticket in clerk.found, "no answer to fetch")
    return clerk.found[ticket]


def batches_become_durable_in_order(make: MakeWorld) -> None:
    """Batches become durable in the order in which they were given, each is told once, and changes apply in order."""
    with Talk(make, 2) as talk:
        clerk: Clerk = talk.on(0, Clerk)
        tickets = [_store(talk, clerk, [Put(b"%03d" % n, b"v"), Put(b"last", b"%d" % n)]) for n in range(100)]
        tickets.append(_store(talk, clerk, [Put(b"gone", b""), Delete(b"gone"), Delete(b"never"), Put(b"x", b"1", 5000)]))
        talk.until(lambda: len(clerk.told) == len(tickets), "not told that all is durable")
        assert clerk.told == tickets
        expected = [*(Put(b"%03d" % n, b"v") for n in range(100)), Put(b"last", b"99"), Put(b"x", b"1", 5000)]
        assert _read(talk, clerk) == expected


def reads_see_all_earlier_batches(make: MakeWorld) -> None:
    """`fetch` answers with the records of a range, in the order of keys, as of all earlier batches and no later ones."""
    with Talk(make, 2) as talk:
        clerk: Clerk = talk.on(0, Clerk)
        for key in (b"c", b"a", b"b"):
            _store(talk, clerk, [Put(key, key)])
        ticket = talk.call(clerk, clerk.ports.fetch)
        later = _store(talk, clerk, [Put(b"d", b"d")])
        talk.until(lambda: ticket in clerk.found and later in clerk.told, "no answer")
        assert [record.key for record in clerk.found[ticket]] == [b"a", b"b", b"c"]
        assert [record.key for record in _read(talk, clerk, b"b")] == [b"b", b"c", b"d"]
        assert [record.key for record in _read(talk, clerk, b"", b"c")] == [b"a", b"b"]
        assert [record.key for record in _read(talk, clerk, b"b", None, 1)] == [b"b"]


def every_machine_has_records_of_its_own(make: MakeWorld) -> None:
    """Machines of one host do not see each other's records."""
    with Talk(make, 2) as talk:
        composite = CompositeMachine(talk.world.hosts[0])
        clerks: list[Clerk] = [talk.start(composite.component(name), Clerk) for name in ("", "second")]
        for number, clerk in enumerate(clerks):
            _store(talk, clerk, [Put(b"key", b"%d" % number)])
        assert [_read(talk, clerk) for clerk in clerks] == [[Put(b"key", b"0")], [Put(b"key", b"1")]]


def records_outlive_the_machine(make: MakeWorld) -> None:
    """A machine that starts on a host finds what the one before it stored there."""
    with Talk(make, 2) as talk:
        host: Any = talk.world.hosts[0]
        clerk: Clerk = talk.on(0, Clerk)
        ticket = _store(talk, clerk, [Put(b"key", b"value")])
        talk.until(lambda: ticket in clerk.told, "not told that it is durable")
        host.stop()
        again: Clerk = talk.on(0, Clerk)
        assert _read(talk, again) == [Put(b"key", b"value")]
        assert not again.told


STORAGE_RULES: tuple[Callable[[MakeWorld], None], ...] = (
    batches_become_durable_in_order,
    reads_see_all_earlier_batches,
    every_machine_has_records_of_its_own,
    records_outlive_the_machine,
)
"""The rules; each takes what makes a world."""
