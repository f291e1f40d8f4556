"""The ARQ receivers that a host can advance together with others."""

from collections.abc import Collection, Hashable
from typing import Any

from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.arq.fast.acks import AckGroup
from protocols.arq.fast.messages import FastData, Position
from protocols.arq.fast.policies import FastAckPolicy, FastSuppressedNackPolicy
from protocols.arq.fast.sender_state import FastSenderState
from protocols.arq.fast.senders import NO_SENDERS, OWN, enter, known_sender, states_of
from protocols.arq.messages import Data, End, Nack
from protocols.arq.policies import NackPolicy
from protocols.arq.receiver import ArqReceiver
from protocols.arq.repair_policy import RepairPolicy
from protocols.arq.sender_state import SenderState
from protocols.arq.session import Session
from protocols.fast.units import EVERY_UNIT, UnitMachine
from protocols.machine import Address, Group, Message, Ports
from protocols.snapshot import Snapshot

__all__ = [
    "AckingReceiver",
    "FastArqReceiver",
    "OverhearingReceiver",
    "acking_receiver",
    "nacking_receiver",
    "suppressing_receiver",
]


class FastArqReceiver(ArqReceiver, UnitMachine):
    """An `ArqReceiver` that is advanced with others while it knows one sender."""

    __slots__ = ("fast_state",)

    def __init__(self, session: Session, policy: RepairPolicy) -> None:
        super().__init__(session, policy)
        self.fast_state: Any = OWN
        self._senders = NO_SENDERS

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a sender, or a NACK of another receiver."""
        is_new: bool | None = None
        if type(message) is FastData and self.fast_state is not OWN:
            state: FastSenderState = self.fast_state
            is_new = state.take(message, now)
        if is_new is None:
            super().receive(message, source, to, now)
        else:
            assert isinstance(message, FastData)
            self._session.data_received += 1
            self._policy.on_received(message, source, is_new, now)
            self._set_deadline()

    def wake_in_lockstep(self, now: float) -> None:
        """Serve timers of missing units in lockstep: that takes no position."""
        state: FastSenderState = self.fast_state
        if state.wakes_in_place(now) and self._policy.deadline > now:
            state.wake(now)
            self._set_deadline()
        else:
            self.leave_lockstep()

    def overhear(self, feedback: Message, now: float) -> None:
        """Process a NACK of another receiver for a missing unit."""
        assert isinstance(feedback, Nack)
        state: FastSenderState = self.fast_state
        state.overheard += 1
        state.suppress(feedback, now)
        self._set_deadline()

    def _set_deadline(self) -> None:
        state: FastSenderState = self.fast_state
        due, other = state.due(), self._policy.deadline
        due = min(due, other)
        if due != self.deadline:
            self._due(due)

    def counts(self) -> dict[str, int]:
        """Return what was received, and what the policy counts."""
        self.leave_lockstep()
        self._settle_counts()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each sender with its objects."""
        self.leave_lockstep()
        self._settle_counts()
        return super().snapshot(now)

    def _settle_counts(self) -> None:
        """Add what was counted for this receiver while it was in lockstep."""
        state = self.fast_state
        if isinstance(state, FastSenderState):
            state.sync()
            self._session.duplicates += state.duplicates
            self._count_overheard(state.overheard)
            state.duplicates = state.overheard = 0

    def _count_overheard(self, count: int) -> None:
        """Count NACKs of others, if they are received at all."""

    def _known(self, node: int) -> SenderState | None:
        return known_sender(self, node)

    def _states(self) -> Collection[SenderState]:
        return states_of(self)

    def _enter(self, first: Data | End, address: Address) -> SenderState:
        self._settle_counts()
        return enter(self, first.sender, FastSenderState(self._session, self._policy, first, address))


class AckingReceiver(FastArqReceiver):
    """A receiver of protocol A; those that a DATA message only advances acknowledge it together."""

    __slots__ = ()

    @staticmethod
    def feedback_group(machines: list[Any]) -> AckGroup:
        """Return the group of these receivers as those that acknowledge together."""
        receivers: list[AckingReceiver] = machines
        return AckGroup(machines, [receiver._session.node for receiver in receivers])


class OverhearingReceiver(FastArqReceiver):
    """A receiver that NACKs of others concern if it misses the unit; otherwise it counts them."""

    __slots__ = ()

    @staticmethod
    def subject_of(feedback: Message, position: Any) -> Hashable:
        """Return the unit that a NACK requests; EVERY_UNIT if it shows that the sender is ahead of this position."""
        if not isinstance(feedback, Nack) or not isinstance(position, Position):
            return None
        if (feedback.sender, feedback.instance) != position.origin:
            return None
        is_ahead = feedback.object_id == position.object_id and feedback.unit >= position.unit and not position.is_end
        return EVERY_UNIT if is_ahead else (feedback.object_id, feedback.unit)

    def _count_overheard(self, count: int) -> None:
        policy = self._policy
        assert isinstance(policy, FastSuppressedNackPolicy)
        policy.count_overheard(count)


def acking_receiver(ports: Ports, config: AConfig, node: int, group: Group) -> AckingReceiver:
    """Return a receiver of protocol A; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return AckingReceiver(session, FastAckPolicy(session))


def nacking_receiver(ports: Ports, config: N1Config, node: int, group: Group) -> FastArqReceiver:
    """Return a receiver of protocol N1; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return FastArqReceiver(session, NackPolicy(session))


def suppressing_receiver(ports: Ports, config: N2Config, node: int, group: Group) -> OverhearingReceiver:
    """Return a receiver of protocol N2; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return OverhearingReceiver(session, FastSuppressedNackPolicy(session))
