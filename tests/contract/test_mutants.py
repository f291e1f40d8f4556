"""Toys that break the contract on purpose: the suite has to notice each of them, and for the right reason."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.losses import randomly
from experiments.contract.worlds import WORLDS
from protocols.events import ObjectReceived
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Ports, Sender, Sink
from protocols.spec import ProtocolSpec
from tests.contract.cases import TOY_CASE
from tests.support.toy import ToyCodec, ToyConfig, ToyData, ToyEnd, ToyReceiver, ToySender

LOSSY = randomly(0.3, 5)


def fails_to_write(case: Case) -> None:
    """The sink of one object fails at its first write."""
    checks.failing_sink_ends_its_object(case, "write", 0, False)


def mutant(sender: type[Sender] = ToySender, receiver: type[Machine] = ToyReceiver) -> Case:
    """The toy with one machine replaced."""

    def make_sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
        return sender(ports, config, node, group, instance)  # type: ignore[call-arg]

    protocol = ProtocolSpec("mutant", ToyConfig, ToyCodec, make_sender, receiver)
    return Case(protocol, TOY_CASE.settings)


class Forgetful(ToyReceiver):
    """Moves its deadline earlier and tells nobody."""

    __slots__ = ()

    def _due(self, when: float) -> None:
        self.deadline = when


class Restless(ToySender):
    """Wants to be woken at once, again and again."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Does its work and does not move on."""
        super().wake(now)
        self.deadline = now


class Talkative(ToySender):
    """Says END for ever."""

    __slots__ = ()

    def _close(self, now: float) -> None:
        super()._close(now)
        self.current -= 1
        self.ends = 0
        self._due(now + 1.0)


class Touchy(ToyReceiver):
    """Raises when it hears what it does not know."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Only the toy's messages."""
        if not message.kind.startswith(("data", "end", "nack")):
            raise ValueError(message.kind)
        super().receive(message, source, to, now)


class Twice(ToyReceiver):
    """Says twice that an object is there."""

    __slots__ = ()

    def _store(self, sink: Sink, known: Any, end: ToyEnd) -> None:
        super()._store(sink, known, end)
        self.ports.notify(ObjectReceived(end.sender, end.object_id, end.size, end.info))


class Forger(ToyReceiver):
    """Turns a byte of what it received."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """The last byte of every segment is wrong."""
        if isinstance(message, ToyData) and message.payload is not None:
            payload = message.payload[:-1] + bytes([message.payload[-1] ^ 1])
            message = ToyData(message.sender, message.object_id, message.index, payload, message.length)
        super().receive(message, source, to, now)


class Brittle(ToyReceiver):
    """Lets the errors of a sink pass."""

    __slots__ = ()

    def _finish(self, key: tuple[int, int], known: Any, end: ToyEnd) -> None:
        sink = self.ports.accept(Offer(*key, end.size, True))
        assert sink is not None
        self._store(sink, known, end)
        self.ports.notify(ObjectReceived(*key, end.size, end.info))


class Silent(ToyReceiver):
    """Drops an object whose sink fails without a word."""

    __slots__ = ()

    def _finish(self, key: tuple[int, int], known: Any, end: ToyEnd) -> None:
        sink = self.ports.accept(Offer(*key, end.size, True))
        assert sink is not None
        try:
            self._store(sink, known, end)
        except OSError:
            return
        self.ports.notify(ObjectReceived(*key, end.size, end.info))


class Hasty(ToyReceiver):
    """Acts when it is woken early."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Everything pending is due at once."""
        for known in self.objects.values():
            if known.nack_at < inf:
                known.nack_at = now
        super().wake(now)


class Pushy(ToySender):
    """Does not care that the network is full."""

    __slots__ = ()

    def _say(self, packet: Packet, pause: float) -> None:
        self.ports.send(packet)
        self._due(self.deadline + pause)


class Deaf(ToySender):
    """Does not repair, and hides it."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """NACKs are not heard."""


class Partial(ToyReceiver):
    """Commits an object that lacks segments."""

    __slots__ = ()

    def _missing(self, known: Any) -> list[int]:
        return []


class Moody(ToySender):
    """Does not say the same twice."""

    __slots__ = ()
    born = 0

    def start(self, now: float) -> None:
        """The second one of its kind pauses before it starts."""
        super().start(now)
        Moody.born += 1
        self.config = replace(self.config, wait=self.config.wait * (1 + 0.01 * Moody.born))


BROKEN: list[tuple[Case, Callable[[Case], None], type[BaseException], str | None]] = [
    (mutant(receiver=Forgetful), lambda case: checks.ends_whatever_is_lost(case, LOSSY), AssertionError, "forgot an alarm"),
    (mutant(Restless), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "wants to be woken at"),
    (mutant(Talkative), checks.quiet_at_the_end, AssertionError, "still busy|after .* s:"),
    (mutant(receiver=Touchy), lambda case: checks.strangers_are_ignored(case, []), ValueError, "stranger"),
    (mutant(receiver=Twice), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "notified"),
    (mutant(receiver=Forger), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "differs"),
    (mutant(receiver=Partial), lambda case: checks.arrives(case, WORLDS["fake"], 0.3), AssertionError, "differs"),
    (mutant(Deaf), lambda case: checks.arrives(case, WORLDS["fake"], 0.3), AssertionError, "notified"),
    (mutant(receiver=Brittle), fails_to_write, OSError, "no space left"),
    (mutant(receiver=Silent), fails_to_write, AssertionError, "ObjectReceived"),
    (mutant(receiver=Hasty), checks.early_wakes_change_nothing, AssertionError, None),
    (mutant(Pushy), checks.full_network_is_respected, AssertionError, "room for"),
    (mutant(Moody), checks.repeats_itself, AssertionError, None),
]


@pytest.mark.parametrize(("case", "check", "error", "words"), BROKEN)
def test_the_suite_notices(case: Case, check: Callable[[Case], None], error: type[BaseException], words: str | None) -> None:
    with pytest.raises(error, match=words):
        check(case)


@pytest.mark.parametrize("world", WORLDS)
def test_a_forgotten_alarm_is_noticed_in_every_world(world: str) -> None:
    with pytest.raises(AssertionError, match="forgot an alarm"):
        checks.arrives(mutant(receiver=Forgetful), WORLDS[world], 0.3)
