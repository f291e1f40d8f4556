"""Lockstep: the state of many machines that are in the same state is kept and advanced once.

The messages of a sender form a chain of positions (`FastMessage.expects`, `expects_if_complete`, `next_state`). For a machine
at the position a message expects, the message only replaces that position; a `LockstepGroup` replaces it once for all of them.
It calls the others: diverged machines, which lost a message, until they are at the group's position again; incomplete machines,
when a message brings what they lack or has another effect on them; attentive machines, when feedback concerns them. The outcome
is that of plain machines called one by one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from protocols.fast.contract import Applied, FastMachine, FastMessage, FastState
from protocols.fast.deferred import Missed, StayingLosers
from protocols.fast.members import LockstepMembers
from protocols.machine import Address, Message

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["LockstepGroup"]


class LockstepGroup(LockstepMembers):
    """The machines that receive the same messages of one sender, e.g. the members of a multicast group behind one switch."""

    __slots__ = ("_apply_batch", "_counts_overheard", "_process", "_receive_batch", "_staying")

    def __init__(self, machines: list[Any]) -> None:
        super().__init__(machines)
        kind = type(self._members[0])
        self._apply_batch: Callable[..., Applied] = kind.apply_to_incomplete
        self._process: Callable[..., list[Any]] = kind.process_in_lockstep
        self._receive_batch: Callable[..., None] = kind.receive_batch
        self._counts_overheard: Callable[[Message], bool] = kind.counts_overheard
        self._staying = StayingLosers()

    # -- lookahead -------------------------------------------------------------------------------------------------

    def stands_at(self, position: object) -> bool:
        """Return whether all machines are at this position, so that a message that expects it only advances them."""
        return not self._diverged and self._position is position and not self._unaware

    def move(self, position: object, heard: float, following: int) -> None:
        """Advance the group over messages without another effect, the last received at `heard` seconds.

        Losses among them are given to `defer` before. `following` is the number of the next message.
        """
        self._position = position
        self._last_heard = heard
        self._deferred.following = following

    def defer(self, missed: Iterable[Missed], begin: int, sent: Sequence[float], base: int, steps: Sequence[float]) -> None:
        """Defer losses of deferrable messages, whose receivers stay in lockstep; `move` has to follow."""
        self._deferred.add(missed, self._machines, self, self._lacking, self._last_heard, begin, sent, base, steps)

    def _defer_one(self, burst: "Burst", nth: int, number: int, lost_by: Sequence[int], heard: float) -> None:
        """Defer the loss of a message; the one before arrived at `heard`."""
        missed = [(burst, nth, number, [(0, lost_by)])]
        self._deferred.add(missed, self._machines, self, self._lacking, heard, number, (), 0, ())

    def _defer_gap(self, burst: "Burst", nth: int, number: int) -> None:
        """Defer the loss of the messages before burst message `nth` if all machines lost them, as on a shared link.

        Only if that is all that happened since the group's position, and none of them is visible. `number` is that of the
        message on this path.
        """
        begin = self._deferred.following
        gap = number - begin
        first = nth - gap
        if not 0 < gap <= nth or self._position is not burst.position(first) or not burst.is_new:
            return
        if self._unaware or burst.shows_losses or not all(map(burst.is_deferrable, range(first, nth))):
            return
        for place in range(gap):
            self._defer_one(burst, first + place, begin + place, range(len(self._machines)), self._last_heard)
        self._position = burst.position(nth)
        self._deferred.following = number

    def pass_on(
        self, burst: "Burst", nth: int, number: int, source: Address, to: Address, now: float, lost_by: Sequence[int]
    ) -> None:
        """Deliver burst message `nth`, which has the number `number` on this path.

        Diverged machines receive it at once, machines in lockstep only if it is visible. `lost_by` are the indices of machines
        that lost it; the loss of a deferrable message is recorded and applied at the machine's next input.
        """
        # The last message that arrived or was deferred: `number - 1` may have been lost by all.
        before = self._deferred.burst_of(self._deferred.following - 1)
        if before is not None and before is not burst and not burst.reveals_loss_of(before):
            self.call_in()
        is_visible, position = burst.next_visible(nth) == nth, burst.position(nth)
        if self._position is not position:
            self._defer_gap(burst, nth, number)
        if self._position is not position or not burst.is_deferrable(nth) or (is_visible and not lost_by):
            self._deliver(burst.message(nth), source, to, now, lost_by)
        elif is_visible:
            self._deliver_visible(burst, nth, number, source, to, now, lost_by)
        else:
            if self._unaware:
                self._rouse()
            diverged = self._diverged
            if lost_by:
                self._defer_one(burst, nth, number, lost_by, self._last_heard)
            self.move(burst.position(nth + 1), now, number + 1)
            if diverged:
                lost = set(self._at(lost_by))
                self._diverged = [machine for machine in diverged if machine in lost]
                received = [machine for machine in diverged if machine not in lost]
                self._call(received, burst.message(nth), source, to, now)

    def _deliver_visible(
        self, burst: "Burst", nth: int, number: int, source: Address, to: Address, now: float, lost_by: Sequence[int]
    ) -> None:
        """Deliver a visible, deferrable message of a burst; machines in lockstep that lost it stay in lockstep."""
        message, heard = burst.message(nth), self._last_heard
        if self._unaware and not self._is_hidden(message):
            self._rouse()
        deferred, losers = self._deferred, self._at(lost_by)
        lost = [machine for machine in losers if machine.fast_state.coordinator is not self]
        staying = [machine for machine in losers if machine.fast_state.coordinator is self] if lost else losers
        if deferred.of:
            self._apply_revealed(lost, staying)
        deferred.following = number + 1
        if staying:
            self._staying.begin(staying, message)
        self._apply(message, source, to, now, lost)
        if staying:
            unaware = self._staying.end(self, message)
            if unaware:
                self._list_lacking(unaware)
                # For them the next message may do what this one did for the others.
                self._waiting.setdefault(None, []).extend(unaware)
            self._defer_one(burst, nth, number, lost_by, heard)

    # -- messages --------------------------------------------------------------------------------------------------

    def tell(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the indices `lost_by`."""
        late = self.late
        if late is None:
            self._deliver(message, source, to, now, lost_by)
        elif not message.is_feedback:
            late.sync()
            self.call_in()
            self._deliver(message, source, to, now, lost_by)
            late.wake_in_lockstep()
        elif self._overhearers or self._diverged:
            late.sync()
            # Machines in lockstep stay in lockstep.
            had_diverged = bool(self._diverged)
            self._overhear(message, source, to, now, self._at(lost_by))
            if had_diverged:
                late.wake_in_lockstep()
        else:
            self._count_overheard(message, self._at(lost_by))

    def _deliver(self, message: Message, source: Address, to: Address, now: float, indices: Sequence[int]) -> None:
        """Deliver a message, given that the group is up to date and machines with deferred losses expect no other one."""
        lost_by = self._at(indices)
        if self._deferred.of:
            self._apply_revealed(lost_by, [])
        position = self._position
        if self._unaware and not self._is_hidden(message):
            self._rouse()
        if not isinstance(message, FastMessage):
            if message.is_feedback:
                self._overhear(message, source, to, now, lost_by)
            else:
                self._call_all(message, None, source, to, now, lost_by)
        elif message.expects is position:
            diverged = self._diverged
            self._diverged = []
            if lost_by:
                diverged = _without(diverged, lost_by)
                self._leave_behind(lost_by)
            self._position = message.next_state
            self._last_heard = now
            if diverged:
                self._call(diverged, message, source, to, now)
        elif message.expects_if_complete is position:
            self._apply(message, source, to, now, lost_by)
        elif message.keeps_lockstep(position):
            self._apply_to_each(message, source, to, now, lost_by)
        else:
            self._call_all(message, message.next_state, source, to, now, lost_by)

    def _apply(self, message: FastMessage, source: Address, to: Address, now: float, lost_by: list[FastMachine]) -> None:
        """Deliver a message that only advances complete machines, and may concern incomplete and attentive ones."""
        called, self._diverged = self._diverged, []
        if lost_by:
            called = _without(called, lost_by)
            self._leave_behind(lost_by)
        before = self._position, self._last_heard, self._duplicates
        asked, waited_for, groups = self._take_concerned(message, now)
        self._position, self._last_heard = message.next_state, now
        self._duplicates += message.redundant
        if asked:
            unchanged, advanced = self._apply_to(asked, message, now, before, called)
            if unchanged[0]:
                self._waiting[None] = unchanged[0] + self._waiting.get(None, [])
            # What those in `waiting[None]` lack was not listed.
            self._list_lacking(advanced)
        if groups:
            unchanged, advanced = self._apply_to(groups, message, now, before, called)
            for place, machines in enumerate(unchanged):
                if machines:
                    waiting = waited_for[place]
                    self._waiting[waiting] = machines + self._waiting.get(waiting, [])
            self._list_again(advanced, now)
        if self._lacking.rows:
            self._bring(message, now, before, called)
        if called:
            self._call(called, message, source, to, now)

    def _apply_to_each(
        self, message: FastMessage, source: Address, to: Address, now: float, lost_by: list[FastMachine]
    ) -> None:
        """Deliver a message that advances the machines in lockstep, and that each of them processes."""
        called, self._diverged = self._diverged, []
        if lost_by:
            called = _without(called, lost_by)
            self._leave_behind(lost_by)
        before = self._position, self._last_heard, self._duplicates
        self._position, self._last_heard = message.next_state, now
        machines = [each for each in self._members if each.fast_state.coordinator is self]
        others = self._process(machines, message, now)
        for machine in others:
            self._part(machine, *before)
        called += others
        # They may wait for something else now.
        self._clear()
        self._list([machine for machine in machines if machine.fast_state.coordinator is self])
        if called:
            self._call(called, message, source, to, now)

    def _bring(self, message: FastMessage, now: float, before: tuple[Any, float, int], called: list[FastMachine]) -> None:
        """Apply a message to the machines that lack what it brings."""
        brought = message.brings()
        if brought is not None and (lacking := self._lacking.take(*brought)):
            self._apply_to([lacking], message, now, before, called)

    def _take_concerned(
        self, message: FastMessage, now: float
    ) -> tuple[list[list[FastMachine]], list[Any], list[list[FastMachine]]]:
        """Return the machines that a message concerns, most of which are removed from where they are listed.

        First come those that lost a visible message before; then what others wait for, and those that wait for it, group by
        group.
        """
        waiting = self._waiting
        if self._quiet.next_due <= now:
            ended = dict.fromkeys(self._quiet.due(now))
            self._staying.note(ended)
            due = [machine for machine in ended if machine.fast_state.coordinator is self]
            self._list_again(due, now)
        if message.rewinds():
            # Some quiet machines wait for something besides.
            roused: list[FastMachine] = []
            for machines in self._quiet.machines():
                roused += machines[0].rewind(machines, message, now, self)
            for machines in waiting.values():
                machines[0].rewind(machines, message, now, self)
            self._list_again(list(dict.fromkeys(roused)), now)
        elif None in waiting:
            waiting[None][0].rewind(waiting[None], message, now, self)
        asked = waiting.pop(None, [])
        waited_for = message.concerned(waiting)
        groups = [waiting.pop(each) for each in waited_for]
        return [asked] if asked else [], waited_for, groups

    def _apply_to(
        self,
        groups: list[list[FastMachine]],
        message: FastMessage,
        now: float,
        before: tuple[Any, float, int],
        called: list[FastMachine],
    ) -> tuple[list[list[FastMachine]], list[FastMachine]]:
        """Apply a message to machines; return those in lockstep that wait for the same by group, and the others in lockstep.

        Those to be called singly are added to `called`. `before` is position, time of the last message and duplicates of the
        group before the message.
        """
        for group in groups if self._staying.concerned else ():
            self._staying.note(group)
        unaware = self._unaware
        for machine in [each for group in groups for each in group if each in unaware] if unaware else ():
            if machine.fast_state.coordinator is self:
                self._part(machine, *before)
                called.append(machine)
        unchanged, attentive, advanced, others = self._apply_batch(groups, message, now, self)
        for machine in others:
            self._part(machine, *before)
        called += others
        if attentive:
            self._overhearers.add(attentive)
        return unchanged, advanced

    def _is_hidden(self, message: Message) -> bool:
        """Return whether a message shows no machine the losses that it has not noticed."""
        return message.is_feedback or (isinstance(message, FastMessage) and message.hides_from(self._unaware.values()))

    def _overhear(self, message: Message, source: Address, to: Address, now: float, lost_by: list[FastMachine]) -> None:
        """Deliver feedback: it advances no machine, and concerns diverged and attentive ones."""
        # Machines that had an input of their own since the last message are at the group's position; most are not attentive.
        self.gather()
        self._count_overheard(message, lost_by)
        lost, position = dict.fromkeys(lost_by), self._position
        others = self._overhearers.overhear(message, source, to, now, self._diverged, lost, position, self._last_heard)
        self._list_again(others, now)

    def _count_overheard(self, message: Message, lost_by: list[FastMachine]) -> None:
        """Count feedback for the machines in lockstep, if it is counted; diverged ones count it themselves."""
        if self._counts_overheard(message):
            self._overheard += 1
            for machine in lost_by:
                state: FastState = machine.fast_state
                if state.coordinator is self:
                    state.overheard -= 1

    def _call(self, machines: list[FastMachine], message: Message, source: Address, to: Address, now: float) -> None:
        """Call machines that are not in lockstep."""
        self._receive_batch(machines, message, source, to, now)
        self._join(machines)

    def _call_all(
        self, message: Message, next_state: Any, source: Address, to: Address, now: float, lost_by: list[FastMachine]
    ) -> None:
        """Call all machines; those at `next_state` afterwards are in lockstep."""
        members = self._members
        for machine in members:
            if machine.fast_state.coordinator is self:
                self._update(machine)
            else:
                machine.leave_lockstep()
        self._diverged = list(lost_by)
        self._clear()
        self._position = next_state if next_state is not None else object()
        self._last_heard = now
        self._call(_without(list(members), lost_by), message, source, to, now)


def _without(machines: list[FastMachine], lost_by: list[FastMachine]) -> list[FastMachine]:
    lost = set(lost_by)
    return [machine for machine in machines if machine not in lost]
