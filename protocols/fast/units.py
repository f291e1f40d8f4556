"""Lockstep for receivers that lack single units of content: the wing of a protocol without blocks and parity.

The messages of a sender form a chain of positions (`UnitMessage.expects`, `next_state`). A machine at the position that a
message expects only advances to the next one, unless it lacks the unit that the message fills. So a `UnitGroup` keeps the
position once for all of them, and calls the others: those that lost a message, when the next one comes; those that lack a unit,
when it is repaired, or when another machine's feedback names it. The outcome is that of plain machines called one by one.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr, trait

from protocols.fast.contract import FastMachine, FastMessage, FastState, Other
from protocols.fast.deferred import Missed
from protocols.fast.feedback import FeedbackGroup
from protocols.fast.group import MachineGroup, SenderGroup
from protocols.machine import Address, Message, Packet

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["EVERY_UNIT", "UnitGroup", "UnitMachine", "UnitMessage", "UnitState"]

EVERY_UNIT: Final = object()
"""The subject of feedback that concerns every machine (`UnitMachine.subject_of`)."""
_NO_SLOTS: Final = ()
# A name, because a type checker takes a literal for all the attributes there are; subclasses have the slots.


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class UnitMessage(FastMessage):
    """A message that only advances machines at `expects`, but for those that lack the unit `fills`."""

    __slots__ = ()
    fills: Hashable
    """The unit that the message repairs, as in `UnitState.lacks`; None: it repairs nothing."""


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class UnitState(FastState):
    """The part of a machine's state that a `UnitGroup` advances: `position`, `last_heard`, and two counts.

    `duplicates` counts the `redundant` messages that found nothing lacking, `overheard` the feedback of others with a subject.
    While `coordinator` is not None, position and time are out of date, and both counts hold that of the group minus the own:
    such a difference is small and seldom negative, and CPython shares one object for each small number that is not.
    """

    __slots__ = _NO_SLOTS

    def lacks(self) -> Iterable[Hashable]:
        """Return the units that were sent and not received, if the machine is not complete."""
        return ()


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class UnitMachine(FastMachine):
    """A machine for a `UnitGroup`; its `fast_state` is a `UnitState` once it is at a position of the chain."""

    __slots__ = ()

    @staticmethod
    def make_group(machines: list[Any], others: list[Other]) -> MachineGroup | None:
        """Return a group of these machines; None if there are others."""
        return None if others or None in machines else UnitGroup(machines)

    @staticmethod
    def subject_of(feedback: Message, position: Any) -> Hashable:
        """Return the unit that feedback is about, for machines at a position.

        It concerns those that lack the unit, and the others count it. None: it has no effect; EVERY_UNIT: it concerns all.
        """
        del feedback, position
        return None

    def overhear(self, feedback: Message, now: float) -> None:
        """Process feedback about a unit that the machine lacks, without leaving the group; `overheard` counts it already."""

    @staticmethod
    def feedback_group(machines: list[Any]) -> FeedbackGroup | None:
        """Return these machines as those that answer messages together; None: they send nothing when they only advance."""
        del machines
        return None


class UnitGroup(SenderGroup):
    """See the module. `machines` is not copied and must not change."""

    __slots__ = (
        "_answering",
        "_diverged",
        "_duplicates",
        "_feedback",
        "_indices",
        "_lacking",
        "_last_heard",
        "_machines",
        "_overheard",
        "_receive_batch",
        "_subject_of",
    )

    def __init__(self, machines: list[Any]) -> None:
        super().__init__()
        kind: type[UnitMachine] = type(machines[0])
        self._machines: list[UnitMachine] = machines
        self._receive_batch: Callable[..., None] = kind.receive_batch
        self._subject_of: Callable[[Message, Any], Hashable] = kind.subject_of
        self._feedback = kind.feedback_group(machines)
        answering = machines if self._feedback is not None else ()
        self._indices = {machine: index for index, machine in enumerate(answering)}
        self._answering = bytearray(len(self._indices))
        """1 for each machine in lockstep, if machines answer together."""
        self._last_heard = 0.0
        self._duplicates = self._overheard = 0
        self._diverged: list[UnitMachine] = list(machines)
        # Machines by the units they lack. Those that have left the group since, or received the unit, are skipped.
        self._lacking: dict[Hashable, dict[UnitMachine, None]] = {}

    # -- messages --------------------------------------------------------------------------------------------------

    def tell(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the indices `lost_by`."""
        late = self.late
        if late is not None:
            late.sync()
        if message.is_feedback:
            self._overhear(message, source, to, now, lost_by)
        else:
            self._deliver(message, source, to, now, lost_by)
        if late is not None:
            late.wake_in_lockstep()

    def pass_on(
        self, burst: "Burst", nth: int, number: int, source: Address, to: Address, now: float, lost_by: Sequence[int]
    ) -> None:
        """Deliver burst message `nth`."""
        del number
        self._deliver(burst.message(nth), source, to, now, lost_by)

    def _deliver(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        machines = self._machines
        lost = [machines[index] for index in lost_by]
        if not isinstance(message, FastMessage):
            self._call_all(message, None, source, to, now, lost)
        elif message.expects is not self._position or not isinstance(message, UnitMessage):
            self._call_all(message, message.next_state, source, to, now, lost)
        else:
            called = _without(self._diverged, lost)
            for machine in lost:
                if machine.fast_state.coordinator is self:
                    self._update(machine)
            self._diverged = lost
            if message.fills in self._lacking:
                for machine in self._lacking.pop(message.fills):
                    if machine.fast_state.coordinator is self:
                        self._update(machine)
                        called.append(machine)
            if self._feedback is not None:
                self._answer(self._feedback, message, source, now)
            self._position, self._last_heard = message.next_state, now
            self._duplicates += message.redundant
            if called:
                self._call(called, message, source, to, now)

    def _answer(self, feedback: FeedbackGroup, message: Message, source: Address, now: float) -> None:
        """Send the feedback of the machines that a message only advances."""
        batch = feedback.answer(bytes(self._answering), message, source) if any(self._answering) else None
        if batch is not None and self.send_batch is not None:
            self.send_batch(batch, now)
        elif batch is not None:
            for number, machine in enumerate(batch.machines()):
                machine.ports.send(Packet(batch.message(number), batch.size, batch.to))

    def _overhear(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver feedback: it advances no machine."""
        subject = self._subject_of(message, self._position)
        lost = [self._machines[index] for index in lost_by]
        if subject is EVERY_UNIT:
            self._call_all(message, None, source, to, now, lost)
            return
        for machine in _without(self._diverged, lost):
            machine.receive(message, source, to, now)
        if subject is None:
            return
        self._overheard += 1
        for machine in lost:
            state: FastState = machine.fast_state
            if state.coordinator is self:
                state.overheard += 1
        if subject in self._lacking:
            left_out = set(lost)
            for machine in self._lacking[subject]:
                if machine.fast_state.coordinator is self and machine not in left_out:
                    machine.overhear(message, now)

    def _call(self, machines: list[UnitMachine], message: Message, source: Address, to: Address, now: float) -> None:
        """Call machines that are not in lockstep."""
        self._receive_batch(machines, message, source, to, now)
        self._join(machines)

    def _call_all(
        self, message: Message, next_state: Any, source: Address, to: Address, now: float, lost: list[UnitMachine]
    ) -> None:
        """Call all machines; those at `next_state` afterwards are in lockstep."""
        for machine in self._machines:
            if machine.fast_state.coordinator is self:
                self._update(machine)
            else:
                machine.leave_lockstep()
        self._diverged = lost
        self._lacking = {}
        self._position = next_state if next_state is not None else object()
        self._last_heard = now
        self._call(_without(list(self._machines), lost), message, source, to, now)

    # -- membership ------------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Take diverged machines that are at the group's position into lockstep again."""
        diverged = self._diverged
        if diverged:
            self._diverged = []
            self._join(diverged)

    def release(self, machine: Any) -> None:
        """Update the machine's own state, because it gets an input of its own; it has diverged then."""
        late = self.late
        if late is not None:
            late.sync()
        if machine.fast_state.coordinator is self:
            self._update(machine)
            self._diverged.append(machine)
        if late is not None:
            late.wake_in_lockstep()

    def dissolve(self) -> None:
        """Make every machine independent; the group is not used any more."""
        if self.late is not None:
            self.late.unfold()
        for machine in self._machines:
            if machine.fast_state.coordinator is self:
                self._update(machine)
        self._position = object()

    def _update(self, machine: UnitMachine) -> None:
        """Copy the group's state to that of a machine, which is not in lockstep any more."""
        state: FastState = machine.fast_state
        timed: Any = state  # See `FastState.last_heard`.
        timed.last_heard = self._last_heard
        state.position = self._position
        state.duplicates = self._duplicates - state.duplicates
        state.overheard = self._overheard - state.overheard
        state.coordinator = None
        if self._feedback is not None:
            self._answering[self._indices[machine]] = 0

    def _join(self, machines: list[UnitMachine]) -> None:
        """Take machines at the group's position into lockstep, listed by the units they lack; the others have diverged."""
        position, diverged, lacking, heard = self._position, self._diverged, self._lacking, self._last_heard
        for machine in machines:
            state: FastState = machine.fast_state
            unit_state: Any = state  # For `lacks`, and see `FastState.last_heard`.
            # A machine whose link had a shorter queue may have come there before the group.
            if state.position is not position or unit_state.last_heard != heard:
                diverged.append(machine)
                continue
            state.coordinator = self
            if self._feedback is not None:
                self._answering[self._indices[machine]] = 1
            state.duplicates = self._duplicates - state.duplicates
            state.overheard = self._overheard - state.overheard
            if not state.is_complete:
                for unit in unit_state.lacks():
                    if unit in lacking:
                        lacking[unit][machine] = None
                    else:
                        lacking[unit] = {machine: None}

    # -- lookahead -------------------------------------------------------------------------------------------------

    def stands_at(self, position: object) -> bool:
        """Return whether all machines are at this position, so that a message that expects it only advances them."""
        return self._position is position and not self._diverged

    def move(self, position: object, heard: float, following: int) -> None:
        """Advance the group over messages that nobody lost, the last received at `heard` seconds."""
        del following
        self._position, self._last_heard = position, heard

    def defer(self, missed: Iterable[Missed], begin: int, sent: Sequence[float], base: int, steps: Sequence[float]) -> None:
        """Take no losses: the bursts of these protocols show them (`Burst.shows_losses`)."""
        assert not list(missed), "a loss was not delivered at its time"

    def call_in(self) -> None:
        """Do nothing: no loss is deferred."""


def _without(machines: list[UnitMachine], lost: list[UnitMachine]) -> list[UnitMachine]:
    if not lost or not machines:
        return machines
    left_out = set(lost)
    return [machine for machine in machines if machine not in left_out]
