"""Many machines that hear the same messages: those in step with the sender are moved together, and only the others are told.

A sender's messages form a chain of positions (`Message.expects`, `expects_if_complete`, `next_state`). A machine that stands
exactly where a message
begins has nothing to do but to move its `FastState`; when thousands do, one shared `Coordinator` moves for all. What is told
singly:
machines that missed something until they stand where the others stand, those that lack something whenever repairs come,
those that may speak whenever others speak. The outcome is that of `fan_out`, which the strict engine proves.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from protocols.fast.contract import Applied, FastMachine, FastMessage, FastState, OwnState, fan_out
from protocols.fast.deferred import DeferredLosses, Missed
from protocols.machine import Address, Machine, Message

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["Late", "LockstepGroup", "has_fast_machines"]


def has_fast_machines(machines: Iterable[Machine]) -> bool:
    """Return whether any of the machines can be advanced by a `LockstepGroup`."""
    return any(isinstance(machine, FastMachine) for machine in machines)


class _PlainMember(FastMachine):
    """A machine without a fast state among others that have one: it receives every message singly."""

    __slots__ = ("_inner", "fast_state")

    def __init__(self, inner: Machine) -> None:
        super().__init__(inner.ports)
        self._inner = inner
        self.fast_state = OwnState()

    def start(self, now: float) -> None:
        """Start the machine."""
        self._inner.start(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Pass the message on."""
        self._inner.receive(message, source, to, now)

    def wake(self, now: float) -> None:
        """Wake the machine."""
        self._inner.wake(now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the machine."""
        return self._inner.counts()


class Late(Protocol):
    """Who moves a crowd only when somebody looks."""

    def sync(self) -> None:
        """Move it as far as it has come by now."""

    def wake_in_lockstep(self) -> None:
        """Not all may be where the next message begins: it has to be told at its time, then."""

    def unfold(self) -> None:
        """Go on without it."""


class LockstepGroup:
    """The machines of one audience; made anew when the audience changes."""

    __slots__ = (
        "_at",
        "_attentive",
        "_deferred",
        "_heard",
        "_lacking",
        "_machines",
        "_receive_all",
        "_spare",
        "_stale",
        "_strays",
        "late",
    )

    def __init__(self, machines: list[Any]) -> None:
        kind = type(machines[0])
        alike = all(type(machine) is kind for machine in machines)
        if not alike:
            machines = [machine if isinstance(machine, FastMachine) else _PlainMember(machine) for machine in machines]
        self._machines: list[FastMachine] = machines
        self._receive_all: Callable[..., None] = machines[0].receive_batch if alike else fan_out
        self._at: object = object()
        self._heard = 0.0
        self._spare = 0
        self._strays: list[FastMachine] = list(self._machines)
        # In step, but told singly: those that lack something when repairs come (by what they wait for), the attentive when
        # others speak, too.
        # Who has left the crowd since is passed over.
        self._lacking: dict[Hashable, list[FastMachine]] = {}
        self._attentive: list[FastMachine] = []
        # May somebody be among the attentive twice?
        self._stale = False
        # What those in step have missed and not noted yet.
        self._deferred = DeferredLosses()
        self.late: Late | None = None
        """Who moves the crowd later than messages arrive, and makes up for it before anything else happens here."""

    def stands_at(self, position: object) -> bool:
        """Do all stand there, so that a message that begins there only moves them?"""
        return self._at is position and not self._strays

    def move(self, position: object, heard: float, following: int) -> None:
        """Those in step got messages that lead there, and had nothing else to do, but for what they `defer`; which comes
        next."""
        self._at = position
        self._heard = heard
        self._deferred.following = following

    def defer(self, missed: Iterable[Missed]) -> None:
        """Inner messages of runs miss some, who stay in step; `move` has to follow. They are numbered as they come."""
        self._deferred.add(missed, self._machines, self, self._heard)

    def pass_on(
        self, run: "Burst", nth: int, number: int, source: Address, to: Address, now: float, out: Sequence[int]
    ) -> None:
        """A message of a run comes: tell it to those out of step, and at its turn to all it concerns; `out` are who miss it.

        Who is in step and misses an inner one owes it.
        """
        before = self._deferred.run_of(number - 1)
        if before is not None and before is not run and not run.reveals_loss_of(before):
            self.call_in()
        if self._at is not run.position(nth) or not run.is_deferrable(nth):
            self.deliver(run.message(nth), source, to, now, out)
        elif run.next_visible(nth) == nth:
            self._take_turn(run, nth, number, source, to, now, out)
        else:
            diverged = self._strays
            self.defer([(run, nth, number, None, out)])
            self.move(run.position(nth + 1), now, number + 1)
            if diverged:
                gone = set(self._at_places(out))
                self._strays = [machine for machine in diverged if machine in gone]
                self._tell([machine for machine in diverged if machine not in gone], run.message(nth), source, to, now)

    def _take_turn(
        self, run: "Burst", nth: int, number: int, source: Address, to: Address, now: float, out: Sequence[int]
    ) -> None:
        """An inner message of a run concerns some. Who is in step and misses it owes it."""
        deferred = self._deferred
        excused: list[FastMachine] = []
        gone: list[FastMachine] = []
        for machine in self._at_places(out):
            fast_state: FastState = machine.fast_state
            (excused if fast_state.coordinator is self else gone).append(machine)
        if deferred.of:
            self._collect(gone, excused)
        message, heard = run.message(nth), self._heard
        for machine in excused:
            # Passed over, until all others have heard it.
            machine.fast_state.coordinator = None
        deferred.following = number + 1
        self._heed(message, source, to, now, gone)
        for machine in excused:
            fast_state = machine.fast_state
            fast_state.coordinator = self
            fast_state.duplicates -= message.redundant
        self._list(excused)
        self.defer([(run, nth, number, heard, out)])

    def _at_places(self, places: Sequence[int]) -> list[FastMachine]:
        machines = self._machines
        return [machines[place] for place in places]

    def _settle(self, machine: FastMachine, numbers: list[int]) -> list[int]:
        """The machine notes what it owes. Returned is what it has not noticed yet."""
        noticed, left = self._deferred.split(numbers)
        if self._note(machine, noticed):
            self._list([machine])
        return left

    def _note(self, machine: FastMachine, numbers: list[int]) -> bool:
        """The machine, which is in step, notes that these are missing; True when it is to be listed for it."""
        fast_state: FastState = machine.fast_state
        known, losses = fast_state.attentive or not fast_state.is_complete, self._deferred.losses
        for number in numbers:
            fast_state.skip(losses[number])
        return not known

    def _stray(self, machine: FastMachine, numbers: list[int]) -> None:
        """The machine has not heard anything since it missed these, and something else happens."""
        self._let_go(machine.fast_state)
        self._deferred.stand_before(machine.fast_state, numbers[0])
        self._strays.append(machine)

    def _collect(self, lost_by: list[FastMachine], excused: list[FastMachine]) -> None:
        """The next message has come, but not to the `lost_by`: the others note what they owe. The `excused` go on owing."""
        deferred, gone, spared = self._deferred, set(lost_by), set(excused)
        noted: list[FastMachine] = []
        for machine, numbers in deferred.take_all().items():
            if machine in spared:
                deferred.of[machine] = numbers
            elif machine not in gone:
                if self._note(machine, numbers):
                    noted.append(machine)
            elif left := self._settle(machine, numbers):
                self._stray(machine, left)
        self._list(noted)
        deferred.forget()

    def call_in(self) -> None:
        """Something else than the next message happens to all: nobody owes anything."""
        deferred = self._deferred
        if deferred.of:
            for machine, numbers in deferred.take_all().items():
                left = self._settle(machine, numbers)
                if left:
                    self._stray(machine, left)
            deferred.forget()

    def tell(self, message: Message, source: Address, to: Address, now: float, out: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the places `out`."""
        late = self.late
        if late is None:
            self.deliver(message, source, to, now, out)
        else:
            late.sync()
            if not message.is_feedback:
                self.call_in()
                self.deliver(message, source, to, now, out)
                late.wake_in_lockstep()
            elif self._attentive or self._strays:
                # Who is in step stays so.
                moved = bool(self._strays)
                self._overhear(message, source, to, now, self._at_places(out))
                if moved:
                    late.wake_in_lockstep()

    def deliver(self, message: Message, source: Address, to: Address, now: float, out: Sequence[int]) -> None:
        """As `tell`, while nothing is to be made up for and this is the next message to those who owe."""
        lost_by = self._at_places(out)
        if self._deferred.of:
            self._collect(lost_by, [])
        at = self._at
        if not isinstance(message, FastMessage):
            if message.is_feedback:
                self._overhear(message, source, to, now, lost_by)
            else:
                self._tell_all(message, None, source, to, now, lost_by)
        elif message.expects is at:
            diverged = self._strays
            self._strays = []
            if lost_by:
                diverged = _without(diverged, lost_by)
                self._leave_behind(lost_by)
            self._at = message.next_state
            self._heard = now
            if diverged:
                self._tell(diverged, message, source, to, now)
        elif message.expects_if_complete is at:
            self._heed(message, source, to, now, lost_by)
        else:
            self._tell_all(message, message.next_state, source, to, now, lost_by)

    def gather(self) -> None:
        """Who stands where the others stand, after an input that did not come through the crowd, is in step again."""
        diverged = self._strays
        if diverged:
            self._strays = []
            self._divide(diverged)

    def release(self, machine: FastMachine) -> None:
        """The machine will have an input of its own."""
        late = self.late
        if late is not None:
            late.sync()
        numbers = self._deferred.of.pop(machine, None)
        left = None if numbers is None else self._settle(machine, numbers)
        if left:
            self._stray(machine, left)
        elif machine.fast_state.coordinator is self:
            self._let_go(machine.fast_state)
            self._strays.append(machine)
        if late is not None:
            late.wake_in_lockstep()

    def heard(self, machine: FastMachine) -> float | None:
        """When the sender was heard by a machine in step; None when it has missed the last of what came."""
        if self.late is not None:
            self.late.sync()
        numbers = self._deferred.of.get(machine)
        return None if numbers is not None and self._deferred.split(numbers)[1] else self._heard

    def dissolve(self) -> None:
        """Every machine stands alone again; the crowd is not used any more."""
        if self.late is not None:
            self.late.unfold()
        self.call_in()
        for machine in self._machines:
            if machine.fast_state.coordinator is self:
                self._let_go(machine.fast_state)
        self._at = object()

    def _let_go(self, fast_state: FastState) -> None:
        fast_state.position = self._at
        fast_state.last_heard = self._heard
        fast_state.duplicates += self._spare
        fast_state.coordinator = None
        if fast_state.attentive:
            self._stale = True

    def _leave_behind(self, lost_by: list[FastMachine]) -> None:
        """These did not get the message that moves the others."""
        for machine in lost_by:
            if machine.fast_state.coordinator is self:
                self._let_go(machine.fast_state)
        self._strays += lost_by

    def _heed(self, message: FastMessage, source: Address, to: Address, now: float, lost_by: list[FastMachine]) -> None:
        """A calm message moves all in step, and concerns some of those that lack something and the attentive."""
        told, self._strays = self._strays, []
        if lost_by:
            told = _without(told, lost_by)
            self._leave_behind(lost_by)
        before, lacking, attentive = (self._at, self._heard, self._spare), self._lacking, self._attentive
        concerned = [waits for waits in lacking if waits is None or not message.is_irrelevant_to(waits)]
        groups = [lacking.pop(waits) for waits in concerned]
        self._attentive = []
        self._at, self._heard, self._spare = message.next_state, now, self._spare + message.redundant
        for at, waits in enumerate(concerned):
            left = self._heed_group(groups[at], message, now, before, told)
            if left:
                lacking[waits] = left + lacking[waits] if waits in lacking else left
        if attentive:
            self._attentive += self._heed_group(attentive, message, now, before, told)
        if told:
            self._tell(told, message, source, to, now)

    def _heed_group(
        self,
        group: list[FastMachine],
        message: FastMessage,
        now: float,
        before: tuple[Any, float, int],
        told: list[FastMachine],
    ) -> list[FastMachine]:
        """Who of a group has no more to do than a whole seat; who has to be told singly is added to `told`, out of step."""
        answers: Applied = group[0].apply_to_incomplete(group, message, now, self)
        left, attentive, followed, others = answers
        for machine in others:
            fast_state: FastState = machine.fast_state
            fast_state.position, fast_state.last_heard, redundant = before
            fast_state.duplicates += redundant
            fast_state.coordinator = None
        told += others
        self._attentive += attentive
        self._list(followed)
        return left

    def _list(self, machines: list[FastMachine]) -> None:
        """These are in step: note which of them are to be told singly of what."""
        lacking, attentive = self._lacking, self._attentive
        for machine in machines:
            fast_state: FastState = machine.fast_state
            if fast_state.attentive:
                attentive.append(machine)
            elif not fast_state.is_complete:
                waits = fast_state.waiting_for()
                group = lacking.get(waits)
                if group is None:
                    lacking[waits] = [machine]
                else:
                    group.append(machine)

    def _tell(self, machines: list[FastMachine], message: Message, source: Address, to: Address, now: float) -> None:
        """Tell machines that are out of step."""
        self._receive_all(machines, message, source, to, now)
        self._divide(machines)

    def _divide(self, machines: list[FastMachine]) -> None:
        """Of these, who stands where the others stand is in step; the others are strays."""
        at, redundant, diverged = self._at, self._spare, self._strays
        in_step: list[FastMachine] = []
        for machine in machines:
            fast_state: FastState = machine.fast_state
            if fast_state.position is at:
                fast_state.coordinator = self
                fast_state.duplicates -= redundant
                in_step.append(machine)
            else:
                diverged.append(machine)
        self._list(in_step)

    def _overhear(self, message: Message, source: Address, to: Address, now: float, lost_by: list[FastMachine]) -> None:
        """Feedback moves nobody, and the others need not hear it."""
        gone = set(lost_by)
        for machine in _without(self._strays, lost_by):
            machine.receive(message, source, to, now)
        attentive = self._attentive
        if self._stale:
            attentive, self._stale = list(dict.fromkeys(attentive)), False
        deferred = self._deferred.of
        told: list[FastMachine] = []
        self._attentive = []
        for machine in attentive:
            if machine.fast_state.coordinator is not self:
                continue
            if machine in gone:
                self._attentive.append(machine)
            elif machine in deferred and self._looks_back(machine):
                machine.receive(message, source, to, now)
                self._list([machine])
            else:
                told.append(machine)
        if told:
            attentive, others = told[0].overhear_batch(told, message, source, to, now, self._at, self._heard)
            self._attentive += attentive
            self._list(others)

    def _looks_back(self, machine: FastMachine) -> bool:
        """One that owes hears feedback: it notes what it has noticed. True when it stands before the rest."""
        deferred = self._deferred
        left = self._settle(machine, deferred.of.pop(machine))
        if left:
            deferred.of[machine] = left
            deferred.stand_before(machine.fast_state, left[0])
        return bool(left)

    def _tell_all(
        self, message: Message, next_state: Any, source: Address, to: Address, now: float, lost_by: list[FastMachine]
    ) -> None:
        machines = self._machines
        for machine in machines:
            if machine.fast_state.coordinator is self:
                self._let_go(machine.fast_state)
            else:
                machine.leave_lockstep()
        self._strays = list(lost_by)
        self._lacking, self._attentive = {}, []
        self._at = next_state if next_state is not None else object()
        self._heard = now
        self._tell(_without(list(machines), lost_by), message, source, to, now)


def _without(machines: list[FastMachine], lost_by: list[FastMachine]) -> list[FastMachine]:
    if not lost_by:
        return machines
    gone = set(lost_by)
    return [machine for machine in machines if machine not in gone]
