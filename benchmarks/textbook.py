"""The baseline: SimPy as in its tutorials, with a Store and a process for each link and a process for each packet."""

import random
from collections.abc import Callable, Generator
from math import inf
from typing import Any

import simpy

from protocols.events import Event
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Sink
from protocols.rng import Rng, key_of

__all__ = ["Lose", "TextbookHost", "TextbookStar", "at_random", "nothing"]

Steps = Generator[simpy.Event, Any, None]
Lose = Callable[[Message], bool]
OVERHEAD = 42


def nothing(message: Message) -> bool:
    """Lose nothing."""
    del message
    return False


def at_random(p: float) -> Callable[[str], Lose]:
    """Return a maker of links to receivers that lose with probability `p`."""

    def lose(name: str) -> Lose:
        random_numbers = random.Random(name)
        return nothing if name == "sender" else lambda message: random_numbers.random() < p

    return lose


class TextbookLink:
    """A Store as queue, one process that serialises, and one process for each packet in propagation."""

    def __init__(self, env: simpy.Environment, rate: float, delay: float, lose: Lose, deliver: Callable[[Any], None]) -> None:
        self.env, self.rate, self.delay, self.lose, self.deliver = env, rate, delay, lose, deliver
        self.queue: Any = simpy.Store(env)
        env.process(self.serialise())

    def serialise(self) -> Steps:
        """Send one packet after another."""
        while True:
            item = yield self.queue.get()
            yield self.env.timeout((item[0].size + OVERHEAD) / self.rate)
            if not self.lose(item[0].message):
                self.env.process(self.propagate(item))

    def propagate(self, item: Any) -> Steps:
        """Deliver a packet after the delay."""
        yield self.env.timeout(self.delay)
        self.deliver(item)


class TextbookHost:
    """Runs one machine, and is its ports."""

    trace = None

    def __init__(self, star: "TextbookStar", name: str) -> None:
        self.star, self.name = star, name
        self.rng = Rng(key_of(1, "node", name))
        self.machine: Machine
        self.events: list[Event] = []
        self.sent: list[tuple[float, str, str]] = []
        """Control messages: time, host, kind."""
        self.groups: list[Group] = []
        self.accept: Callable[[Offer], Sink | None]

    def run(self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None]) -> None:
        """Start the machine."""
        self.machine, self.on_event, self.accept = machine, on_event, accept
        self.call(machine.start)

    def call(self, verb: Callable[..., Any], *args: object) -> Any:
        """Call a method of the machine and deliver the events it caused."""
        result = verb(*args, self.star.env.now)
        while self.events:
            self.on_event(self.events.pop(0))
        return result

    def receive(self, item: tuple[Packet, str]) -> None:
        """Deliver a packet of another host to the machine."""
        packet, source = item
        if source != self.name and packet.to in self.groups:
            self.star.deliveries += 1
            self.call(self.machine.receive, packet.message, source, packet.to)

    def wake(self, when: float) -> Steps:
        """Wake the machine at `when` if it is due."""
        yield self.star.env.timeout(max(0.0, when - self.star.env.now))
        if self.machine.deadline <= self.star.env.now:
            self.call(self.machine.wake)
        if when < self.machine.deadline < inf:
            self.star.env.process(self.wake(self.machine.deadline))

    def send(self, packet: Packet) -> None:
        """Queue a packet on the up-link."""
        if packet.message.identity is None:
            self.sent.append((self.star.env.now, self.name, packet.message.kind))
        self.star.up[self.name].queue.put((packet, self.name))

    def notify(self, event: Event) -> None:
        """Queue an event for the application."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Start a timer process."""
        self.star.env.process(self.wake(when))

    def join(self, group: Group) -> None:
        """Receive what is sent to the group."""
        self.groups.append(group)

    def leave(self, group: Group) -> None:
        """Stop receiving what is sent to the group."""
        self.groups.remove(group)


class TextbookStar:
    """`sender` - switch - receivers, as `topologies.generators.Star`; `hosts` has the sender first."""

    def __init__(self, receivers: int, rate: float, delay: float, lose: Callable[[str], Lose]) -> None:
        env = self.env = simpy.Environment()
        self.deliveries = 0
        self.hosts = [TextbookHost(self, name) for name in ("sender", *(f"r{n}" for n in range(1, receivers + 1)))]
        self.up = {host.name: TextbookLink(env, rate, delay, nothing, self.switch) for host in self.hosts}
        self.down = {host.name: TextbookLink(env, rate, delay, lose(host.name), host.receive) for host in self.hosts}

    def switch(self, item: tuple[Packet, Address]) -> None:
        """Forward a packet to all hosts but its source."""
        for name, link in self.down.items():
            if name != item[1]:
                link.queue.put(item)

    def run(self, over: Callable[[], bool]) -> None:
        """Run until `over()`."""
        while not over():
            self.env.step()
