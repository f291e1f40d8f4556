"""The NORM receiver that a host can advance together with others."""

from collections.abc import Collection
from math import inf
from typing import Any, Final, cast

from protocols.errors import UsageError
from protocols.events import sender_heard
from protocols.fast.contract import FastMachine, Other
from protocols.fast.group import MachineGroup
from protocols.fast.lockstep import LockstepGroup
from protocols.fast.senders import FollowingMachine, SenderGroups
from protocols.machine import Address, Group, Message, Ports
from protocols.norm.config import NormConfig
from protocols.norm.fast.batch import NormFollower
from protocols.norm.fast.messages import FastData, FastFlush, FastInfo, FastProbe
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.fast.views import SenderView, SenderViews
from protocols.norm.limits import NEW_SENDERS_RATE
from protocols.norm.messages import Ack, Command, Data, Info, Nack
from protocols.norm.position import TransmitPosition
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender_extras import NO_EXTRAS
from protocols.norm.stream_reception import StreamSenderState
from protocols.snapshot import Snapshot

__all__ = ["FastNormReceiver"]

_NO_SENDERS: Final = SenderViews()
"""Shared by the receivers that follow one sender at most; never modified."""


MANY_SENDERS: Final = 1024
"""With room for so many senders none is forgotten and comes anew, as in simulations each node is one sender.

So it is not counted how many new ones a host brings.
"""


class _AllViews:
    """The coordinator of receivers of several senders: they are independent when all their views are."""

    def release(self, machine: "FastNormReceiver") -> None:
        """Bring all senders of a receiver up to date."""
        machine.release_views()


class FastNormReceiver(NormBatchReceiver, NormFollower, FollowingMachine):
    """A `NormReceiver` with short cuts for the messages of its only sender, whose state is `fast_state`.

    A receiver of several senders has a `SenderView` of each.
    """

    __slots__ = ("fast_state",)

    def __init__(self, ports: Ports, config: NormConfig, node: int, group: Group) -> None:
        super().__init__(ports, config, node, group)
        # Only several senders are entered here: a dictionary takes 200 bytes.
        self._senders = _NO_SENDERS
        self.fast_state = FastSenderState(self.session)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message; one that only advances the position replaces a reference."""
        state: FastSenderState = self.fast_state
        result = OTHER
        if type(message) is FastData:
            if message.expects is state.position:
                state.position = message.next_state
                state.last_heard = now
                return
            result = state.take(message, now)
        elif type(message) is FastFlush and message.expects_if_complete is state.position:
            result = state.advance(message, now)
        elif type(message) is FastProbe or type(message) is FastInfo:
            result = state.interpret(message, now)
        if result == RESCHEDULE:
            self.settle(state)
        elif result == OTHER:
            view = None if self._senders is _NO_SENDERS else self._view(message)
            if view is None:
                super().receive(message, source, to, now)
            else:
                view.receive(message, source, to, now)

    def interpret(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message as the plain receiver does."""
        super().receive(message, source, to, now)

    @staticmethod
    def make_group(machines: list[Any], others: list[Other]) -> MachineGroup:
        """Return a group of receivers and others."""
        return SenderGroups(machines, others)

    @staticmethod
    def make_sender_group(views: list[Any]) -> LockstepGroup:
        """Return a lockstep group of receivers of one sender, or of views of it."""
        return LockstepGroup(views)

    @staticmethod
    def sender_of(message: Message) -> int | None:
        """Return the node id of the sender that a message comes from, or that feedback is for."""
        if isinstance(message, (Data, Info, Command)):
            return message.origin.source_id
        return message.sender_id if isinstance(message, (Nack, Ack)) else None

    # -- one sender or several -------------------------------------------------------------------------------------

    @property
    def follows_several(self) -> bool:
        """Whether the receiver has a view of each sender."""
        return self._senders is not _NO_SENDERS

    def view_of(self, sender: Any) -> SenderView:
        """Return the view of a sender, always the same object; the receiver follows several from now on."""
        if self._senders is _NO_SENDERS:
            self._follow_several()
        views = cast(SenderViews, self._senders).of
        view = views.get(sender)
        if view is None:
            view = views[sender] = SenderView(self, FastSenderState(self.session))
        return view

    def release_views(self) -> None:
        """Bring all senders up to date, because the receiver gets an input of its own."""
        cast(SenderViews, self._senders).release()

    def _view(self, message: Message) -> SenderView | None:
        """Return the view of a message's sender, if the receiver has one."""
        sender = self.sender_of(message)
        return None if sender is None else cast(SenderViews, self._senders).of.get(sender)

    def _follow_several(self) -> None:
        """Give the only sender a view; the receiver is no longer in lockstep."""
        self.leave_lockstep()
        state: FastSenderState = self.fast_state
        views = self._senders = SenderViews()
        self.fast_state = _SEVERAL
        origin = state.origin
        if origin is not None:
            state.unlink()
            views[origin.source_id] = state
            views.note(origin.source_id, state.deadline())
            views.of[origin.source_id] = SenderView(self, state)

    def _known(self, node: int) -> StreamSenderState | None:
        """Return the state of the sender `node`; None if no message of it was received."""
        origin = self.fast_state.origin
        return self.fast_state if origin is not None and origin.source_id == node else self._senders.get(node)

    def _sender(self, node: int, source: Address, now: float) -> StreamSenderState | None:
        """Return the state of the sender `node`, new with its first message; None when there is no room for another."""
        known = self._known(node)
        if known is not None:
            return known
        if self.config.senders < MANY_SENDERS and not self.extras.newcomers.admits(source, now, NEW_SENDERS_RATE):
            return None
        if self._senders is _NO_SENDERS and self.fast_state.origin is None:
            known = cast(FastSenderState, self.fast_state)
        else:
            view = self.view_of(node)
            if not self._has_room():
                return None
            known = self._senders[node] = view.fast_state
        if self.config.feedback == "unicast":
            known.change_extras().source = source
        self.ports.notify(sender_heard(node))
        return known

    def _has_room(self) -> bool:
        """Return whether one more sender can be remembered, after forgetting another if need be."""
        if len(self._senders) < self.session.config.senders:
            return True
        self.leave_lockstep()
        if not super()._has_room():
            return False
        for node, view in cast(SenderViews, self._senders).of.items():
            if self._senders.get(node) is None and view.fast_state.origin is not None:
                self._note_overheard(view.fast_state)
                view.fast_state = FastSenderState(self.session)
        return True

    def senders(self) -> Collection[StreamSenderState]:
        """Return the state of every sender a message was received from."""
        if self._senders is not _NO_SENDERS:
            return self._senders.values()
        return [self.fast_state] if self.fast_state.origin is not None else []

    # -- inputs ----------------------------------------------------------------------------------------------------

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Process the feedback of another receiver."""
        own: FastSenderState = self.fast_state
        state: FastSenderState | None = own
        origin = own.origin
        if origin is None or origin.source_id != message.sender_id:
            other = self._senders.get(message.sender_id)
            state = other if isinstance(other, FastSenderState) else None
        if isinstance(message, Nack) and (state is None or state.coordinator is None):
            # In lockstep the group counts it.
            self.session.nacks_heard += 1
        if state is not None and state.attentive and state.overhear(message, now):
            self.settle(state)

    def wake(self, now: float) -> None:
        """Send the feedback that is due, and check the activity of senders."""
        if self._senders is _NO_SENDERS:
            state: FastSenderState = self.fast_state
            state.wake(now)
            self.settle(state)
            return
        views = cast(SenderViews, self._senders)
        for sender in views.due(now):
            view = views.of[sender.node]
            if not _wake_in_lockstep(view, now):
                view.leave_lockstep()
                sender.wake(now)
            self.settle(sender)
        self._due(views.deadline())

    def wake_in_lockstep(self, now: float) -> None:
        """Send the feedback that is due in lockstep, and renew the activity period."""
        if self._senders is not _NO_SENDERS:
            # `wake` does this for the senders that are due.
            return
        if _wake_in_lockstep(self, now):
            self.settle(self.fast_state)
        else:
            self.leave_lockstep()

    def leave_lockstep_for(self, message: Message) -> None:
        """Leave the group in which messages of this sender are received, unless the message is only counted."""
        machine = self if self._senders is _NO_SENDERS else self._view(message)
        if machine is None:
            return
        state: FastSenderState = machine.fast_state
        if message.is_feedback and not state.attentive and state.coordinator is not None:
            origin = state.origin
            if isinstance(message, Nack) and origin is not None and origin.source_id == message.sender_id:
                # `overhear` counts those to other senders.
                state.overheard += 1
        else:
            machine.leave_lockstep()

    def set_nacking(self, mode: str, sender: int | None, object_id: int | None, now: float) -> None:
        """Raise UsageError: receivers in lockstep request alike."""
        raise UsageError("receivers of the fast engine have one nacking mode; set `nacking`, or `engine: strict`")

    def set_repair_boundary(self, boundary: str, sender: int | None, now: float) -> None:
        """Raise UsageError: receivers in lockstep request alike."""
        raise UsageError("receivers of the fast engine have one repair boundary; set `repair_boundary`, or `engine: strict`")

    def forget_sender(self, node: int, now: float) -> bool:
        """Raise UsageError: receivers in lockstep know the same senders."""
        raise UsageError("receivers of the fast engine forget no sender; use `engine: strict`")

    def counts(self) -> dict[str, int]:
        """Return the counters of messages received and sent."""
        self.leave_lockstep()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of each sender with its objects."""
        self.leave_lockstep()
        views = [] if self._senders is _NO_SENDERS else cast(SenderViews, self._senders).of.values()
        for state in [self.fast_state, *[view.fast_state for view in views]]:
            self._note_overheard(state)
        return super().snapshot(now)

    def _note_overheard(self, state: FastSenderState) -> None:
        """Count the NACKs that the receiver heard as a member of a group."""
        self.session.nacks_heard += state.overheard
        state.overheard = 0

    def settle(self, sender: Any) -> None:
        """Set the deadline, and whether feedback of others has an effect; `sender` is a `FastSenderState`."""
        state: FastSenderState = sender
        # As `feedback_due`, without a call.
        process, response = state.nack_process, state.probe_response
        due = inf if process is None else process.due
        if response is not None and response.due < due:
            due = response.due
        if state.extras is not NO_EXTRAS:
            due = min(due, state.extras.due())
        state.attentive = due < inf
        due = due if due < state.idle_at else state.idle_at
        if self._senders is not _NO_SENDERS:
            self._senders.note(state.node, due)
            due = self._senders.deadline()
        if due < self.deadline:
            # As `_due`, without a call.
            self.deadline = due
            self.ports.alarm(due)
        else:
            self.deadline = due


def _several() -> FastSenderState:
    state: FastSenderState = FastNormReceiver(cast(Ports, None), NormConfig(), 0, Group("")).fast_state
    state.position, state.coordinator = TransmitPosition(0, 0, 0, 0, (0, 0, 0)), _AllViews()
    return state


_SEVERAL: Final = _several()
"""Shared by the receivers of several senders, whose states are those of their views: no message expects it."""


def _wake_in_lockstep(machine: FastMachine, now: float) -> bool:
    """Do what is due of a sender's state while it is advanced in lockstep; return False if that may move its position."""
    state: FastSenderState = machine.fast_state
    group = state.coordinator
    if not isinstance(group, LockstepGroup):
        return False
    group.refresh(machine)
    if state.idle_at <= now and (state.extras.ages is not None or state.is_silent_at(now)):
        return False
    state.wake(now)
    process = state.nack_process
    if process is not None and process.holdoff_end <= now:
        # It was needless, so that the receiver stops being quiet.
        group.list_again(machine)
    return True
