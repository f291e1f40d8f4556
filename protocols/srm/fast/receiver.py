"""The SRM receiver that advances with others while it has one source."""

from collections.abc import Collection
from math import inf
from typing import Any

from protocols.arq.fast.messages import FastData
from protocols.arq.fast.senders import NO_SENDERS, OWN, enter, known_sender, states_of
from protocols.arq.messages import Data, End, Nack
from protocols.arq.sender_state import SenderState
from protocols.arq.session import Session
from protocols.fast.contract import Other
from protocols.fast.group import MachineGroup
from protocols.fast.units import UnitMachine
from protocols.machine import Address, Group, Message, Ports
from protocols.snapshot import Snapshot
from protocols.srm.config import SrmConfig
from protocols.srm.fast.group import SrmGroup
from protocols.srm.fast.policy import FastSrmPolicy
from protocols.srm.fast.sender_state import FastSrmSenderState
from protocols.srm.messages import Repair, SessionMessage
from protocols.srm.receiver import SrmPolicy, SrmReceiver

__all__ = ["FastSrmReceiver", "make_receiver"]


class FastSrmReceiver(SrmReceiver, UnitMachine):
    """An `SrmReceiver` that a group advances (`SrmGroup`)."""

    __slots__ = ("fast_state",)

    def __init__(self, session: Session, policy: FastSrmPolicy) -> None:
        super().__init__(session, policy)
        self.fast_state: Any = OWN
        self._senders = NO_SENDERS

    @property
    def policy(self) -> SrmPolicy:
        """The repair policy."""
        return self._srm

    @staticmethod
    def make_group(machines: list[Any], others: list[Other]) -> MachineGroup | None:
        """Return a group of these members; None if there are others."""
        return None if others or None in machines else SrmGroup(machines)

    def leave_lockstep_for(self, message: Message) -> None:
        """Become independent of the group, but for a session message only if it reports that the source is ahead."""
        group: Any = self.fast_state.coordinator
        if group is None:
            return
        group.refresh(self.fast_state)
        if type(message) is not SessionMessage or group.is_ahead(message):
            self.leave_lockstep()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a source or of another member."""
        kind, state = type(message), self.fast_state
        if state is not OWN and self._srm.member.due < inf:
            # Before the first message, of several sources and after a pause there is more to do.
            is_new: bool | None = None
            if kind is FastData:
                is_new = state.take(message, now)
            elif kind is Repair:
                assert isinstance(message, Repair)
                if (message.sender, message.instance) == (state.origin.node, state.origin.instance):
                    is_new = state.take_repair(message, now)
            if is_new is not None:
                assert isinstance(message, Data)
                self._session.data_received += 1
                self._srm.member.active_at = now
                self._srm.on_received(message, source, is_new, now)
                self.set_deadline()
                return
        super().receive(message, source, to, now)

    def set_deadline(self) -> None:
        """Set the deadline by the timers of missing units and of repairs, and the session messages."""
        state: FastSrmSenderState = self.fast_state
        of_source, of_policy = state.due(), self._srm.deadline
        due = of_source if of_source < of_policy else of_policy
        if due != self.deadline:
            self._due(due)

    def wake_in_lockstep(self, now: float) -> None:
        """Serve the timers in lockstep: that takes no position."""
        state = self.fast_state
        group: Any = state.coordinator
        group.refresh(state)
        if state.wakes_in_place(now):
            self.wake(now)
            if self._srm.member.due == inf:
                group.pause(self)
        else:
            self.leave_lockstep()

    def wake(self, now: float) -> None:
        """Serve the timers that have run out, and send a session message if one is due."""
        state, policy = self.fast_state, self._srm
        if state is OWN:
            super().wake(now)
            return
        if policy.member.due <= now:
            policy.member.wake(self._positions(), now)
        state.wake(now)
        if policy.deadline <= now:
            policy.wake(now)
        self.set_deadline()

    def overhear(self, feedback: Message, now: float) -> None:
        """Process a request of another member."""
        assert isinstance(feedback, Nack)
        self.fast_state.suppress(feedback, now)
        self.set_deadline()

    def counts(self) -> dict[str, int]:
        """Return what was received, and what the policy counts."""
        self._settle()
        return super().counts()

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the members and the packets that are remembered."""
        self._settle()
        return super().held()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each source with the round-trip time to it, once it is measured."""
        self._settle()
        return super().snapshot(now)

    def _settle(self) -> None:
        """Bring everything up to date."""
        self.leave_lockstep()
        if self.fast_state is not OWN:
            self.fast_state.sync()

    def _known(self, node: int) -> SenderState | None:
        return known_sender(self, node)

    def _states(self) -> Collection[SenderState]:
        return states_of(self)

    def _enter(self, first: Data | End, address: Address) -> SenderState:
        self._settle()
        return enter(self, first.sender, FastSrmSenderState(self._session, self._policy, first, address))


def make_receiver(ports: Ports, config: SrmConfig, node: int, group: Group) -> FastSrmReceiver:
    """Return an SRM receiver; `node` is its 32-bit id."""
    session = Session(ports, config, node, group)
    return FastSrmReceiver(session, FastSrmPolicy(session, config))
