"""The rules of connections in every world, and callers that break one."""

from collections.abc import Callable
from typing import Any

import pytest

from experiments.contract.connection_checks import (
    CONNECTION_RULES,
    all_is_heard_before_the_end,
    everything_is_closed_once,
    full_connections_drain,
    hanging_up_ends_receiving,
)
from experiments.contract.conversation import Line
from experiments.contract.fake_connections import FakeConnections
from experiments.contract.worlds import WORLDS, BenchWorld, Coded, ContractWorld
from protocols.connection import Reason
from protocols.machine import Message
from tests.contract.broken_callers import BROKEN_CALLERS, Caller


def bench(case: Coded, count: int, loss: float) -> ContractWorld:
    """Make fake hosts whose connections are full after ten messages."""
    world = BenchWorld(case, count, loss)
    world.bench.connections.room = 10
    return world


def bench_of_bytes(case: Coded, count: int, loss: float) -> ContractWorld:
    """Make fake hosts that encode, whose connections are full after ten messages."""
    world = BenchWorld(case, count, loss, wire=True)
    world.bench.connections.room = 10
    return world


PLACES: dict[str, Callable[[Coded, int, float], ContractWorld]] = {**WORLDS, "fake": bench, "fake-bytes": bench_of_bytes}
worlds = pytest.mark.parametrize("world", WORLDS)


@worlds
@pytest.mark.parametrize("rule", CONNECTION_RULES)
def test_the_rules_of_connections_hold(rule: Callable[..., None], world: str) -> None:
    rule(PLACES[world])


@worlds
@pytest.mark.parametrize(("caller", "words"), BROKEN_CALLERS)
def test_a_caller_that_breaks_a_rule_is_caught(caller: type[Caller], words: str, world: str) -> None:
    rule: Any = full_connections_drain if caller.__name__ == "IgnoresFull" else everything_is_closed_once
    with pytest.raises(AssertionError, match=words):
        rule(PLACES[world], caller)


class Broken(FakeConnections):
    """Connections that work."""


class SwapsMessages(Broken):
    """Deliver every tenth message after the next one."""

    held: tuple[Any, Message] | None = None

    def _message(self, end: Any, message: Message) -> None:
        if self.held is None and isinstance(message, Line) and message.number % 10 == 5:
            self.held = (end, message)
            return
        super()._message(end, message)
        if self.held is not None and self.held[0] is end:
            kept, self.held = self.held, None
            super()._message(*kept)


class Loses(Broken):
    """Lose a message."""

    def _message(self, end: Any, message: Message) -> None:
        if not (isinstance(message, Line) and message.number == 199):
            super()._message(end, message)


class Repeats(Broken):
    """Deliver a message twice."""

    def _message(self, end: Any, message: Message) -> None:
        for _ in range(2 if isinstance(message, Line) and message.number == 199 else 1):
            super()._message(end, message)


class ClosesTwice(Broken):
    """Tell a machine of the end of a connection twice."""

    def _close(self, end: Any, reason: Reason) -> None:
        connection, host = end.connection, end.host
        super()._close(end, reason)
        if connection is not None:
            host.machine.closed(connection, reason, host.now)


class NeverCloses(Broken):
    """Tell nobody who hung up of the end."""

    def _ended(self, end: Any) -> None:
        self._close(end.other, "ended")


class OpensTwice(Broken):
    """Tell a machine twice that a connection is established."""

    def _accepted(self, near: Any) -> None:
        super()._accepted(near)
        near.host.machine.opened(near.connection, near.host.now)


class NeverDrains(Broken):
    """Tell nobody that a connection takes messages again."""

    def _acknowledged(self, end: Any) -> None:
        """Forget it."""


class DrainsWithoutNeed(Broken):
    """Tell a machine that a connection takes messages again which was not full."""

    def _acknowledged(self, end: Any) -> None:
        super()._acknowledged(end)
        if end.connection is not None and end.host.rules.state(end.connection) == "open":
            end.host.machine.drained(end.connection, end.host.now)


class TellsAfterHangUp(Broken):
    """Deliver messages to a machine that hung up."""

    def _message(self, end: Any, message: Message) -> None:
        there, host = end.other.connection, end.other.host
        if there is not None and host.rules.state(there) == "hung up":
            host.machine.receive(message, there, there, host.now)
        else:
            super()._message(end, message)


BROKEN_HOSTS: list[tuple[type[Broken], Callable[..., None], str]] = [
    (SwapsMessages, everything_is_closed_once, "heard"),
    (Loses, everything_is_closed_once, "not closed"),
    (Repeats, all_is_heard_before_the_end, "lines are missing|not closed|heard"),
    (ClosesTwice, everything_is_closed_once, "is told of the end of .* which is closed"),
    (NeverCloses, everything_is_closed_once, "not closed"),
    (OpensTwice, everything_is_closed_once, "is told that there is .* which is (open|full)"),
    (NeverDrains, everything_is_closed_once, "not closed"),
    (DrainsWithoutNeed, everything_is_closed_once, "is told to send again on .* which is open"),
    (TellsAfterHangUp, hanging_up_ends_receiving, "receives on .* which is hung up"),
]


@pytest.mark.parametrize(("broken", "rule", "words"), BROKEN_HOSTS)
def test_a_host_that_breaks_a_rule_is_caught(broken: type[Broken], rule: Callable[..., None], words: str) -> None:
    def make(case: Coded, count: int, loss: float) -> ContractWorld:
        world = BenchWorld(case, count, loss)
        world.bench.use(broken(world.bench, 10, 1.0))
        return world

    with pytest.raises(AssertionError, match=words):
        rule(make)
