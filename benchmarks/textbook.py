"""The yardstick: the same machines under SimPy as its tutorials do it, a Store and a process per link and per packet."""

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
    """A link that loses nothing."""
    del message
    return False


def at_random(p: float) -> Callable[[str], Lose]:
    """Links to receivers that lose with probability `p`, as one would write it."""

    def lose(name: str) -> Lose:
        dice = random.Random(name)
        return nothing if name == "sender" else lambda message: dice.random() < p

    return lose


class TextbookLink:
    """A Store as queue, one process that serialises, and one process per packet that propagates it."""

    def __init__(self, env: simpy.Environment, rate: float, delay: float, lose: Lose, deliver: Callable[[Any], None]) -> None:
        self.env, self.rate, self.delay, self.lose, self.deliver = env, rate, delay, lose, deliver
        self.queue: Any = simpy.Store(env)
        env.process(self.serialise())

    def serialise(self) -> Steps:
        """One packet after another."""
        while True:
            item = yield self.queue.get()
            yield self.env.timeout((item[0].size + OVERHEAD) / self.rate)
            if not self.lose(item[0].message):
                self.env.process(self.propagate(item))

    def propagate(self, item: Any) -> Steps:
        """One packet."""
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
        """Control messages: when, from whom, of which kind."""
        self.groups: list[Group] = []
        self.accept: Callable[[Offer], Sink | None]

    def run(self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None]) -> None:
        """Start the machine."""
        self.machine, self.on_event, self.accept = machine, on_event, accept
        self.call(machine.start)

    def call(self, verb: Callable[..., Any], *args: object) -> Any:
        """One input, and what it causes."""
        result = verb(*args, self.star.env.now)
        while self.events:
            self.on_event(self.events.pop(0))
        return result

    def receive(self, item: tuple[Packet, str]) -> None:
        """A packet is there."""
        packet, source = item
        if source != self.name and packet.to in self.groups:
            self.star.deliveries += 1
            self.call(self.machine.receive, packet.message, source, packet.to)

    def wake(self, when: float) -> Steps:
        """One timer."""
        yield self.star.env.timeout(max(0.0, when - self.star.env.now))
        if self.machine.deadline <= self.star.env.now:
            self.call(self.machine.wake)
        if when < self.machine.deadline < inf:
            self.star.env.process(self.wake(self.machine.deadline))

    def send(self, packet: Packet) -> None:
        """Into the queue of the up-link."""
        if packet.message.identity is None:
            self.sent.append((self.star.env.now, self.name, packet.message.kind))
        self.star.up[self.name].queue.put((packet, self.name))

    def notify(self, event: Event) -> None:
        """Keep for the application."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Start a timer."""
        self.star.env.process(self.wake(when))

    def join(self, group: Group) -> None:
        """Listen."""
        self.groups.append(group)

    def leave(self, group: Group) -> None:
        """Do not listen."""
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
        """Copies to everybody but the source."""
        for name, link in self.down.items():
            if name != item[1]:
                link.queue.put(item)

    def run(self, over: Callable[[], bool]) -> None:
        """Until `over()`."""
        while not over():
            self.env.step()
