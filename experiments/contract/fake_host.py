"""A host with a manual clock. It asserts the contract: a machine that breaks a rule fails the test at that input."""

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from experiments.contract.recorder import Recorder
from protocols.errors import LivelockError
from protocols.events import Event
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng, key_of

__all__ = ["FakeHost"]

T = TypeVar("T")


class FakeHost(Recorder):
    """Run one machine and be its ports. Assert after every input that the machine announced each earlier deadline.

    `deliver`, `turn` and `call` are inputs; each takes or uses `now` (seconds), which never decreases. Wake-ups come up to
    `late` seconds late, as on a busy computer. A `bench.Bench` connects several hosts.
    """

    def __init__(self, name: str, *, seed: int = 0, late: float = 0.0) -> None:
        super().__init__()
        self.name = name
        self.rng = Rng(key_of(seed, "node", name))
        self.now = 0.0
        self.late = late
        self.machine: Machine | None = None
        self.on_send: Callable[[Packet], None] = lambda packet: None
        """Called with each packet sent; the bench sets it."""
        self.transcript: list[tuple[float, str]] = []
        """(time in seconds, kind of packet or repr of event), in order."""
        self._lateness = Rng(key_of(seed, "late", name))
        self._known = inf
        self._armed = inf
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_count = 0
        self._delivered = 0
        self._inside = self._draining = False
        self._on_event: Callable[[Event], None] = lambda event: None

    # Host

    def run(
        self,
        machine: Machine,
        on_event: Callable[[Event], None] = lambda event: None,
        accept: Callable[[Offer], Sink | None] | None = None,
    ) -> None:
        """Start the machine. When `accept` is None, this host accepts every object into memory; other hosts accept none."""
        assert self.machine is None, f"{self.name} already runs a machine"
        self.machine, self._on_event = machine, on_event
        if accept is not None:
            self.accepting = accept
        self._input(lambda: machine.start(self.now))

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)` as an input of the machine and return its result; the application then gets the events."""
        return self._input(lambda: verb(*args, self.now))

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds."""
        self._timer_count += 1
        heappush(self._timers, (when, self._timer_count, action))

    def stop(self) -> None:
        """Remove the machine: it leaves its groups and gets no further inputs."""
        self.machine = None
        self._armed = inf
        self.groups.clear()

    # Ports that differ from the recorder's

    def send(self, packet: Packet) -> bool:
        """Record the packet and pass it to `on_send`; return True when the network is full now."""
        self.transcript.append((self.now, packet.message.kind))
        self.on_send(packet)
        return super().send(packet)

    def alarm(self, when: float) -> None:
        """Move the pending wake-up to `when` seconds if it is later."""
        super().alarm(when)
        self._known = min(self._known, when)
        self._armed = min(self._armed, self._delayed(when))

    def join(self, group: Group) -> None:
        """Join the group. AssertionError if it is joined already."""
        assert group not in self.groups, f"{self.name} joins {group} twice"
        super().join(group)

    # Clock

    @property
    def due(self) -> float:
        """Time in seconds of the next timer or wake-up; inf for none."""
        return min(self._armed, self._timers[0][0]) if self._timers else self._armed

    def turn(self, now: float) -> None:
        """Advance the clock to `now` seconds; run the application's timers that are due, then the machine's wake-up."""
        self._advance(now)
        while self._timers and self._timers[0][0] <= now:
            heappop(self._timers)[2]()
        machine = self.machine
        if machine is None or self._armed > now:
            return
        if machine.deadline <= now:
            self.wake(now)
        self._armed = self._delayed(machine.deadline)

    def wake(self, now: float) -> None:
        """Wake the machine, whether or not its deadline is reached."""
        self._running()
        self._advance(now)
        self._input(self._woken)

    def _woken(self) -> None:
        machine = self._running()
        machine.wake(self.now)
        # Checked before the application gets the events: its calls may set a deadline that is due at once.
        if machine.deadline <= self.now:
            raise LivelockError(f"{self.name}: woken at {self.now}, wants to be woken at {machine.deadline}")

    def deliver(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message from `source`, sent to `to`, at `now` seconds."""
        assert source != self.name, f"{self.name} would receive its own message"
        machine = self._running()
        self._advance(now)
        self._input(lambda: machine.receive(message, source, to, now))

    def resume(self, now: float, room: float = inf) -> None:
        """Resume the machine; the network takes `room` more packets."""
        machine = self._running()
        self._advance(now)
        self.room = room
        self._input(lambda: machine.resume(now))

    def _running(self) -> Machine:
        assert self.machine is not None, f"{self.name} runs no machine"
        return self.machine

    def _advance(self, now: float) -> None:
        assert now >= self.now, f"{self.name}: time runs back from {self.now} to {now}"
        self.now = now

    def _delayed(self, when: float) -> float:
        return when + self.late * self._lateness.uniform() if self.late else when

    def _input(self, action: Callable[[], T]) -> T:
        assert not self._inside, f"{self.name}: an input inside an input"
        self._inside = True
        try:
            result = action()
        finally:
            self._inside = False
        self._settle()
        return result

    def _settle(self) -> None:
        """Check that the deadline is not later than an alarm allows, then pass all events to the application."""
        if self.machine is not None:
            deadline = self.machine.deadline
            assert deadline >= self._known, f"{self.name} forgot an alarm: deadline {deadline}, announced {self._known}"
            self._known = deadline
        if self._draining:
            return
        self._draining = True
        try:
            while self._delivered < len(self.events):
                event = self.events[self._delivered]
                self._delivered += 1
                self.transcript.append((self.now, repr(event)))
                self._on_event(event)
        finally:
            self._draining = False
