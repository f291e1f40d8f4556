"""One sender and some receivers in one world, and what the suite looks at afterwards.

Every machine is watched, but the fast ones in the simulator: there the host moves them at once, past any `Watch`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from experiments.contract.case import Case
from experiments.contract.content import Bytes, CheckedSink, pattern
from experiments.contract.watch import Watch
from experiments.contract.worlds import ContractWorld, SimWorld
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectReceived
from protocols.machine import Content, Machine, Offer, Ports, Sink

__all__ = ["ContractSession", "contents_of", "sizes"]

sizes = (0, 1, 500, 501, 20_000)
"""Nothing, something, one segment of every case's settings, one byte more, several blocks."""


def contents_of(lengths: Sequence[int]) -> list[Content]:
    """Objects of these lengths, all different, with names."""
    return [Content(Bytes(pattern(n, seed=i + 1)), f"file-{i}".encode()) for i, n in enumerate(lengths)]


def _unwatched(ports: Ports, make: Callable[[Ports], Machine]) -> Machine:
    return make(ports)


def _ignore(event: Event) -> None:
    """Receivers' applications do nothing."""


class ContractSession:
    """`world.hosts[0]` sends, the others receive. Start, `submit`, `run`, then look at `events` and `sinks`."""

    def __init__(self, case: Case, world: ContractWorld, open_sink: Callable[[int, Offer], Sink | None] | None = None) -> None:
        self.world = world
        self.sent: dict[int, Content] = {}
        self.events: list[list[Event]] = [[] for _ in world.hosts]
        self.sinks: dict[tuple[int, int], Sink | None] = {}
        """By (receiver, object id)."""
        self.react: Callable[[Event], None] = lambda event: None
        """What the sending application does when it hears something."""
        self._open = open_sink or (lambda number, offer: CheckedSink(offer.size))
        wrap = _unwatched if case.fast and isinstance(world, SimWorld) else Watch
        self.sender: Any = wrap(world.hosts[0], lambda ports: case.sender(ports, world.group))
        self.receivers = [
            wrap(host, partial(case.receiver, group=world.group, number=i)) for i, host in enumerate(world.hosts[1:], 1)
        ]
        for i, machine in enumerate([self.sender, *self.receivers]):
            world.hosts[i].run(machine, partial(self._heard, i, machine), partial(self._accept, i))

    def submit(self, *contents: Content) -> None:
        """Hand contents to the sender."""
        for content in contents:
            self.sent[self.world.hosts[0].call(self.sender.submit, content)] = content

    def run(self, until: float = 20.0) -> None:
        """Until the sender flushed its last object."""
        self.world.run(until, self.flushed)

    def flushed(self) -> bool:
        """Did the sender announce the end of its last object often enough?"""
        last = max(self.sent, default=-1)
        return any(isinstance(event, FlushCompleted) and event.object_id == last for event in self.events[0])

    def received(self, number: int) -> list[int]:
        """The object ids that receiver `number` reported complete, in order."""
        return [event.object_id for event in self.events[number] if isinstance(event, ObjectReceived)]

    def aborted(self, number: int) -> list[int]:
        """The object ids that receiver `number` reported lost, in order."""
        return [event.object_id for event in self.events[number] if isinstance(event, ObjectAborted)]

    def expect_equal(self, number: int, object_id: int) -> None:
        """What receiver `number` committed for the object is what was sent, name and content."""
        sink, content = self.sinks[number, object_id], self.sent[object_id]
        assert isinstance(sink, CheckedSink)
        assert isinstance(content.source, Bytes)
        assert sink.info == content.info, f"receiver {number}, object {object_id}: info {sink.info!r}"
        assert bytes(sink.content) == content.source.content, f"receiver {number}, object {object_id} differs"

    def expect_everything(self) -> None:
        """Every receiver has every object, equal, once."""
        assert self.flushed(), f"the sender did not finish; it said {self.events[0][-3:]}"
        for number in range(1, len(self.world.hosts)):
            assert sorted(self.received(number)) == sorted(self.sent), f"receiver {number} heard {self.events[number]}"
            assert not self.aborted(number)
            for object_id in self.sent:
                self.expect_equal(number, object_id)

    def _heard(self, number: int, machine: Machine, event: Event) -> None:
        self.events[number].append(event)
        react = self.react if number == 0 else _ignore
        if isinstance(machine, Watch):
            machine.heard(event, react)
        else:
            react(event)

    def _accept(self, number: int, offer: Offer) -> Sink | None:
        assert (number, offer.object_id) not in self.sinks, f"{offer} offered twice"
        sink = self.sinks[number, offer.object_id] = self._open(number, offer)
        return sink
