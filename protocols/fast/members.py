"""Which machines of a lockstep group are in lockstep, and what the others lost or are to be asked for.

A machine in lockstep has the group's position. It leaves the group to get an input of its own, or when it lost a message that
the others received, and joins again when it is at the group's position. Two kinds of losses need not make it leave: those that
are recorded and applied at its next input (`DeferredLosses`), and those that no message since has shown it.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any

from protocols.fast.contract import FastMachine, FastState
from protocols.fast.deferred import DeferredLosses
from protocols.fast.group import SenderGroup
from protocols.fast.index import PartIndex, QuietQueue
from protocols.fast.overhearers import Overhearers

__all__ = ["LockstepMembers"]


class LockstepMembers(SenderGroup):
    """The machines of a `LockstepGroup`.

    `machines`, all of one class, is not copied and must not change. None stands for a member that does not take part.
    """

    __slots__ = (
        "_deferred",
        "_diverged",
        "_duplicates",
        "_lacking",
        "_last_heard",
        "_machines",
        "_members",
        "_overheard",
        "_overhearers",
        "_quiet",
        "_unaware",
        "_unaware_position",
        "_waiting",
    )

    def __init__(self, machines: list[Any]) -> None:
        super().__init__()
        # By index, and those that take part.
        self._machines: list[FastMachine | None] = machines
        self._members: list[FastMachine] = [each for each in machines if each is not None] if None in machines else machines
        kind = type(self._members[0])
        self._last_heard = 0.0
        self._duplicates = self._overheard = 0
        self._diverged: list[FastMachine] = list(self._members)
        # In lockstep, but called when a message concerns them: incomplete machines by what they lack, and either by what else
        # they wait for or until when they are quiet. Those that lost a visible message are in `_waiting[None]`, and
        # attentive ones at feedback. Machines that have left the group since are skipped.
        self._lacking = PartIndex()
        self._waiting: dict[Any, list[FastMachine]] = {}
        self._quiet = QuietQueue()
        own = kind.make_overhearers(self)
        self._overhearers: Overhearers = Overhearers(self) if own is None else own
        self._deferred = DeferredLosses()
        # In lockstep, though they have not noticed that they lost messages: the position each had before them.
        self._unaware: dict[FastMachine, Any] = {}
        self._unaware_position: Callable[[Any, Any], Any] = kind.unaware_position

    def _at(self, indices: Sequence[int]) -> list[FastMachine]:
        members = self._members
        if members is self._machines:
            return [members[index] for index in indices]
        found = [self._machines[index] for index in indices]
        return [machine for machine in found if machine is not None]

    # -- joining --------------------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Take diverged machines that are at the group's position into lockstep again."""
        diverged = self._diverged
        if diverged:
            self._diverged = []
            self._join(diverged)

    def _join(self, machines: list[FastMachine]) -> None:
        """Take machines at the group's position into lockstep, or there but for losses not noticed; the others have diverged.

        A machine whose link had a shorter queue may have come there before the group, which shows in `last_heard`.
        """
        position, duplicates, diverged, heard = self._position, self._duplicates, self._diverged, self._last_heard
        overheard = self._overheard
        joined: list[FastMachine] = []
        for machine in machines:
            state: FastState = machine.fast_state
            if state.last_heard == heard and (state.position is position or self._is_unaware(machine, state.position)):
                state.coordinator = self
                state.duplicates -= duplicates
                state.overheard -= overheard
                joined.append(machine)
            else:
                diverged.append(machine)
        if joined:
            self._list(joined)

    def _is_unaware(self, machine: FastMachine, position: Any) -> bool:
        """Note and return whether a machine would be in lockstep if it had noticed its last losses."""
        if position != self._unaware_position(position, self._position):
            return False
        self._unaware[machine] = position
        return True

    def _list(self, machines: list[FastMachine]) -> None:
        """List machines that joined the group and that some messages or some feedback concern."""
        attentive = [machine for machine in machines if machine.fast_state.attentive]
        if attentive:
            self._overhearers.add(attentive)
        self._list_lacking(machines)

    def _list_lacking(self, machines: list[FastMachine]) -> None:
        """List machines in lockstep by when messages concern them."""
        if machines:
            machines[0].list_waiting(machines, self._last_heard, self._waiting, self._quiet, self._lacking)

    def _list_again(self, machines: list[FastMachine], now: float) -> None:
        """List machines in lockstep anew by when messages concern them that do not bring what they lack."""
        if machines:
            machines[0].list_waiting(machines, now, self._waiting, self._quiet, None)

    # -- leaving --------------------------------------------------------------------------------------------------------

    def release(self, machine: FastMachine) -> None:
        """Update the machine's own state, because it gets an input of its own; it has diverged then."""
        late = self.late
        if late is not None:
            late.sync()
        self._leave(machine)
        if late is not None:
            late.wake_in_lockstep()

    def _leave(self, machine: FastMachine) -> None:
        """Let a machine leave the group, unless it has left."""
        numbers = self._deferred.of.pop(machine, None)
        unrevealed = () if numbers is None else self._apply_losses(machine, numbers)
        if machine.fast_state.coordinator is self:
            self._diverge(machine, unrevealed)

    def _diverge(self, machine: FastMachine, unrevealed: tuple[int, ...]) -> None:
        """Let a machine leave the group, at the position before the first message whose loss it could not notice, if any."""
        before = self._unaware.get(machine)
        self._update(machine)
        if unrevealed:
            self._deferred.set_before(machine.fast_state, unrevealed[0])
            self._set_unaware(machine.fast_state, before)
        self._diverged.append(machine)

    def _leave_behind(self, lost_by: list[FastMachine]) -> None:
        """Let machines diverge that lost the message with which the group advances."""
        for machine in lost_by:
            if machine.fast_state.coordinator is self:
                self._update(machine)
        self._diverged += lost_by

    def _rouse(self) -> None:
        """Let the machines leave that have not noticed losses, which the next message may show them."""
        for machine in list(self._unaware):
            self._leave(machine)

    def _update(self, machine: FastMachine) -> None:
        """Copy the group's state to a machine, which is not in lockstep any more."""
        self._part(machine, self._position, self._last_heard, self._duplicates)

    def _part(self, machine: FastMachine, position: Any, heard: float, duplicates: int) -> None:
        """Copy what the group's state is, or was before a message, to a machine, which is not in lockstep any more."""
        state: FastState = machine.fast_state
        timed: Any = state
        state.position, timed.last_heard = position, heard
        state.duplicates += duplicates
        state.overheard += self._overheard
        state.coordinator = None
        if self._unaware:
            self._set_unaware(state, self._unaware.pop(machine, None))

    def _set_unaware(self, state: FastState, before: Any) -> None:
        """Set the position of a machine, now that of the group, if there are losses that it has not noticed behind `before`."""
        if before is not None:
            state.position = self._unaware_position(before, state.position)

    def dissolve(self) -> None:
        """Make every machine independent; the group is not used any more."""
        if self.late is not None:
            self.late.unfold()
        self.call_in()
        for machine in self._members:
            if machine.fast_state.coordinator is self:
                self._update(machine)
        self._position = object()
        self._clear()

    def _clear(self) -> None:
        """Forget which machines messages concern."""
        self._lacking.clear()
        self._waiting.clear()
        self._quiet.clear()
        self._overhearers.clear()

    # -- losses not noticed ---------------------------------------------------------------------------------------------

    def call_in(self) -> None:
        """Apply all deferred losses; called before an event other than the next message."""
        deferred = self._deferred
        if deferred.of:
            listed: list[FastMachine] = []
            for machine, numbers in deferred.take_all().items():
                revealed, unrevealed = deferred.split(numbers)
                state: FastState = machine.fast_state
                if state.skip(revealed, deferred.losses):
                    listed.append(machine)
                if unrevealed:
                    self._diverge(machine, unrevealed)
            self._list_again([machine for machine in listed if machine.fast_state.coordinator is self], self._last_heard)
            deferred.forget()

    def _apply_losses(self, machine: FastMachine, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Apply the losses a machine could notice, those before a message it received; return the others."""
        revealed, unrevealed = self._deferred.split(numbers)
        state: FastState = machine.fast_state
        if state.skip(revealed, self._deferred.losses):
            self._list_again([machine], self._last_heard)
        return unrevealed

    def _apply_revealed(self, lost_by: list[FastMachine], staying: list[FastMachine]) -> None:
        """Apply the deferred losses of machines that received the next message.

        The `lost_by` lost it and diverge; the `staying` lost it, too, and keep their losses.
        """
        deferred, losses, lost, kept = self._deferred, self._deferred.losses, set(lost_by), set(staying)
        listed: list[FastMachine] = []
        for machine, numbers in deferred.take_all().items():
            if machine in kept:
                deferred.of[machine] = numbers
            elif machine not in lost:
                state: FastState = machine.fast_state
                if state.skip(numbers, losses):
                    listed.append(machine)
            elif unrevealed := self._apply_losses(machine, numbers):
                self._diverge(machine, unrevealed)
        self._list_again(listed, self._last_heard)
        deferred.forget()

    def refresh(self, machine: FastMachine) -> None:
        """Bring a machine in lockstep up to date, for an input that does not move its position."""
        if self.late is not None:
            self.late.sync()
        if not self.is_behind(machine):
            timed: Any = machine.fast_state
            timed.position, timed.last_heard = self._position, self._last_heard

    def list_again(self, machine: FastMachine) -> None:
        """List a machine in lockstep, and up to date, anew by when messages concern it."""
        self._list_again([machine], self._last_heard)

    def with_losses(self) -> Container[FastMachine]:
        """Return the machines with losses that they have not noticed."""
        return {**self._deferred.of, **self._unaware} if self._unaware else self._deferred.of

    def is_behind(self, machine: FastMachine) -> bool:
        """Apply the losses a machine could notice; if there are others, put its position before them and return True."""
        deferred = self._deferred
        numbers = deferred.of.pop(machine, None)
        unrevealed = () if numbers is None else self._apply_losses(machine, numbers)
        if unrevealed:
            deferred.of[machine] = unrevealed
        elif machine not in self._unaware:
            return False
        state: FastState = machine.fast_state
        timed: Any = state
        state.position, timed.last_heard = self._position, self._last_heard
        if unrevealed:
            deferred.set_before(state, unrevealed[0])
        self._set_unaware(state, self._unaware.get(machine))
        return True

    def latest_losers(self) -> list[FastMachine]:
        """Return the machines that lost the latest message of the group, or earlier ones, and have not noticed it."""
        deferred = self._deferred
        return [machine for machine in self._at(deferred.latest()) if machine in deferred.of] + list(self._unaware)
