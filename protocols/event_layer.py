"""A layer that stands between one machine and its application: it changes events and offers only.

It is no `protocols.layer.Layer`: its host runs the machine below it directly.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol, TypeAlias, overload

from protocols.events import Event
from protocols.machine import Address, Machine, Message, Offer, Ports, Sink
from protocols.snapshot import Snapshot, buffers

__all__ = ["Accept", "EventLayer", "MachineClock", "OnEvent", "innermost", "outermost"]

Accept: TypeAlias = Callable[[Offer], Sink | None]
OnEvent: TypeAlias = Callable[[Event], None]


class MachineClock(Protocol):
    """Gives the local time of a machine: its host does, or the layer that contains it."""

    def machine_time(self) -> float:
        """Return the present time of the machine in seconds."""


class EventLayer(Machine):
    """A layer that only changes the events and the offers of one machine: its host runs that machine in its place.

    So an engine treats the machine as any other of its class. `inner` is made on the ports that this layer was given.
    """

    __slots__ = ("_clock", "_told", "inner")

    def __init__(self, ports: Ports, inner: Machine) -> None:
        super().__init__(ports)
        self.inner = inner
        self._told: OnEvent | None = None
        self._clock: MachineClock | None = None

    def between(self, on_event: OnEvent, accept: Accept | None, clock: MachineClock) -> tuple[OnEvent, Accept | None]:
        """Stand between a host and its application; return where the inner machine's events and offers go.

        The handler of both is this object itself, since in a simulation there are many thousands of layers. Offers go straight
        to the application unless a subclass handles them.
        """
        self._told, self._clock = on_event, clock
        return self, accept if type(self).offered is EventLayer.offered else self

    @overload
    def __call__(self, given: Event) -> None: ...

    @overload
    def __call__(self, given: Offer) -> Sink | None: ...

    def __call__(self, given: Event | Offer) -> Sink | None:
        """Give the application what replaces an event of the inner machine, or return the sink of an offer."""
        if isinstance(given, Offer):
            return self.offered(given)
        assert self._told is not None
        assert self._clock is not None
        self.tell(given, self._told, self._clock.machine_time())
        return None

    @property
    def above(self) -> OnEvent:
        """Where the events of this layer go."""
        assert self._told is not None
        return self._told

    def tell(self, event: Event, on_event: OnEvent, now: float) -> None:
        """Give `on_event` the events that replace an event of the inner machine, at `now` seconds."""
        for told in self.heard(event, now):
            on_event(told)

    def heard(self, event: Event, now: float) -> Iterable[Event]:
        """Return the events for the application, at `now` seconds, that replace an event of the inner machine."""
        return (event,)

    def offered(self, offer: Offer) -> Sink | None:
        """Return the sink of an offered object, None for one that is not wanted; a subclass without this handles no offers."""
        raise AssertionError("offers go straight to the application")

    def start(self, now: float) -> None:
        """See `receive`."""
        raise AssertionError("a host runs `handed_through(layer, ...)`")

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Raise AssertionError: the host gives every input to the inner machine."""
        raise AssertionError("a host runs `handed_through(layer, ...)`")

    def wake(self, now: float) -> None:
        """See `receive`."""
        raise AssertionError("a host runs `handed_through(layer, ...)`")

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the state that the inner machine keeps."""
        return self.inner.held()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the inner machine, with the counters and the buffers that only this one has."""
        inner, counts, held = self.inner.snapshot(now), self.inner.counts(), self.inner.held()
        values = {name: count for name, count in self.counts().items() if counts.get(name) != count}
        own = {name: kept for name, kept in self.held().items() if name not in held}
        return replace(inner, values={**inner.values, **values}, parts=(*inner.parts, *buffers(own)))


def innermost(machine: Machine) -> Machine:
    """Return the machine that a host runs in the place of `machine`."""
    while isinstance(machine, EventLayer):
        machine = machine.inner
    return machine


def outermost(machine: Machine, on_event: OnEvent | None) -> Machine:
    """Return the outermost layer above a machine that a host runs, found by where its events go; without one the machine."""
    while isinstance(on_event, EventLayer):
        machine, on_event = on_event, on_event.above
    return machine
