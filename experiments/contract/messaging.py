"""The contract of messaging protocols (`protocols.messaging`): a session of a publisher and its subscribers, and its rules."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from experiments.contract.worlds import ContractWorld
from protocols.events import Event
from protocols.machine import Codec, Machine
from protocols.messaging import (
    MessageAccepted,
    MessageReceived,
    MessageSent,
    Publication,
    Publisher,
    PublisherIdle,
    PublisherUnblocked,
    Subscribed,
    Subscriber,
    Subscription,
)
from protocols.object_messaging import roles_of
from protocols.roles import RoleContext
from protocols.spec import ProtocolSpec

__all__ = ["SIZES", "MessagingCase", "MessagingSession"]

SIZES = (0, 1, 100, 499, 500, 3000, 20_000)
"""Bytes of the bodies, which repeat."""
COUNT = 40


@dataclass(frozen=True, slots=True)
class MessagingCase:
    """A messaging protocol, values for its config, and a destination that it can publish to."""

    protocol: ProtocolSpec
    settings: dict[str, Any] = field(default_factory=dict)
    to: str = "/t"

    def __str__(self) -> str:
        return self.protocol.name

    def codec(self) -> Codec:
        """Make a codec."""
        return self.protocol.codec()


class MessagingSession:
    """A publisher on the first host of a world, node 1, and a subscriber on each other one.

    `publish` has the publisher publish as it may: when it is blocked, the rest follows when it is not any more.
    """

    def __init__(self, case: MessagingCase, world: ContractWorld) -> None:
        self.world = world
        self.case = case
        roles, config = roles_of(case.protocol), case.protocol.config(**case.settings)
        self.events: list[list[Event]] = [[] for _ in world.hosts]
        self.published: list[Publication] = []
        self._left: list[Publication] = []
        self.machines: list[Machine] = []
        for number, host in enumerate(world.hosts):
            role = "subscriber" if number else "publisher"
            machine = roles[role].make(host, RoleContext(config, number + 1, world.group, 7))
            self.machines.append(machine)
            host.run(machine, partial(self._on_event, number))
        for number, host in enumerate(world.hosts[1:], 1):
            host.call(cast(Subscriber, self.machines[number]).subscribe, Subscription(3, case.to))

    def publish(self, count: int = COUNT, sizes: Sequence[int] = SIZES) -> None:
        """Publish so many messages."""
        first = len(self.published)
        bodies = [bytes([number % 251]) * sizes[number % len(sizes)] for number in range(first, first + count)]
        made = [Publication(1, first + place, self.case.to, len(body), body) for place, body in enumerate(bodies)]
        self.published += made
        self._left += made
        self._go_on()

    def _go_on(self) -> None:
        publisher = cast(Publisher, self.machines[0])
        while self._left:
            if self.world.hosts[0].call(publisher.publish, self._left.pop(0)):
                return

    def _on_event(self, number: int, event: Event) -> None:
        self.events[number].append(event)
        if isinstance(event, PublisherUnblocked) and number == 0:
            self._go_on()

    def run(self, until: float = 20.0) -> None:
        """Run until every subscriber has every message and the publisher is idle, at most until `until` seconds."""
        self.world.run(until, self.is_over)

    def is_over(self) -> bool:
        """Return whether everything has arrived, and the publisher has told that nothing is left to do."""
        wanted = len(self.published)
        return all(len(self.received(n)) >= wanted for n in range(1, len(self.events))) and self.is_idle()

    def is_idle(self) -> bool:
        """Return whether the publisher has told that nothing is left to do, and nothing was published since."""
        return not self._left and any(isinstance(event, PublisherIdle) for event in self.events[0][-3:])

    def received(self, number: int) -> list[Publication]:
        """Return what a subscriber has received, in order."""
        return [event.message for event in self.events[number] if isinstance(event, MessageReceived)]

    def expect_everything(self, *numbers: int) -> None:
        """Assert that these subscribers (default: all) received every message once, equal to what was published."""
        wanted = [(message.publisher, message.number, message.destination, message.body) for message in self.published]
        for number in numbers or range(1, len(self.events)):
            assert any(isinstance(event, Subscribed) and event.number == 3 for event in self.events[number])
            assert all(event.subscription == 3 for event in self.events[number] if isinstance(event, MessageReceived))
            found = [
                (message.publisher, message.number, message.destination, message.body) for message in self.received(number)
            ]
            if not (self.case.protocol.guarantees and self.case.protocol.guarantees.fifo):
                found.sort()
            assert found == wanted, f"subscriber {number} received {[row[1] for row in found]}"

    def expect_told(self) -> None:
        """Assert that the publisher told once of every message what became of it, and that it is idle."""
        told = [event.number for event in self.events[0] if isinstance(event, (MessageAccepted, MessageSent))]
        assert told == [message.number for message in self.published]
        assert self.is_idle(), f"the last events of the publisher: {self.events[0][-3:]}"
