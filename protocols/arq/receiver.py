"""The receiver of the ARQ protocols: one machine for all, with a `RepairPolicy` for what differs between them."""

from collections.abc import Collection
from typing import Final

from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.arq.messages import Data, End, Nack
from protocols.arq.policies import AckPolicy, NackPolicy, SuppressedNackPolicy
from protocols.arq.repair_policy import RepairPolicy
from protocols.arq.sender_state import SenderState
from protocols.arq.session import Session
from protocols.events import sender_heard
from protocols.machine import Address, Group, Machine, Message, Ports
from protocols.snapshot import Snapshot, buffers

__all__ = ["MOST_SENDERS", "ArqReceiver", "acking_receiver", "nacking_receiver", "suppressing_receiver"]

MOST_SENDERS: Final = 1024
"""Senders whose state is kept. Of more, one of which no object is incomplete is forgotten, or the new one is ignored."""


class ArqReceiver(Machine):
    """Receives every object of every sender of a group."""

    __slots__ = ("_policy", "_senders", "_session")

    def __init__(self, session: Session, policy: RepairPolicy) -> None:
        super().__init__(session.ports)
        self._session = session
        self._policy = policy
        self._senders: dict[int, SenderState] = {}

    def start(self, now: float) -> None:
        """Join the group."""
        self.ports.join(self._session.group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a sender, or a NACK of another receiver; other messages do not concern a receiver."""
        if isinstance(message, Data):
            self._session.data_received += 1
            sender = self._sender_of(message, source)
            if sender is None:
                return
            is_new = sender.on_data(message, now)
            self._policy.on_received(message, source, is_new, now)
        elif isinstance(message, End):
            sender = self._sender_of(message, source)
            if sender is None:
                return
            sender.on_end(message, now)
        elif isinstance(message, Nack):
            sender = self._known(message.sender)
            if sender is None or sender.origin.instance != message.instance:
                return
            policy = self._policy
            before = policy.deadline
            if not policy.overhears or (not sender.on_nack(message, now) and policy.deadline == before):
                return
        else:
            return
        due = self._next_timer() if len(self._senders) > 1 else min(sender.due(), self._policy.deadline)
        if due != self.deadline:
            self._due(due)

    def wake(self, now: float) -> None:
        """Serve the timers that have run out."""
        for sender in self._states():
            sender.wake(now)
        if self._policy.deadline <= now:
            self._policy.wake(now)
        self._due(self._next_timer())

    def counts(self) -> dict[str, int]:
        """Return what was received, and what the policy counts."""
        return {**self._session.counts(), **self._policy.counts()}

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each sender with its objects."""
        senders, session = self._states(), self._session
        octets = session.octets_received + sum([sender.octets_pending for sender in senders])
        parts = (*[sender.snapshot(now) for sender in senders], *buffers(self.held()))
        return Snapshot("session", session.group.name, {**self.counts(), "bytes_received": octets}, {"role": "receiver"}, parts)

    def _sender_of(self, message: Data | End, source: Address) -> SenderState | None:
        """Return the state of the message's sender, which is made anew when the sender is unknown or has restarted.

        None if there is no room for another sender, and for a late message of an earlier instance, or its repair by a member.
        """
        sender, replaced = self._known(message.sender), None
        if sender is None:
            if len(self._states()) >= MOST_SENDERS and not self._make_room():
                self._session.ignored += 1
                return None
            self.ports.notify(sender_heard(message.sender))
        elif sender.origin.instance == message.instance:
            sender.note_address(source)
            return sender
        elif message.instance == sender.replaced:
            self._session.ignored += 1
            return None
        else:
            replaced = sender.origin.instance
            sender.discard()
        sender = self._enter(message, source)
        sender.replaced = replaced
        self._session.senders = len(self._states())
        return sender

    def _known(self, node: int) -> SenderState | None:
        """Return the state of the sender `node`; None if no message of it was received."""
        return self._senders.get(node)

    def _states(self) -> Collection[SenderState]:
        """Return the states of all senders."""
        return self._senders.values()

    def _make_room(self) -> bool:
        """Forget the first sender of which no object is incomplete; return whether there is one."""
        node = next((node for node, sender in self._senders.items() if sender.is_done), None)
        if node is None:
            return False
        del self._senders[node]
        return True

    def _enter(self, first: Data | End, address: Address) -> SenderState:
        """Make the state of a sender from its first message."""
        sender = self._senders[first.sender] = SenderState(self._session, self._policy, first, address)
        return sender

    def _next_timer(self) -> float:
        return min([self._policy.deadline, *(sender.due() for sender in self._states())])


def acking_receiver(ports: Ports, config: AConfig, node: int, group: Group) -> ArqReceiver:
    """Return a receiver of protocol A; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return ArqReceiver(session, AckPolicy(session))


def nacking_receiver(ports: Ports, config: N1Config, node: int, group: Group) -> ArqReceiver:
    """Return a receiver of protocol N1; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return ArqReceiver(session, NackPolicy(session))


def suppressing_receiver(ports: Ports, config: N2Config, node: int, group: Group) -> ArqReceiver:
    """Return a receiver of protocol N2; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return ArqReceiver(session, SuppressedNackPolicy(session))
