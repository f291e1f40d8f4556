"""A session of one sender and several receivers in one world, with the events and sinks that the suite checks.

A `Watch` surrounds every machine except fast machines in the simulator, whose host changes their state directly.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from experiments.contract.case import Case
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.watch import Watch
from experiments.contract.worlds import ContractWorld, SimWorld
from protocols.event_layer import Accept, OnEvent
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectReceived, ObjectsAborted
from protocols.hosting import SeveralPortsHost
from protocols.machine import Address, Content, Machine, Offer, Ports, Sink

__all__ = ["ContractSession", "contents_of", "sizes"]

sizes = (0, 1, 500, 501, 20_000)
"""Bytes of the objects: empty, one byte, one segment of 500 bytes, one byte more, several blocks."""


def contents_of(lengths: Sequence[int]) -> list[Content]:
    """Return contents of these lengths in bytes, each with its own bytes and name."""
    return [Content(Bytes(pattern(n, seed=i + 1)), f"file-{i}".encode()) for i, n in enumerate(lengths)]


def _unwatched(ports: Ports, make: Callable[[Ports], Machine]) -> Machine:
    return make(ports)


class ContractSession:
    """A sender on `world.hosts[0]`, servers on the last hosts, and a receiver on each other one.

    `submit`, `run`, then check `events` and `sinks`.
    """

    def __init__(self, case: Case, world: ContractWorld, open_sink: Callable[[int, Offer], Sink | None] | None = None) -> None:
        self.world = world
        end = len(world.hosts) - len(case.servers)
        self.receiving = range(1, end)
        """The numbers of the receivers."""
        self.sent: dict[int, Content] = {}
        self.events: list[list[Event]] = [[] for _ in world.hosts]
        self.sinks: dict[tuple[int, int], Sink | None] = {}
        """The sink of each accepted object, None for a refused one, by (receiver, object id)."""
        self.react: Callable[[Event], None] = lambda event: None
        """Called with each event of the sender."""
        self._open = open_sink or (lambda number, offer: CheckedSink(offer.size))
        wrap = _unwatched if case.fast and isinstance(world, SimWorld) else Watch
        make: list[Callable[[Ports], Machine]] = [partial(case.sender, group=world.group, servers=self._servers(case, 0))]
        make += [partial(case.receiver, group=world.group, number=i, servers=self._servers(case, i)) for i in self.receiving]
        make += [partial(case.server, group=world.group, role=role, node=1 + end + i) for i, role in enumerate(case.servers)]
        machines = [wrap(host, each) for host, each in zip(world.hosts, make, strict=True)]
        self.sender: Any = machines[0]
        # Servers first: a connection to a host without one is refused.
        for i in (*range(end, len(machines)), *range(end)):
            self._run(world.hosts[i], machines[i], partial(self._on_event, i), partial(self._accept, i))

    def _servers(self, case: Case, number: int) -> dict[str, Sequence[Address]]:
        """Return the addresses of the servers as host `number` knows them."""
        host, names = self.world.hosts[number], self.world.names
        first = len(names) - len(case.servers)
        return {role: [host.address_of(names[first + i])] for i, role in enumerate(case.servers)}

    def submit(self, *contents: Content) -> None:
        """Submit contents to the sender."""
        for content in contents:
            self.sent[self.world.hosts[0].call(self.sender.submit, content)] = content

    def run(self, until: float = 20.0) -> None:
        """Run until the sender has flushed its last object, at most until `until` seconds."""
        self.world.run(until, self.flushed)

    def flushed(self) -> bool:
        """Return whether the sender notified `FlushCompleted` for its last object."""
        last = max(self.sent, default=-1)
        return any(isinstance(event, FlushCompleted) and event.object_id == last for event in self.events[0])

    def received(self, number: int) -> list[int]:
        """Return the ids of the objects that receiver `number` received, in order."""
        return [event.object_id for event in self.events[number] if isinstance(event, ObjectReceived)]

    def aborted(self, number: int) -> list[int]:
        """Return the ids of the objects that receiver `number` aborted, in order."""
        found: list[int] = []
        for event in self.events[number]:
            if isinstance(event, ObjectAborted):
                found.append(event.object_id)
            elif isinstance(event, ObjectsAborted):
                found += [(event.first + step) & 0xFFFF for step in range(event.count)]
        return found

    def expect_equal(self, number: int, object_id: int) -> None:
        """Assert that the object at receiver `number` has the name and the content that were sent."""
        sink, content = self.sinks[number, object_id], self.sent[object_id]
        assert isinstance(sink, CheckedSink)
        assert isinstance(content.source, Bytes)
        assert sink.info == content.info, f"receiver {number}, object {object_id}: info {sink.info!r}"
        assert bytes(sink.content) == content.source.content, f"receiver {number}, object {object_id} differs"

    def expect_everything(self) -> None:
        """Assert that every receiver has every object once, equal to what was sent."""
        assert self.flushed(), f"the sender did not finish; its last events: {self.events[0][-3:]}"
        for number in self.receiving:
            assert sorted(self.received(number)) == sorted(self.sent), f"receiver {number} notified {self.events[number]}"
            assert not self.aborted(number)
            for object_id in self.sent:
                self.expect_equal(number, object_id)

    @staticmethod
    def _run(host: SeveralPortsHost, machine: Machine, on_event: OnEvent, accept: Accept | None) -> None:
        if isinstance(machine, Watch):
            on_event, accept = machine.through(on_event, host, accept)
        host.run(machine, on_event, accept)

    def _on_event(self, number: int, event: Event) -> None:
        self.events[number].append(event)
        if number == 0:
            self.react(event)

    def _accept(self, number: int, offer: Offer) -> Sink | None:
        assert (number, offer.object_id) not in self.sinks, f"{offer} offered twice"
        sink = self.sinks[number, offer.object_id] = self._open(number, offer)
        return sink
