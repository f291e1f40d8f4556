"""The NORM receiver (RFC 5740 5.3): one machine for a node that only receives, whoever sends."""

from collections.abc import Collection
from typing import ClassVar

from protocols.events import sender_heard
from protocols.machine import Address, Message
from protocols.norm.limits import NEW_SENDERS_RATE
from protocols.norm.messages import Ack, Command, Data, Info, Nack
from protocols.norm.receiver_control import ReceiverControl
from protocols.norm.sender_host import note_host
from protocols.norm.stream_reception import StreamSenderState

__all__ = ["NormReceiver"]

TRIES = 8
"""Senders tried to find one that can be forgotten."""


class NormReceiver(ReceiverControl):
    """Receives every object of every sender of a group. `node` is its 32-bit id.

    Of more senders than the configuration allows, those are forgotten that are new, silent or not joined; without any of them,
    further senders are ignored.
    """

    state_type: ClassVar[type[StreamSenderState]] = StreamSenderState
    """The class of what is known of each sender."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self.group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of a sender, or the feedback of another receiver."""
        if isinstance(message, (Nack, Ack)):
            if message.source_id == self.node:
                self._clash(source)
            self.overhear(message, now)
        elif isinstance(message, (Data, Info, Command)):
            if message.origin.source_id == self.node:
                self._clash(source)
            elif (sender := self._sender(message.origin.source_id, source, now)) is None:
                self.count("ignored")
            else:
                sender.receive(message, now)
                self.settle(sender)

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Process the feedback of another receiver."""
        self.nacks_heard += isinstance(message, Nack)
        sender = self._senders.get(message.sender_id)
        if sender is not None and sender.overhear(message, now):
            self.settle(sender)

    def wake(self, now: float) -> None:
        """Send the feedback that is due, and check the activity of senders."""
        for sender in self._senders.due(now):
            sender.wake(now)
            self.settle(sender)
        self._due(self._senders.deadline())

    def abandon(self, node: int, object_id: int, reason: str, now: float) -> None:
        """Give up an object of the sender `node` that the application can't store any more; call through `Host.call`."""
        sender = self._known(node)
        if sender is not None:
            sender.abandon(object_id, reason)
            self.settle(sender)

    def counts(self) -> dict[str, int]:
        """Return the counters of messages received and sent."""
        senders, session = self.senders(), self.session
        return {
            "nacks_sent": session.counted("nacks_sent"),
            "nacks_suppressed": session.nacks_suppressed,
            "acks_sent": session.counted("acks_sent"),
            "data_received": session.counted("data_received") + sum(sender.received for sender in senders),
            "data_lost": session.counted("data_lost") + sum(sender.lost for sender in senders),
            "duplicates": session.counted("duplicates") + sum(sender.duplicates for sender in senders),
            "ignored": session.counted("ignored"),
            "objects_received": session.objects_received,
            "objects_aborted": session.counted("objects_aborted"),
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most objects pending from one sender, and the most bytes of parity kept for one object."""
        pending = parity = 0
        for sender in self.senders():
            objects, octets = sender.held()
            pending, parity = max(pending, objects), max(parity, octets)
        return {"pending objects": (pending, self.config.window), "bytes of parity": (parity, self.config.buffer)}

    def senders(self) -> Collection[StreamSenderState]:
        """Return the state of every sender a message was received from."""
        return self._senders.values()

    def settle(self, sender: StreamSenderState) -> None:
        """Set the deadline; called after every input that may have changed when this sender is to be woken."""
        self._senders.note(sender.node, sender.deadline())
        self._due(self._senders.deadline())

    def _known(self, node: int) -> StreamSenderState | None:
        """Return the state of the sender `node`; None if no message of it was received."""
        return self._senders.get(node)

    def _sender(self, node: int, source: Address, now: float) -> StreamSenderState | None:
        """Return the state of the sender `node`, new with its first message; None for a message that is to be ignored."""
        known = self._senders.get(node)
        if known is None and self.extras.newcomers.admits(source, now, NEW_SENDERS_RATE) and self._has_room():
            known = self._senders[node] = self.state_type(self)
            self.ports.notify(sender_heard(node))
        return known if known is not None and (known.extras.source == source or note_host(known, source, now)) else None

    def _has_room(self) -> bool:
        """Return whether one more sender can be remembered, after forgetting another if need be."""
        if len(self._senders) < self.config.senders:
            return True
        for _ in range(min(TRIES, len(self._senders))):
            # The others move to the end, so that all are tried in turn.
            node, state = self._senders.rotate()
            if not state.is_established:
                del self._senders[node]
                state.forget()
                return True
        return False
