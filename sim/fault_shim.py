"""What stands between a host and its machine while faults are at work: it drops, parks, delays what comes, and owns the clock.

A gate is a machine to the host and passes on what a machine is told, so neither the engine nor the machine knows of it. Hosts
without faults have none.
"""

from collections import deque
from dataclasses import dataclass
from math import inf

from protocols.machine import Address, Machine, Message
from sim.clock import Clock
from sim.host import IDLE, SimHost

__all__ = ["FaultShim", "Rule", "gate_of"]

Letter = tuple[Message, Address, Address]


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """Which senders a gate shuts out: those of `names`, or with `others` all but those. `parks`: kept for later, not lost."""

    names: frozenset[str]
    others: bool = False
    parks: bool = False

    def matches(self, source: Address) -> bool:
        """Does the rule hold for what this host sent?"""
        return (source in self.names) is not self.others


class FaultShim(Machine):
    """The machine a host with faults sees; `inner` is the one that runs, an idle one while the host is down."""

    __slots__ = ("clock", "dropped", "free_at", "host", "inner", "parked", "queue", "room", "rules", "takes")

    def __init__(self, host: SimHost) -> None:
        super().__init__(host)
        self.host = host
        self.inner: Machine = IDLE
        self.clock = Clock()
        self.rules: list[Rule] = []
        self.parked: list[tuple[Rule, Letter]] = []
        self.dropped = 0
        """Packets this gate kept away for good."""
        self.takes = 0.0
        """Seconds the application needs for each packet; 0 for none."""
        self.room = 0
        self.queue: deque[Letter] = deque()
        self.free_at = 0.0

    @property
    def deadline(self) -> float:
        """In simulated time, while the machine's own is what its clock shows."""
        due = self.clock.when(self.inner.deadline)
        return min(due, self.free_at) if self.queue else due

    @deadline.setter
    def deadline(self, when: float) -> None:
        assert when == inf, "a gate has no deadline of its own"

    def start(self, now: float) -> None:
        """Start the machine; the host reads the clock."""
        self.inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A packet came to the host."""
        letter = (message, source, to)
        for rule in self.rules:
            if rule.matches(source):
                self._shut_out(rule, letter)
                return
        if self.takes:
            self._queue(letter, now)
        else:
            self.inner.receive(message, source, to, self.clock.read(now))

    def wake(self, now: float) -> None:
        """Whatever of the reader and the machine is due."""
        while self.queue and self.free_at <= now:
            self._read(now)
            self.free_at += self.takes
        inner = self.inner
        if self.clock.when(inner.deadline) <= now:
            inner.wake(self.clock.read(now, inner.deadline))

    def counts(self) -> dict[str, int]:
        """Of the machine."""
        return self.inner.counts()

    def release(self, rule: Rule, now: float) -> None:
        """The rule holds no more; what it parked comes now, in order."""
        self.rules.remove(rule)
        letters = [letter for other, letter in self.parked if other is rule]
        self.parked = [entry for entry in self.parked if entry[0] is not rule]
        for letter in letters:
            self.receive(*letter, now)

    def read_at(self, takes: float, room: int, now: float) -> None:
        """From now on the application needs `takes` for a packet, and `room` may wait; 0.0: all that waits is read now."""
        self.takes, self.room = takes, room
        while self.queue and not takes:
            self._read(now)

    def rearm(self) -> None:
        """The deadline may have moved without the machine's doing."""
        self.host.arm(self.deadline)

    def empty(self) -> None:
        """The host went down: nobody reads what waits, and no machine runs."""
        self.inner = IDLE
        self.queue.clear()
        self.parked.clear()

    def _shut_out(self, rule: Rule, letter: Letter) -> None:
        if rule.parks:
            self.parked.append((rule, letter))
        else:
            self.dropped += 1

    def _queue(self, letter: Letter, now: float) -> None:
        if len(self.queue) >= self.room:
            self.dropped += 1
            return
        if not self.queue:
            self.free_at = now + self.takes
        self.queue.append(letter)
        self.rearm()

    def _read(self, now: float) -> None:
        self.inner.receive(*self.queue.popleft(), self.clock.read(now))


def gate_of(host: SimHost) -> FaultShim:
    """The gate of a host, put before its machine if there is none yet."""
    network, leaf = host.leaf.network, host.leaf
    gate = network.gates.get(host.place)
    if gate is None:
        gate = network.gates[host.place] = FaultShim(host)
        if host.machine is not IDLE:
            gate.inner, host.machine = host.machine, gate
            for audience in leaf.audiences.values():
                if audience.listens(host.member):
                    audience.put(host.member, gate)
    return gate
