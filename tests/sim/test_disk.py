"""The simulated disk: what is durable when, what a crash leaves, and how long it takes."""

from collections.abc import Sequence
from functools import partial
from math import inf

import pytest

from protocols.errors import StorageError
from protocols.machine import Address, Machine, Message
from protocols.storage import Change, Delete, Put, Record
from sim.faults import Faults
from sim.host import SimHost
from sim.network import Network
from topologies.generators import Star


class Clerk(Machine):
    """Stores and fetches records at calls of the test, and notes the answers with their times."""

    __slots__ = ("answers",)

    def __init__(self, host: SimHost) -> None:
        super().__init__(host)
        self.answers: list[tuple[float, int, list[Record] | None]] = []

    def start(self, now: float) -> None:
        del now

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        raise AssertionError("nobody sends")

    def wake(self, now: float) -> None:
        self.deadline = inf

    def counts(self) -> dict[str, int]:
        return {}

    def store(self, changes: Sequence[Change], now: float) -> int:
        del now
        return self.ports.store(changes)

    def fetch(self, first: bytes, last: bytes | None, most: int | None, now: float) -> int:
        del now
        return self.ports.fetch(first, last, most)

    def stored(self, ticket: int, now: float) -> None:
        self.answers.append((now, ticket, None))

    def fetched(self, ticket: int, records: Sequence[Record], now: float) -> None:
        self.answers.append((now, ticket, list(records)))


def _store(host: SimHost, clerk: Clerk, changes: Sequence[Change]) -> None:
    host.call(clerk.store, changes)


def _drift(faults: Faults, factor: float) -> None:
    faults.drift("sender", factor)


def network_with(disk: dict[str, object] | None, seed: int = 1) -> Network:
    sender = {} if disk is None else {"disk": disk}
    topology = Star.model_validate({"kind": "star", "receivers": 1, "nodes": {"sender": sender}}).build()
    return Network(topology, seed=seed)


def clerk_on(network: Network) -> tuple[SimHost, Clerk]:
    host = network.host("sender")
    clerk = Clerk(host)
    host.run(clerk, lambda event: None)
    return host, clerk


def test_a_batch_is_told_durable_after_the_time_of_one_commit() -> None:
    network = network_with({"sync": "5ms", "seek": "2ms", "rate": "8kbit"})
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"k", b"123456789")])
    network.run()
    ((when, _, _),) = clerk.answers
    assert when == pytest.approx(0.005 + 0.002 + 0.010)


def test_an_answer_reaches_a_machine_that_states_work_meanwhile_when_that_is_done() -> None:
    network = network_with({"sync": "5ms"})
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"k", b"")])
    network.later(0.001, lambda: host.work(0.010))
    network.run()
    ((when, _, _),) = clerk.answers
    assert when == pytest.approx(0.011)


def test_an_answer_reaches_a_machine_whose_host_gets_a_fault_meanwhile() -> None:
    network = network_with({"sync": "5ms"})
    host, clerk = clerk_on(network)
    faults = Faults(network)
    host.call(clerk.store, [Put(b"k", b"")])
    network.later(0.001, partial(_drift, faults, 2.0))
    network.run()
    ((when, _, _),) = clerk.answers
    assert when == pytest.approx(0.001 + 2 * 0.004)


def test_an_answer_that_waits_for_the_processor_comes_by_the_clock_of_the_host() -> None:
    network = network_with({"sync": "5ms"})
    host, clerk = clerk_on(network)
    faults = Faults(network)
    host.work(0.001)
    network.later(0.002, partial(_drift, faults, 0.5))
    network.later(0.002, partial(_store, host, clerk, [Put(b"k", b"")]))
    network.later(0.006, lambda: host.work(0.004))
    network.run()
    ((when, _, _),) = clerk.answers
    assert when == pytest.approx(0.002 + 0.5 * 0.008)


def test_batches_that_wait_together_become_durable_by_one_commit() -> None:
    network = network_with({"sync": "5ms"})
    host, clerk = clerk_on(network)
    for number in range(3):
        host.call(clerk.store, [Put(b"%d" % number, b"")])

    def store_ten() -> None:
        for number in range(10):
            host.call(clerk.store, [Put(b"late%d" % number, b"")])

    network.later(0.002, store_ten)
    network.run()
    assert [when for when, _, _ in clerk.answers] == pytest.approx([0.005] * 3 + [0.010] * 10)
    assert host.disk.commits == 2


def test_a_read_finds_all_that_was_stored_before_it_in_the_order_of_keys() -> None:
    network = network_with(None)
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"b", b"1"), Put(b"a", b"2"), Put(b"c", b"3"), Put(b"d", b"4")])
    host.call(clerk.store, [Delete(b"c"), Put(b"a", b"5"), Delete(b"nothing")])
    host.call(clerk.fetch, b"", None, None)
    host.call(clerk.fetch, b"b", b"d", None)
    host.call(clerk.fetch, b"", None, 1)
    network.run()
    found = [records for _, _, records in clerk.answers if records is not None]
    assert found[0] == [Put(b"a", b"5"), Put(b"b", b"1"), Put(b"d", b"4")]
    assert found[1] == [Put(b"b", b"1")]
    assert found[2] == [Put(b"a", b"5")]


@pytest.mark.parametrize("seed", range(12))
def test_a_crash_keeps_what_was_told_durable_and_a_prefix_of_the_rest(seed: int) -> None:
    network = network_with({"sync": "5ms"}, seed)
    faults = Faults(network)
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"0", b"durable"), Put(b"00", b"of the same batch")])
    for number in range(1, 6):
        batch = [Put(b"%d" % number, b""), Put(b"%d+" % number, b"")]
        network.later(0.006 + number / 10_000, partial(_store, host, clerk, batch))
    network.later(0.008, lambda: faults.crash("sender"))
    successors: list[Clerk] = []

    def start_again(up: SimHost) -> None:
        successors.append(Clerk(up))
        up.run(successors[0], lambda event: None)
        up.call(successors[0].fetch, b"", None, None)

    network.later(1.0, lambda: faults.restart("sender", start_again))
    network.run()
    assert len(clerk.answers) == 1, "a machine that crashed gets no answers"
    keys = [record.key for record in successors[0].answers[0][2] or ()]
    count = (len(keys) - 2) // 2
    assert keys == [b"0", b"00", *(key for n in range(1, count + 1) for key in (b"%d" % n, b"%d+" % n))]


def test_crashes_leave_different_numbers_of_batches() -> None:
    kept = set()
    for seed in range(40):
        network = network_with({"sync": "5ms"}, seed)
        host, clerk = clerk_on(network)
        for number in range(5):
            host.call(clerk.store, [Put(b"%d" % number, b"")])
        network.run(until=0.001)
        host.disk.crash()
        kept.add(host.disk.counts()["records"])
    assert kept == {0, 1, 2, 3, 4, 5}


def test_a_lost_disk_is_empty() -> None:
    network = network_with(None)
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"k", b"v")])
    network.run()
    host.disk.lose()
    host.call(clerk.fetch, b"", None, None)
    network.run()
    assert clerk.answers[-1][2] == []


def test_a_full_disk_ends_the_program_with_one_line_that_names_it() -> None:
    network = network_with({"size": 100})
    host, clerk = clerk_on(network)
    host.call(clerk.store, [Put(b"k", bytes(60))])
    network.run()
    with pytest.raises(StorageError, match="sender: the disk is full: 61 of 100 bytes, and 41 more to store"):
        host.call(clerk.store, [Put(b"l", bytes(40))])


def test_a_replaced_value_takes_its_place_once() -> None:
    network = network_with({"size": 100})
    host, clerk = clerk_on(network)
    for _ in range(50):
        host.call(clerk.store, [Put(b"k", bytes(9), extra=10)])
        network.run()
    assert host.disk.counts()["octets"] == 20


def test_each_port_of_a_host_has_records_of_its_own() -> None:
    network = network_with(None)
    host, clerk = clerk_on(network)
    host.store([Put(b"k", b"0")])
    host.store([Put(b"k", b"1")], 1)
    host.fetch(port=1)
    host.fetch()
    network.run()
    assert [records for _, _, records in clerk.answers if records is not None] == [[Put(b"k", b"1")], [Put(b"k", b"0")]]
