"""Variants of the toy protocol with bugs that occur only under faults, for the search to find."""

from protocols.events import ObjectReceived
from protocols.machine import Address, Message, Packet
from protocols.spec import ProtocolSpec
from tests.support.toy import TOY, ToyData, ToyEnd, ToyReceiver, ToySender

__all__ = ["MUTANTS"]

LONG = 0.3


class DiscardsAfterPause(ToyReceiver):
    """Discard received segments after a pause without messages."""

    __slots__ = ("last_input",)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process the message as the base class; discard segments after a pause."""
        if now - getattr(self, "last_input", now) > LONG:
            self.objects.clear()
        self.last_input = now
        super().receive(message, source, to, now)


class ReportsUnsent(ToyReceiver):
    """Report an object that was never sent, after a pause without messages."""

    __slots__ = ("last_input",)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process the message as the base class; report the object after a pause."""
        if now - getattr(self, "last_input", now) > LONG:
            self.ports.notify(ObjectReceived(1, 999, 5, b""))
        self.last_input = now
        super().receive(message, source, to, now)


class RaisesOnClockJump(ToyReceiver):
    """Raise if its clock jumps."""

    __slots__ = ("last_input",)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process the message as the base class; raise if much time has passed."""
        assert now - getattr(self, "last_input", now) < 5.0, "the clock jumped"
        self.last_input = now
        super().receive(message, source, to, now)


class NeverEnds(ToySender):
    """Never finish after more than two NACKs."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Wake as the base class; repeat END without limit after the end, so rarely that a run is observed quickly."""
        if self.current < len(self.contents):
            super().wake(now)
        if self.current == len(self.contents) and self.nacks > 2:
            end = self.contents[-1]
            self._repeat(ToyEnd(self.node, self.current - 1, end.source.size, self.config.segment, end.info), now)

    def _repeat(self, end: ToyEnd, now: float) -> None:
        self.ports.send(Packet(end, len(TOY.codec().encode(end)), self.group))
        self._due(now + 300.0)


class CorruptsReordered(ToyReceiver):
    """Corrupt the first bytes of a segment that arrives out of order."""

    __slots__ = ("index",)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Corrupt the segment after a gap."""
        if isinstance(message, ToyData) and message.payload is not None:
            if message.index > getattr(self, "index", -1) + 40:
                message = ToyData(message.sender, message.object_id, message.index, b"?" * message.length, message.length)
            else:
                self.index = message.index
        super().receive(message, source, to, now)


def _mutant(name: str, receiver: type[ToyReceiver] = ToyReceiver, sender: type[ToySender] = ToySender) -> ProtocolSpec:
    return ProtocolSpec(name, TOY.config, TOY.codec, sender, receiver)


MUTANTS = {
    "toy": TOY,
    "amnesiac": _mutant("amnesiac", DiscardsAfterPause),
    "liar": _mutant("liar", ReportsUnsent),
    "nervous": _mutant("nervous", RaisesOnClockJump),
    "careless": _mutant("careless", CorruptsReordered),
    "restless": _mutant("restless", sender=NeverEnds),
}
