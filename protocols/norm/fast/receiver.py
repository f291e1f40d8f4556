"""The NORM receiver that a host can advance together with others."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from protocols.events import SenderHeard
from protocols.fast.contract import Applied, Coordinator, FastMachine, FastMessage, Overheard, fan_out
from protocols.fast.index import PartIndex, QuietQueue
from protocols.fast.lockstep import LockstepGroup
from protocols.fast.overhearers import Overhearers, OverhearingGroup
from protocols.machine import Address, Group, Message, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.batch import apply_to_incomplete, list_waiting, overhear_nack
from protocols.norm.fast.messages import FastData, FastFlush
from protocols.norm.fast.overhearers import NormOverhearers
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.limits import NEW_SENDERS, SourceLimit
from protocols.norm.maps import DeadlineMap
from protocols.norm.messages import Ack, Nack
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.stream_reception import StreamSenderState

__all__ = ["FastNormReceiver"]

_NO_SENDERS: Final[DeadlineMap[StreamSenderState]] = DeadlineMap()
"""Shared by the receivers that know one sender at most; never modified."""


_NO_NEWCOMERS = SourceLimit(NEW_SENDERS)
"""Shared by all, because none admits senders by it: each node of a simulation is one sender."""


class FastNormReceiver(NormBatchReceiver, FastMachine):
    """A `NormReceiver` with short cuts for the messages of the sender heard last, whose state is `fast_state`."""

    __slots__ = ("fast_state",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        # Only several senders are entered here: a dictionary takes 200 bytes.
        self._senders = _NO_SENDERS
        self._newcomers = _NO_NEWCOMERS
        self.fast_state = FastSenderState(self.session)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message; one that only advances the position replaces a reference."""
        state: FastSenderState = self.fast_state
        result = OTHER
        if type(message) is FastData:
            position = state.position
            if message.expects is position:
                state.position = message.next_state
                state.last_heard = now
                return
            if self._senders is not _NO_SENDERS and self._switch_to(message.origin.source_id):
                self.receive(message, source, to, now)
                return
            if message.expects_if_complete is not position:
                result = state.advance_over_gap(message, now)
            else:
                result = state.advance(message, now)
            if result == OTHER and message.origin is state.origin:
                # As the plain receiver, which looks for the sender first.
                state.receive(message, now)
                result = RESCHEDULE
        elif type(message) is FastFlush:
            if self._senders is not _NO_SENDERS and self._switch_to(message.origin.source_id):
                state = self.fast_state
            if message.expects_if_complete is state.position:
                result = state.advance(message, now)
        if result == OTHER:
            super().receive(message, source, to, now)
        elif result == RESCHEDULE:
            self.settle(state)

    @staticmethod
    def make_group(machines: list[Any]) -> LockstepGroup:
        """Return a lockstep group; machines of other classes may be among them."""
        return LockstepGroup(machines)

    @staticmethod
    def receive_batch(machines: Iterable[Any], message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to many receivers, most of which it advances."""
        if isinstance(message, (FastData, FastFlush)) and message.expects is None and message.expects_if_complete is not None:
            expected = message.expects_if_complete
            machine: FastNormReceiver
            for machine in machines:
                state: FastSenderState = machine.fast_state
                result = state.advance(message, now) if state.position is expected else OTHER
                if result == OTHER:
                    machine.receive(message, source, to, now)
                elif result == RESCHEDULE:
                    machine.settle(state)
        else:
            fan_out(machines, message, source, to, now)

    @staticmethod
    def apply_to_incomplete(machines: list[Any], message: FastMessage, now: float, coordinator: Coordinator) -> Applied:
        """Apply a message of the sender to receivers that are incomplete or attentive."""
        assert isinstance(message, (FastData, FastFlush))
        return apply_to_incomplete(machines, message, now, coordinator)

    @staticmethod
    def list_waiting(
        machines: list[Any], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
    ) -> None:
        """List receivers by what they wait for."""
        list_waiting(machines, now, waiting, quiet, lacking)

    @staticmethod
    def make_overhearers(group: OverhearingGroup) -> Overhearers:
        """Return the empty list of the attentive receivers of a group."""
        return NormOverhearers(group)

    @staticmethod
    def overhear_batch(
        machines: list[Any], message: Message, source: Address, to: Address, now: float, position: Any, last_heard: float
    ) -> Overheard:
        """Deliver feedback to receivers at one position."""
        if isinstance(message, Nack):
            return overhear_nack(machines, message, now, position, last_heard)
        return FastMachine.overhear_batch(machines, message, source, to, now, position, last_heard)

    @property
    def has_one_sender(self) -> bool:
        """Whether only one sender was heard."""
        return self._senders is _NO_SENDERS

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Process the feedback of another receiver."""
        state: FastSenderState | None = self.fast_state
        origin = self.fast_state.origin
        if origin is None or origin.source_id != message.sender_id:
            other = self._senders.get(message.sender_id)
            state = other if isinstance(other, FastSenderState) else None
        if state is not None and state.attentive and state.overhear(message, now):
            self.settle(state)

    def wake(self, now: float) -> None:
        """Send the feedback that is due, and check the activity of senders."""
        state: FastSenderState = self.fast_state
        if self._senders is not _NO_SENDERS:
            super().wake(now)
        else:
            state.wake(now)
            self.settle(state)

    def wake_in_lockstep(self, now: float) -> None:
        """Renew the activity period in lockstep: that takes only the time of the last message."""
        state: FastSenderState = self.fast_state
        group = state.coordinator
        assert isinstance(group, LockstepGroup)
        heard = None if state.attentive or self._senders is not _NO_SENDERS else group.heard(self)
        if heard is not None and state.renew_activity(heard, now):
            self.settle(state)
        else:
            self.leave_lockstep()

    def counts(self) -> dict[str, int]:
        """Return the counters of messages received and sent."""
        self.leave_lockstep()
        return super().counts()

    def senders(self) -> Collection[StreamSenderState]:
        """Return the state of every sender a message was received from."""
        if self._senders is not _NO_SENDERS:
            return self._senders.values()
        return [self.fast_state] if self.fast_state.origin is not None else []

    def settle(self, sender: Any) -> None:
        """Set the deadline, and whether feedback of others has an effect; `sender` is a `FastSenderState`."""
        state: FastSenderState = sender
        due = state.settle()
        if self._senders is not _NO_SENDERS:
            self._senders.note(state.node, due)
            due = self._senders.deadline()
            # Feedback to the other senders may have an effect, too.
            self.fast_state.attentive = True
        if due < self.deadline:
            # As `_due`, without a call.
            self.deadline = due
            self.ports.alarm(due)
        else:
            self.deadline = due

    def _known(self, node: int) -> StreamSenderState | None:
        """Return the state of the sender `node`; None if no message of it was received."""
        origin = self.fast_state.origin
        return self.fast_state if origin is not None and origin.source_id == node else self._senders.get(node)

    def _sender(self, node: int, source: Address, now: float) -> StreamSenderState | None:
        """Return the state of the sender `node`, from now on the one heard last; new with its first message.

        None when there is no room for another.
        """
        state: FastSenderState = self.fast_state
        origin = state.origin
        if origin is None:
            self.ports.notify(SenderHeard(node))
        elif origin.source_id != node and not self._switch_to(node):
            if self._senders is _NO_SENDERS:
                self._senders = DeadlineMap()
                self._senders[origin.source_id] = state
                self._senders.note(origin.source_id, state.settle())
            if not self._has_room():
                return None
            self.fast_state = self._senders[node] = FastSenderState(self.session)
            self.ports.notify(SenderHeard(node))
        known: FastSenderState = self.fast_state
        return known

    def _switch_to(self, node: int) -> bool:
        """Make the sender `node` the one heard last; False if it is already, or was never heard."""
        known = self._senders.get(node)
        if known is self.fast_state or not isinstance(known, FastSenderState):
            return False
        # Feedback to the other senders may have an effect, too.
        known.attentive = True
        self.fast_state = known
        return True
