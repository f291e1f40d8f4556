"""The rules of publish and subscribe for messaging protocols in every world, and machines that break one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments.contract.message_checks import (
    MESSAGE_RULES,
    MessageCase,
    damaged_messages_are_harmless,
    messages_are_delivered,
    subscriptions_end,
)
from experiments.contract.worlds import WORLDS
from protocols.broker import PROTOCOL as BROKER
from protocols.bus import PROTOCOL as BUS
from protocols.connection import Connection
from protocols.datagram import PROTOCOL as DATAGRAM
from protocols.datagram.messages import Part
from protocols.datagram.subscriber import DatagramSubscriber
from protocols.distributor import PROTOCOL as DISTRIBUTOR
from protocols.fjm import PROTOCOL as FJM
from protocols.fjm2 import PROTOCOL as FJM2
from protocols.machine import Address, Machine, Message, Ports
from protocols.relay import PROTOCOL as RELAY
from protocols.relay.messages import Accepted, Delivery, Publish
from protocols.relay.publisher import RelayPublisher
from protocols.relay.relay import Relay
from protocols.relay.subscriber import RelaySubscriber
from protocols.roles import RoleContext

SUBJECTS = ("/a/x", "/b", "/c/...")
SHORT = {
    "rate": 1e6,
    "segment": 500,
    "heartbeat": 0.1,
    "timeout": 0.05,
    "server_holdback": 0.005,
    "holdback": 0.002,
    "retries": 40,
}
NORM = {"rate": 1e6, "segment": 500, "grtt": 0.01, "probe_min": 0.1, "robust": 10}
CASES = {
    "relay": MessageCase(RELAY, {"window": 8, "queue": 4}),
    "broker": MessageCase(BROKER, {"window": 8, "queue": 4}),
    "bus": MessageCase(BUS, {"segment": 400, "rate": 2e6, "holdoff": 0.02, "cost": 0.0001}),
    "bus with loss": MessageCase(BUS, {"segment": 400, "rate": 2e6, "holdoff": 0.02, "cost": 0.0001}, loss=0.1),
    "fjm": MessageCase(FJM, {"segment": 400, "rate": 2e6, "holdoff": 0.02, "election": 0.02, "ask": 0.05}),
    "fjm with loss": MessageCase(FJM, {"segment": 400, "rate": 2e6, "holdoff": 0.02, "election": 0.02, "ask": 0.05}, loss=0.1),
    "datagram": MessageCase(DATAGRAM, {"segment": 400}),
    "distributor": MessageCase(DISTRIBUTOR, SHORT, topics=SUBJECTS),
    "distributor with loss": MessageCase(DISTRIBUTOR, SHORT, loss=0.1, topics=SUBJECTS),
    "fjm2": MessageCase(FJM2, NORM),
    "fjm2 with loss": MessageCase(FJM2, {**NORM, "repair": "immediate", "queue": 4, "pool": 200_000}, loss=0.1),
    "fjm2 with parity": MessageCase(FJM2, {**NORM, "fec": 5, "parity": 4, "block": 8, "order": "fifo"}, loss=0.1),
    "fjm2 both": MessageCase(FJM2, NORM, both=True),
    "fjm2 both with loss": MessageCase(FJM2, {**NORM, "order": "fifo"}, loss=0.1, both=True),
    "tunnel": MessageCase(FJM2, NORM, tunnels=True),
    "tunnel with loss": MessageCase(FJM2, {**NORM, "repair": "immediate"}, loss=0.1, tunnels=True),
    "unicast": MessageCase(DATAGRAM, {"segment": 400, "cast": "unicast"}),
}
worlds = pytest.mark.parametrize("world", WORLDS)


@worlds
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", MESSAGE_RULES)
def test_the_rules_of_messages_hold(rule: Callable[..., None], case: str, world: str) -> None:
    rule(CASES[case], WORLDS[world])


@pytest.mark.parametrize("case", CASES)
def test_messages_with_damaged_fields_make_no_machine_raise(case: str) -> None:
    damaged_messages_are_harmless(CASES[case])


class DeliversTwice(RelaySubscriber):
    """Deliver the tenth message twice."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        super().receive(message, source, to, now)
        if isinstance(message, Delivery) and message.message.number == 10:
            super().receive(message, source, to, now)


class Skips(Relay):
    """Accept the tenth message of each publisher and copy it to nobody."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        if isinstance(message, Publish) and message.message.number == 10:
            assert isinstance(to, Connection)
            self._clients[to].pending += 1
            self._accept(to, message.message)
        else:
            super().receive(message, source, to, now)


class TellsNothing(RelayPublisher):
    """Tell the application nothing of what was accepted after the tenth message."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        if not (isinstance(message, Accepted) and message.number == 10):
            super().receive(message, source, to, now)


class Swaps(RelaySubscriber):
    """Deliver the tenth message of each publisher after its eleventh one."""

    __slots__ = ("_held",)

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._held: dict[int, Message] = {}

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        if isinstance(message, Delivery) and message.message.number == 10:
            self._held[message.message.publisher] = message
            return
        super().receive(message, source, to, now)
        if isinstance(message, Delivery) and message.message.number == 11:
            super().receive(self._held[message.message.publisher], source, to, now)


class GoesOn(RelaySubscriber):
    """Go on delivering what it unsubscribed from."""

    __slots__ = ()

    def unsubscribe(self, number: int, now: float) -> None:
        """Ignore it."""


class TakesShortOnes(DatagramSubscriber):
    """Deliver no message that consists of several parts."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        if isinstance(message, Part) and message.parts == 1:
            super().receive(message, source, to, now)


BROKEN: list[tuple[type[Machine], str, str, Callable[..., None], str]] = [
    (DeliversTwice, "relay", "subscriber", messages_are_delivered, "other messages are delivered than were published"),
    (Skips, "relay", "relay", messages_are_delivered, "fewer than .* messages are delivered"),
    (TellsNothing, "relay", "publisher", messages_are_delivered, "publishers are not told of all messages"),
    (Swaps, "relay", "subscriber", messages_are_delivered, "come in the order"),
    (GoesOn, "relay", "subscriber", subscriptions_end, "other messages are delivered than were published"),
    (TakesShortOnes, "datagram", "subscriber", messages_are_delivered, "fewer than .* messages are delivered"),
]


@pytest.mark.parametrize(("machine", "case", "role", "rule", "words"), BROKEN)
def test_a_machine_that_breaks_a_rule_is_caught(
    machine: type[Machine], case: str, role: str, rule: Callable[..., None], words: str
) -> None:
    with pytest.raises(AssertionError, match=words):
        rule(replace(CASES[case], wrong={role: machine}), WORLDS["simpy"])
