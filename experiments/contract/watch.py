"""A machine that surrounds another and checks the calls between it and its host, in any world."""

from collections.abc import Callable
from math import inf
from typing import TypeVar

from protocols.events import Event
from protocols.machine import Address, Content, Group, Machine, Message, Offer, Packet, Ports, Sender, Sink
from protocols.rng import Rng

__all__ = ["Watch"]

T = TypeVar("T")


class _WatchedPorts:
    """The host's ports; each call is checked and recorded by the watch."""

    def __init__(self, ports: Ports, watch: "Watch") -> None:
        self.rng: Rng = ports.rng
        self.trace: Callable[[str, object], None] | None = None
        self._ports = ports
        self._watch = watch

    def send(self, packet: Packet) -> object:
        assert self._watch.inside, "a machine sent outside its inputs"
        self._watch.sent += 1
        return self._ports.send(packet)

    def notify(self, event: Event) -> None:
        assert self._watch.inside, "a machine notified outside its inputs"
        self._watch.notified.append(event)
        self._ports.notify(event)

    def alarm(self, when: float) -> None:
        self._watch.announced(when)
        self._ports.alarm(when)

    def join(self, group: Group) -> None:
        self._ports.join(group)

    def leave(self, group: Group) -> None:
        self._ports.leave(group)

    def accept(self, offer: Offer) -> Sink | None:
        return self._ports.accept(offer)


class Watch(Sender):
    """Assert that host and machine keep the contract.

    The host makes one input at a time, at times that never decrease, and passes all events in order to the application before
    the next input. The machine's deadline is never later than an alarm allows, and in the future after each wake-up. The
    function given to the host as `on_event` calls `heard` first.
    """

    __slots__ = ("_heard", "_hearing", "_known", "_latest", "inner", "inputs", "inside", "notified", "sent")

    def __init__(self, ports: Ports, make: Callable[[Ports], Machine]) -> None:
        super().__init__(ports)
        self.inside = False
        self.sent = self.inputs = self._heard = 0
        self.notified: list[Event] = []
        self._known, self._latest = inf, 0.0
        self._hearing = False
        self.inner = make(_WatchedPorts(ports, self))
        self.deadline = self.inner.deadline

    def start(self, now: float) -> None:
        """Start the inner machine."""
        self._input(self.inner.start, now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Pass a message to the inner machine."""
        self._input(lambda now: self.inner.receive(message, source, to, now), now)

    def wake(self, now: float) -> None:
        """Wake the inner machine and check that its deadline is in the future."""
        self._input(self.inner.wake, now)
        assert self.inner.deadline > now, f"woken at {now}, wants to be woken at {self.inner.deadline}"

    def resume(self, now: float) -> None:
        """Resume the inner machine."""
        self._input(self.inner.resume, now)

    def submit(self, content: Content, now: float) -> int:
        """Submit content to the inner machine, a sender."""
        inner = self.inner
        assert isinstance(inner, Sender)
        return self._input(lambda now: inner.submit(content, now), now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the inner machine."""
        return self.inner.counts()

    def heard(self, event: Event, react: Callable[[Event], None] = lambda event: None) -> None:
        """Check that `event` is the next in order and pass it to `react`, which may use `Host.call`."""
        assert not self.inside, "an event reached the application inside an input"
        assert self._heard < len(self.notified), f"the machine never notified {event}"
        expected = self.notified[self._heard]
        assert event is expected, f"the application got {event} before {expected}, which was notified first"
        self._heard += 1
        self._hearing = True
        react(event)
        self._hearing = False

    def announced(self, when: float) -> None:
        """Record that the machine set an alarm for `when` seconds."""
        self._known = min(self._known, when)
        self.deadline = min(self.deadline, when)

    def _input(self, action: Callable[[float], T], now: float) -> T:
        assert not self.inside, "an input inside an input"
        assert now >= self._latest, f"time runs back from {self._latest} to {now}"
        unheard = self.notified[self._heard :]
        assert self._hearing or not unheard, f"the next input came before the application got {unheard}"
        self._latest, self.inside = now, True
        self.inputs += 1
        try:
            result = action(now)
        finally:
            self.inside = False
        deadline = self.inner.deadline
        assert deadline >= self._known, f"forgot an alarm: deadline {deadline}, announced {self._known}"
        self._known = self.deadline = deadline
        return result
