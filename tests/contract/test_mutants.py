"""Variants of the toy protocol that violate the contract: the suite has to detect each violation by the rule it breaks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import inf
from typing import Any

import pytest

from experiments.contract import checks
from experiments.contract.case import Case
from experiments.contract.losses import randomly
from experiments.contract.suite import examine
from experiments.contract.worlds import WORLDS
from protocols.events import ObjectReceived
from protocols.machine import Address, Group, Machine, Message, Offer, Packet, Ports, Sender, Sink
from protocols.spec import ProtocolSpec
from tests.contract.cases import TOY_CASE
from tests.support.toy import ToyCodec, ToyConfig, ToyData, ToyEnd, ToyReceiver, ToySender

LOSSY = randomly(0.3, 5)


def fails_to_write(case: Case) -> None:
    """Check a session in which the sink of one object fails at its first write."""
    checks.failing_sink_ends_its_object(case, "write", 0, False)


def mutant(sender: type[Sender] = ToySender, receiver: type[Machine] = ToyReceiver) -> Case:
    """The toy with one machine replaced."""

    def make_sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
        return sender(ports, config, node, group, instance)  # type: ignore[call-arg]

    protocol = ProtocolSpec("mutant", ToyConfig, ToyCodec, make_sender, receiver)
    return Case(protocol, TOY_CASE.settings)


class MissesAlarm(ToyReceiver):
    """Set an earlier deadline without calling `alarm`."""

    __slots__ = ()

    def _due(self, when: float) -> None:
        self.deadline = when


class AlwaysDue(ToySender):
    """Set a deadline that is already due after every wake-up."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Send without advancing the deadline."""
        super().wake(now)
        self.deadline = now


class NeverEnds(ToySender):
    """Repeat END without limit."""

    __slots__ = ()

    def _close(self, now: float) -> None:
        super()._close(now)
        self.current -= 1
        self.ends = 0
        self._due(now + 1.0)


class TellsNoStatistics(ToyReceiver):
    """Return a number as statistics."""

    __slots__ = ()

    def snapshot(self, now: float) -> Any:
        """Return no Snapshot."""
        return 3


class Exits(ToyReceiver):
    """End the program at the start."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Raise SystemExit."""
        raise SystemExit(5)


class RaisesOnUnknown(ToyReceiver):
    """Raise on messages of an unknown type."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Accept only messages of the toy protocol."""
        if not message.kind.startswith(("data", "end", "nack")):
            raise ValueError(message.kind)
        super().receive(message, source, to, now)


class ReportsTwice(ToyReceiver):
    """Report every completed object twice."""

    __slots__ = ()

    def _store(self, sink: Sink, known: Any, end: ToyEnd) -> None:
        super()._store(sink, known, end)
        self.ports.notify(ObjectReceived(end.sender, end.object_id, end.size, end.info))


class CorruptsContent(ToyReceiver):
    """Corrupt received segments."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Replace the last byte of every segment."""
        if isinstance(message, ToyData) and message.payload is not None:
            payload = message.payload[:-1] + bytes([message.payload[-1] ^ 1])
            message = ToyData(message.sender, message.object_id, message.index, payload, message.length)
        super().receive(message, source, to, now)


class RaisesSinkErrors(ToyReceiver):
    """Let exceptions of a sink propagate."""

    __slots__ = ()

    def _finish(self, key: tuple[int, int], known: Any, end: ToyEnd) -> None:
        sink = self.ports.accept(Offer(*key, end.size, True))
        assert sink is not None
        self._store(sink, known, end)
        self.ports.notify(ObjectReceived(*key, end.size, end.info))


class DropsSilently(ToyReceiver):
    """Drop an object whose sink fails without an event."""

    __slots__ = ()

    def _finish(self, key: tuple[int, int], known: Any, end: ToyEnd) -> None:
        sink = self.ports.accept(Offer(*key, end.size, True))
        assert sink is not None
        try:
            self._store(sink, known, end)
        except OSError:
            return
        self.ports.notify(ObjectReceived(*key, end.size, end.info))


class ActsEarly(ToyReceiver):
    """Act on an early wake-up."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Treat all pending deadlines as due."""
        for known in self.objects.values():
            if known.nack_at < inf:
                known.nack_at = now
        super().wake(now)


class IgnoresFullNetwork(ToySender):
    """Continue to send when the network is full."""

    __slots__ = ()

    def _send_packet(self, packet: Packet, pause: float) -> None:
        self.ports.send(packet)
        self._due(self.deadline + pause)


class IgnoresNacks(ToySender):
    """Ignore NACKs and hide this from the counters."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore all NACKs."""


class BelievesSizes(ToyReceiver):
    """Write every segment, also behind the end of the object."""

    __slots__ = ()

    def _store(self, sink: Sink, known: Any, end: ToyEnd) -> None:
        for index, payload in known.held.items():
            sink.write(index * end.segment, payload)
        sink.commit(end.info)


class CommitsIncomplete(ToyReceiver):
    """Commit an object that lacks segments."""

    __slots__ = ()

    def _missing(self, known: Any) -> Iterator[int]:
        return iter(())


class VariesBetweenSessions(ToySender):
    """Differ from session to session."""

    __slots__ = ()
    instances = 0

    def start(self, now: float) -> None:
        """Pause before the start in every second instance."""
        super().start(now)
        VariesBetweenSessions.instances += 1
        self.config = replace(self.config, wait=self.config.wait * (1 + 0.01 * VariesBetweenSessions.instances))


class SendsChanged(ToySender):
    """Send packets that a function has changed."""

    __slots__ = ()
    change: Callable[[Packet], Packet]

    def _send_packet(self, packet: Packet, pause: float) -> None:
        super()._send_packet(type(self).change(packet), pause)


def sending(change: Callable[[Packet], Packet]) -> Case:
    """The toy with a sender that changes its packets."""
    return mutant(type("Changing", (SendsChanged,), {"__slots__": (), "change": staticmethod(change)}))


def renamed(packet: Packet) -> Packet:
    """Give a message a kind that is no text."""
    unnamed = type("Unnamed", (ToyData,), {"kind": 5, "__slots__": ()})
    return Packet(unnamed(1, 0, 0, None, 0), packet.size, packet.to)


def identified(packet: Packet, identity: Any) -> Packet:
    """Give a message an identity that is none."""
    return Packet(ToyData(1, 0, 0, None, 0, identity), packet.size, packet.to)


class NotifiesText(ToySender):
    """Notify what is no event."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Notify a text first."""
        super().start(now)
        self.ports.notify("started")  # type: ignore[arg-type]


MALFORMED: dict[str, tuple[Case, str]] = {
    "no message": (sending(lambda packet: Packet("hello", 5, packet.to)), "sends 'hello', which is no Message"),  # type: ignore[arg-type]
    "kind": (sending(renamed), "kind 5, which is no text"),
    "float size": (sending(lambda packet: Packet(packet.message, packet.size * 1.0, packet.to)), r"of size \d+\.0"),  # type: ignore[arg-type]
    "negative size": (sending(lambda packet: Packet(packet.message, -1, packet.to)), "of size -1"),
    "long identity": (sending(lambda packet: identified(packet, 1 << 64)), f"identity {1 << 64}; None and 0 to"),
    "float identity": (sending(lambda packet: identified(packet, 0.5)), r"identity 0\.5"),
    "no event": (mutant(NotifiesText), "notifies 'started', which is no Event"),
}


BROKEN: list[tuple[Case, Callable[[Case], None], type[BaseException], str | None]] = [
    (mutant(receiver=MissesAlarm), lambda case: checks.ends_whatever_is_lost(case, LOSSY), AssertionError, "forgot an alarm"),
    (mutant(AlwaysDue), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "wants to be woken at"),
    (mutant(NeverEnds), checks.quiet_at_the_end, AssertionError, "still busy|after .* s:"),
    (mutant(receiver=RaisesOnUnknown), lambda case: checks.strangers_are_ignored(case, []), ValueError, "stranger"),
    (mutant(receiver=BelievesSizes), checks.damaged_messages_are_harmless, AssertionError, r"write\(.* to .* bytes"),
    (mutant(receiver=ReportsTwice), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "notified"),
    (mutant(receiver=CorruptsContent), lambda case: checks.arrives(case, WORLDS["fake"], 0.0), AssertionError, "differs"),
    (mutant(receiver=CommitsIncomplete), lambda case: checks.arrives(case, WORLDS["fake"], 0.3), AssertionError, "differs"),
    (mutant(IgnoresNacks), lambda case: checks.arrives(case, WORLDS["fake"], 0.3), AssertionError, "notified"),
    (mutant(receiver=RaisesSinkErrors), fails_to_write, OSError, "no space left"),
    (mutant(receiver=DropsSilently), fails_to_write, AssertionError, "ObjectReceived"),
    (mutant(receiver=TellsNoStatistics), checks.counters_are_numbers, AssertionError, "snapshot: 3 is no Snapshot"),
    (mutant(receiver=ActsEarly), checks.early_wakes_change_nothing, AssertionError, None),
    (mutant(IgnoresFullNetwork), checks.full_network_is_respected, AssertionError, "room for"),
    (mutant(VariesBetweenSessions), checks.repeats_itself, AssertionError, None),
]


@pytest.mark.parametrize(("case", "check", "error", "words"), BROKEN)
def test_the_suite_detects_a_violation(
    case: Case, check: Callable[[Case], None], error: type[BaseException], words: str | None
) -> None:
    with pytest.raises(error, match=words):
        check(case)


def test_a_machine_that_exits_breaks_rules_and_does_not_end_the_suite() -> None:
    found = {finding.rule: finding for finding in islice(examine(mutant(receiver=Exits)), 4)}
    assert [finding.status for finding in found.values()] == ["ok", "broken", "broken", "broken"]
    assert all("SystemExit: 5" in finding.reason for finding in [*found.values()][1:])


@pytest.mark.parametrize("world", WORLDS)
def test_a_missing_alarm_call_is_detected_in_every_world(world: str) -> None:
    with pytest.raises(AssertionError, match="forgot an alarm"):
        checks.arrives(mutant(receiver=MissesAlarm), WORLDS[world], 0.3)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_packets_and_events_are_named(name: str) -> None:
    case, words = MALFORMED[name]
    with pytest.raises(AssertionError, match=words):
        checks.arrives(case, WORLDS["fake"], 0.0)
