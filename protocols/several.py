"""Several machines on one host, each with a host and ports of its own as far as it can tell."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from protocols.errors import UsageError
from protocols.events import Event
from protocols.hosting import PortsHost
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng

__all__ = ["Part", "Several"]

T = TypeVar("T")


class Part:
    """What one of several machines has for a host. `takes` says which messages are for it."""

    def __init__(self, whole: "Several", name: str, takes: Callable[[Message], bool]) -> None:
        self._whole = whole
        self.takes = takes
        self.rng: Rng = whole.host.rng.fork(name) if name else whole.host.rng
        """The host's own stream for the part without a name, so a further part shifts nobody's numbers."""
        self.machine: Machine | None = None
        self.on_event: Callable[[Event], None] | None = None
        self._accept: Callable[[Offer], Sink | None] | None = None
        self.groups: dict[Group, None] = {}

    @property
    def trace(self) -> Callable[[str, object], None] | None:
        """The host's."""
        return self._whole.host.trace

    @trace.setter
    def trace(self, watcher: Callable[[str, object], None] | None) -> None:
        self._whole.host.trace = watcher

    # Host

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return self._whole.host.now

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; UsageError when one runs already."""
        if self.machine is not None:
            raise UsageError("this part runs a machine already")
        self.machine, self.on_event, self._accept = machine, on_event, accept
        self.call(machine.start)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """`verb(*args, now)` of the machine."""
        result: T = self._whole.host.call(self._whole.relay, verb, args)
        return result

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when`, or now if that is past."""
        self._whole.host.later(when, action)

    def stop(self) -> None:
        """The machine hears and says nothing any more."""
        for group in list(self.groups):
            self.leave(group)
        self._whole.forget(self)

    # Ports

    def send(self, packet: Packet) -> object:
        """Onto the host's network."""
        return self._whole.host.send(packet)

    def notify(self, event: Event) -> None:
        """For the application of this part."""
        self._whole.told.append(self)
        self._whole.host.notify(event)

    def alarm(self, when: float) -> None:
        """The deadline moved earlier."""
        self._whole.earlier(when)

    def join(self, group: Group) -> None:
        """Hear what is sent to the group."""
        self.groups[group] = None
        self._whole.host.join(group)

    def leave(self, group: Group) -> None:
        """Hear it no more; the host does while another part wants to."""
        self.groups.pop(group, None)
        if not self._whole.wants(group):
            self._whole.host.leave(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Where a received object goes."""
        return None if self._accept is None else self._accept(offer)


class Several(Machine):
    """The machine a host sees when several run on it. Multicasts go to parts that joined, unicasts to all that take them."""

    __slots__ = ("_parts", "host", "told")

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.host: PortsHost = host
        self._parts: list[Part] = []
        self.told: deque[Part] = deque()
        """Whose events the host holds, in order."""
        host.run(self, self._on_event)

    def part(self, name: str, takes: Callable[[Message], bool]) -> Part:
        """A place for one more machine."""
        part = Part(self, name, takes)
        self._parts.append(part)
        return part

    def start(self, now: float) -> None:
        """Nothing: parts start when they come."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A message for some of the parts."""
        for part in list(self._parts):
            if part.machine is not None and part.takes(message) and (type(to) is not Group or to in part.groups):
                part.machine.receive(message, source, to, now)

    def wake(self, now: float) -> None:
        """Wake whom it is time for."""
        for part in list(self._parts):
            if part.machine is not None and part.machine.deadline <= now:
                part.machine.wake(now)
        self.deadline = min((part.machine.deadline for part in self._parts if part.machine is not None), default=inf)

    def resume(self, now: float) -> None:
        """The network takes packets again."""
        for part in list(self._parts):
            if part.machine is not None:
                part.machine.resume(now)

    def relay(self, verb: Callable[..., T], args: tuple[object, ...], now: float) -> T:
        """One input of one of the machines."""
        result = verb(*args, now)
        # A machine may have set its first deadline while it was made, before anybody could hear.
        self.earlier(min((part.machine.deadline for part in self._parts if part.machine is not None), default=inf))
        return result

    def earlier(self, when: float) -> None:
        """A part has an earlier deadline."""
        if when < self.deadline:
            self._due(when)

    def wants(self, group: Group) -> bool:
        """Does any part listen to the group?"""
        return any(group in part.groups for part in self._parts)

    def forget(self, part: Part) -> None:
        """A part is over."""
        self._parts.remove(part)

    def counts(self) -> dict[str, int]:
        """The sums over the machines."""
        total: dict[str, int] = {}
        for part in self._parts:
            for name, count in ({} if part.machine is None else part.machine.counts()).items():
                total[name] = total.get(name, 0) + count
        return total

    def _on_event(self, event: Event) -> None:
        part = self.told.popleft()
        assert part.on_event is not None
        part.on_event(event)
