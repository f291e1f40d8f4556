"""The NORM receiver (RFC 5740 5.3): one machine for a node that only receives, whoever sends."""

from collections.abc import Iterable
from typing import Any

from protocols.events import SenderHeard
from protocols.fast.lockstep import LockstepGroup
from protocols.machine import Address, Group, Machine, Message, Packet, Ports, fan_out
from protocols.norm.config import NormConfig
from protocols.norm.messages import Ack, Command, Data, Flush, Info, Nack
from protocols.norm.sender_state import SenderState
from protocols.norm.wire.codec import size_of

__all__ = ["NormReceiver"]

NOBODY = -1
"""The node of the sender heard last, before any was heard."""


class NormReceiver(Machine):
    """Receives every object of every sender of a group. `node` is its 32-bit id.

    `receive` begins with the fast path of the sender heard last: a message that is simply the next one moves a reference.
    """

    __slots__ = (
        "_group",
        "_rare",
        "_senders",
        "config",
        "duplicates",
        "nacks_suppressed",
        "node",
        "objects_received",
    )

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports)
        self.config = config
        self.node = node
        self._group = group
        # All that were heard, when there are several; the seat is the one heard last.
        self._senders: dict[int, SenderState] | None = None
        self.fast_state = SenderState(self, NOBODY)
        self.nacks_suppressed = self.duplicates = self.objects_received = 0
        # Of a large group few ever speak.
        self._rare: dict[str, int] | None = None

    def start(self, now: float) -> None:
        """Join the group and listen."""
        self.ports.join(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """A message of a sender, or the feedback of another receiver."""
        remote: SenderState = self.fast_state
        if type(message) is Data:
            at = remote.at
            if message.expects is at:
                remote.at = message.next_state
                remote.heard = now
                return
            if self._senders is not None and self._turn_to(message.origin.source_id):
                self.receive(message, source, to, now)
                return
            if message.expects_if_complete is not at:
                if remote.advance_over_gap(message, now):
                    return
            elif remote.advance(message, now):
                return
        elif isinstance(message, (Nack, Ack)):
            self.overhear(message, now)
            return
        elif type(message) is Flush:
            if self._senders is not None and self._turn_to(message.origin.source_id):
                remote = self.fast_state
            if message.expects_if_complete is remote.at and remote.advance(message, now):
                return
        if isinstance(message, (Data, Info, Command)) and message.origin.source_id != self.node:
            self._remote_of(message.origin.source_id).hear(message, now)
            self.settle()

    @staticmethod
    def receive_batch(machines: "Iterable[Any]", message: Message, source: Address, to: Address, now: float) -> None:
        """As `receive` of each, but straight to where it leads nearly all."""
        expects_if_complete = message.expects_if_complete
        machine: NormReceiver
        remote: SenderState
        if isinstance(message, (Data, Flush)) and expects_if_complete is not None and message.expects is None:
            for machine in machines:
                remote = machine.fast_state
                if remote.at is not expects_if_complete or not remote.advance(message, now):
                    machine.receive(message, source, to, now)
        else:
            fan_out(machines, message, source, to, now)

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """The feedback of another receiver."""
        remote: SenderState | None = self.fast_state
        if message.sender_id != self.fast_state.node:
            remote = self._senders.get(message.sender_id) if self._senders else None
        if remote is not None and remote.attentive and remote.overhear(message, now):
            self.settle()

    def wake(self, now: float) -> None:
        """Speak if it is time."""
        for remote in self._remotes():
            remote.wake(now)
        self.settle()

    def wake_in_lockstep(self, now: float) -> None:
        """To see that the sender was heard takes only to know when."""
        remote: SenderState = self.fast_state
        coordinator = remote.coordinator
        assert isinstance(coordinator, LockstepGroup)
        heard = None if remote.attentive or self._senders else coordinator.heard(self)
        if heard is not None and remote.renew_activity(heard, now):
            self.settle()
        else:
            self.leave_lockstep()

    def counts(self) -> dict[str, int]:
        """What was received and said."""
        self.leave_lockstep()
        remotes, rare = self._remotes(), self._rare or {}
        return {
            "nacks_sent": rare.get("nacks_sent", 0),
            "nacks_suppressed": self.nacks_suppressed,
            "acks_sent": rare.get("acks_sent", 0),
            "data_received": sum(remote.received for remote in remotes),
            "data_lost": sum(remote.lost for remote in remotes),
            "duplicates": self.duplicates + sum(remote.redundant for remote in remotes),
            "ignored": rare.get("ignored", 0),
            "objects_received": self.objects_received,
            "objects_aborted": rare.get("objects_aborted", 0),
        }

    def count(self, name: str) -> None:
        """Count what happens to few receivers."""
        if self._rare is None:
            self._rare = {}
        self._rare[name] = self._rare.get(name, 0) + 1

    def held(self) -> dict[str, tuple[int, int]]:
        """Objects pending from one sender, and bytes of parity kept for one of them: the most of each."""
        pending = [remote.objects for remote in self._remotes()]
        items = [item for objects in pending for item in objects.values() if item is not None]
        return {
            "pending objects": (max(map(len, pending), default=0), self.config.window),
            "bytes of parity": (max((item.held for item in items), default=0), self.config.buffer),
        }

    def say(self, message: Nack | Ack) -> None:
        """Send feedback to the group."""
        self.ports.send(Packet(message, size_of(message), self._group))

    # -- senders ---------------------------------------------------------------------------------------------------

    def _remotes(self) -> list[SenderState]:
        if self._senders is not None:
            return list(self._senders.values())
        return [self.fast_state] if self.fast_state.node != NOBODY else []

    def _remote_of(self, node: int) -> SenderState:
        """The sender `node`, which becomes the one heard last."""
        if self.fast_state.node != node and not self._turn_to(node):
            known = SenderState(self, node)
            self.ports.notify(SenderHeard(node))
            if self.fast_state.node != NOBODY:
                if self._senders is None:
                    self._senders = {self.fast_state.node: self.fast_state}
                self._senders[node] = known
            self.fast_state = known
        remote: SenderState = self.fast_state
        return remote

    def _turn_to(self, node: int) -> bool:
        """Is this another sender than the one heard last, and was it heard before? It is the one heard last, then."""
        known = self._senders.get(node) if self._senders is not None else None
        if known is None or known is self.fast_state:
            return False
        # What is said to others matters, too.
        known.attentive = True
        self.fast_state = known
        return True

    def settle(self) -> None:
        """After an input: when to be woken, and whether others matter."""
        fast_state: SenderState = self.fast_state
        if self._senders is None:
            due = fast_state.settle()
        else:
            due = min([remote.settle() for remote in self._senders.values()])
            # What is said to others than this one matters, too.
            fast_state.attentive = True
        if due < self.deadline:
            # As `_due`, without a call.
            self.deadline = due
            self.ports.alarm(due)
        else:
            self.deadline = due
