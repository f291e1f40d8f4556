"""Many machines that hear the same messages: those in step with the sender are moved together, and only the others are told.

A sender's messages form a chain of positions (`Message.token`, `calm`, `after`). A machine that stands exactly where a message
begins has nothing to do but to move its `Seat`; when thousands do, one shared `Pace` moves for all. What is told singly:
machines that missed something until they stand where the others stand, those that lack something whenever repairs come,
those that may speak whenever others speak. The outcome is that of `fan_out`, which the strict engine proves.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from protocols.foresight import Run
    from protocols.machine import Address, Machine, Message

__all__ = ["Crowd", "Late", "Pace", "Seat", "fan_out"]


def fan_out(machines: "Iterable[Machine]", message: "Message", source: "Address", to: "Address", now: float) -> None:
    """Deliver one message to many machines: the tight loop of the simulator."""
    for machine in machines:
        machine.receive(message, source, to, now)


class Pace(Protocol):
    """Who moves a seat."""

    def release(self, machine: "Machine") -> None:
        """The machine will have an input of its own."""


class Seat:
    """What of a machine can be moved from outside: where it stands in the chain of one sender's messages.

    While `pace` is not None, `at`, `heard` and `spare` are out of date; `Machine.alone` brings them up to date.
    """

    __slots__ = ("at", "attentive", "heard", "pace", "spare", "whole")

    def __init__(self, at: Any) -> None:
        self.at = at
        """The position; compared by identity."""
        self.heard = 0.0
        """When the sender was heard."""
        self.spare = 0
        """Messages of no use that were heard in step."""
        self.whole = True
        """Is nothing missing of what was sent?"""
        self.attentive = False
        """Does it matter what other machines say?"""
        self.pace: Pace | None = None

    def waits_for(self) -> Hashable:
        """What the machine, idle but not whole, waits to hear of; None when that is not simple.

        Messages say of which waits they are no news (`Message.is_no_news`).
        """
        return None

    def skip(self, run: Any, number: int) -> None:
        """Note that this inner message of a run (`protocols.foresight`) is missing, at the latest before the next input."""

    @staticmethod
    def heed(machines: "list[Machine]", message: "Message", now: float, pace: Pace) -> "Answers":
        """A calm message moves those of `pace`; what does it do to these, which are not whole or attentive?

        Who has left since, or comes a second time, is passed over. A seat that followed is as after `Machine.receive`, but that
        the crowd counts what is spare.
        """
        del message, now
        return [], [], [machine for machine in dict.fromkeys(machines) if machine.seat.pace is pace]


Answers: TypeAlias = "tuple[list[Machine], list[Machine], list[Machine]]"
"""Who has no more to do than a whole seat, who followed and did what there was to do, and who is to be told singly."""


class Late(Protocol):
    """Who moves a crowd only when somebody looks."""

    def sync(self) -> None:
        """Move it as far as it has come by now."""

    def rouse(self) -> None:
        """Not all may be where the next message begins: it has to be told at its time, then."""

    def unfold(self) -> None:
        """Go on without it."""


class Crowd:
    """The machines of one audience; made anew when the audience changes."""

    __slots__ = (
        "_at",
        "_attentive",
        "_debts",
        "_heard",
        "_lacking",
        "_machines",
        "_next",
        "_owed",
        "_receive_all",
        "_spare",
        "_stale",
        "_strays",
        "late",
    )

    def __init__(self, machines: "list[Machine]") -> None:
        self._machines = machines
        kind = type(machines[0])
        alike = all(type(machine) is kind for machine in machines)
        self._receive_all = machines[0].receive_all if alike else fan_out
        self._at: object = object()
        self._heard = 0.0
        self._spare = 0
        self._strays: list[Machine] = list(machines)
        # In step, but told singly: those that lack something when repairs come (by what they wait for), the attentive when
        # others speak, too.
        # Who has left the crowd since is passed over.
        self._lacking: dict[Hashable, list[Machine]] = {}
        self._attentive: list[Machine] = []
        # May somebody be among the attentive twice?
        self._stale = False
        # In step, but they have missed messages that are noted when they are told something: which, by their numbers; and what
        # these are: a run, which of it, and when the message before was heard. The message `_next` has not come yet.
        self._debts: dict[Machine, list[int]] = {}
        self._owed: dict[int, tuple[Run, int, float]] = {}
        self._next = -1
        self.late: Late | None = None
        """Who moves the crowd later than messages arrive, and makes up for it before anything else happens here."""

    def stands_at(self, position: object) -> bool:
        """Do all stand there, so that a message that begins there only moves them?"""
        return self._at is position and not self._strays

    def leads(self, position: object) -> bool:
        """Do those in step stand there?"""
        return self._at is position

    def move(self, position: object, heard: float, following: int) -> None:
        """Those in step got messages that lead there, and had nothing else to do, but for what they `owe`; which comes next."""
        self._at = position
        self._heard = heard
        self._next = following

    def owe(self, run: "Run", nth: int, number: int, heard: float | None, out: Sequence[int]) -> None:
        """An inner message of a run misses those at the places `out`, who stay in step; `move` has to follow.

        Messages are numbered in the order they come. The one before came at `heard`; None: that to which the others moved last.
        """
        self._owed[number] = run, nth, self._heard if heard is None else heard
        machines, debts = self._machines, self._debts
        for place in out:
            machine = machines[place]
            seat: Seat = machine.seat
            if seat.pace is not self:
                continue
            if machine in debts:
                debts[machine].append(number)
            else:
                debts[machine] = [number]

    def hearing(self, out: Sequence[int]) -> "list[Machine]":
        """Those out of step who hear a message that misses `out`, to be told by `tell_strays`."""
        hearing = self._strays
        if hearing:
            gone = set(self._at_places(out))
            self._strays = [machine for machine in hearing if machine in gone]
            hearing = [machine for machine in hearing if machine not in gone]
        return hearing

    def tell_strays(self, strays: "list[Machine]", message: "Message", source: "Address", to: "Address", now: float) -> None:
        """Deliver to those out of step what has just moved the others."""
        self._tell(strays, message, source, to, now)

    def _at_places(self, places: Sequence[int]) -> "list[Machine]":
        machines = self._machines
        return [machines[place] for place in places]

    def _collect(self, machine: "Machine", numbers: list[int], lags: bool) -> None:
        """The machine notes what it owes. If it `lags`, it has heard nothing since the last it missed, and is out of step."""
        owed = self._owed
        seat: Seat = machine.seat
        end = len(numbers)
        if lags:
            # Not what it has not noticed yet: all at the end of those that came.
            expected = self._next - 1
            while end and numbers[end - 1] == expected:
                end -= 1
                expected -= 1
        known = seat.attentive or not seat.whole
        for number in numbers[:end]:
            run, nth, _ = owed[number]
            seat.skip(run, nth)
        if end < len(numbers):
            run, nth, heard = owed[numbers[end]]
            self._let_go(seat)
            seat.at, seat.heard = run.position(nth), heard
            self._strays.append(machine)
        elif not known:
            self._lack(machine)

    def _collect_before(self, out: Sequence[int]) -> None:
        """The next message has come, but not to those of `out`: all note what they owe."""
        debts, self._debts = self._debts, {}
        gone = set(self._at_places(out))
        for machine, numbers in debts.items():
            self._collect(machine, numbers, machine in gone)
        self._owed.clear()

    def call_in(self) -> None:
        """Something else than the next message happens to all: nobody owes anything."""
        debts, self._debts = self._debts, {}
        for machine, numbers in debts.items():
            self._collect(machine, numbers, True)
        self._owed.clear()

    def _call_in_attentive(self) -> None:
        """Others speak, which matters to the attentive alone: these owe nothing any more."""
        debts = self._debts
        if debts:
            for machine in [machine for machine in debts if machine.seat.attentive]:
                self._collect(machine, debts.pop(machine), True)

    def tell(self, message: "Message", source: "Address", to: "Address", now: float, out: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the places `out`."""
        late = self.late
        if late is None:
            self.deliver(message, source, to, now, out)
        else:
            late.sync()
            if message.is_feedback:
                self._call_in_attentive()
                self._overhear(message, source, to, now, self._at_places(out))
            else:
                self.call_in()
                self.deliver(message, source, to, now, out)
            late.rouse()

    def deliver(self, message: "Message", source: "Address", to: "Address", now: float, out: Sequence[int]) -> None:
        """As `tell`, while nothing is to be made up for and this is the next message to those who owe."""
        if self._debts:
            self._collect_before(out)
        at = self._at
        machines = self._machines
        if message.token is at:
            strays = self._strays
            self._strays = []
            if out:
                deaf = [machines[place] for place in out]
                if strays:
                    strays = _without(strays, deaf)
                self._leave_behind(deaf)
            self._at = message.after
            self._heard = now
            if strays:
                self._tell(strays, message, source, to, now)
        elif message.calm is at:
            self._heed(message, source, to, now, [machines[place] for place in out])
        elif message.is_feedback:
            self._overhear(message, source, to, now, [machines[place] for place in out])
        else:
            self._tell_all(message, source, to, now, [machines[place] for place in out])

    def gather(self) -> None:
        """Who stands where the others stand, after an input that did not come through the crowd, is in step again."""
        strays = self._strays
        if not strays:
            return
        self._strays = [machine for machine in strays if machine.seat.at is not self._at]
        if len(self._strays) < len(strays):
            for machine in strays:
                seat: Seat = machine.seat
                if seat.at is self._at:
                    seat.pace = self
                    seat.spare -= self._spare
                    if seat.attentive:
                        self._attentive.append(machine)
                    elif not seat.whole:
                        self._lack(machine)

    def release(self, machine: "Machine") -> None:
        """The machine will have an input of its own."""
        late = self.late
        if late is not None:
            late.sync()
        numbers = self._debts.pop(machine, None)
        if numbers is not None:
            self._collect(machine, numbers, True)
        if machine.seat.pace is self:
            self._let_go(machine.seat)
            self._strays.append(machine)
        if late is not None:
            late.rouse()

    def dissolve(self) -> None:
        """Every machine stands alone again; the crowd is not used any more."""
        if self.late is not None:
            self.late.unfold()
        self.call_in()
        for machine in self._machines:
            if machine.seat.pace is self:
                self._let_go(machine.seat)
        self._at = object()

    def _let_go(self, seat: Seat) -> None:
        seat.at = self._at
        seat.heard = self._heard
        seat.spare += self._spare
        seat.pace = None
        if seat.attentive:
            self._stale = True

    def _leave_behind(self, deaf: "list[Machine]") -> None:
        """These did not get the message that moves the others."""
        for machine in deaf:
            if machine.seat.pace is self:
                self._let_go(machine.seat)
        self._strays += deaf

    def _heed(self, message: "Message", source: "Address", to: "Address", now: float, deaf: "list[Machine]") -> None:
        """A calm message moves all in step, and concerns some of those that lack something and the attentive."""
        told, self._strays = self._strays, []
        if deaf:
            told = _without(told, deaf)
            self._leave_behind(deaf)
        before, lacking, attentive = (self._at, self._heard, self._spare), self._lacking, self._attentive
        concerned = [waits for waits in lacking if waits is None or not message.is_no_news(waits)]
        groups = [lacking.pop(waits) for waits in concerned]
        self._attentive = []
        self._at, self._heard, self._spare = message.after, now, self._spare + message.spare
        for waits, group in zip(concerned, groups, strict=True):
            left = self._heed_group(group, message, now, before, told)
            if left:
                lacking[waits] = left + lacking[waits] if waits in lacking else left
        if attentive:
            self._attentive = self._heed_group(attentive, message, now, before, told) + self._attentive
        if told:
            self._tell(told, message, source, to, now)

    def _heed_group(
        self, group: "list[Machine]", message: "Message", now: float, before: tuple[Any, float, int], told: "list[Machine]"
    ) -> "list[Machine]":
        """Who of a group has no more to do than a whole seat; who has to be told singly is added to `told`, out of step."""
        answers: Answers = group[0].seat.heed(group, message, now, self)
        left, followed, others = answers
        for machine in others:
            seat: Seat = machine.seat
            seat.at, seat.heard, spare = before
            seat.spare += spare
            seat.pace = None
        told += others
        lacking, attentive = self._lacking, self._attentive
        for machine in followed:
            seat = machine.seat
            if seat.attentive:
                attentive.append(machine)
            elif not seat.whole:
                waits = seat.waits_for()
                known = lacking.get(waits)
                if known is None:
                    lacking[waits] = [machine]
                else:
                    known.append(machine)
        return left

    def _lack(self, machine: "Machine") -> None:
        waits = machine.seat.waits_for()
        group = self._lacking.get(waits)
        if group is None:
            self._lacking[waits] = [machine]
        else:
            group.append(machine)

    def _tell(self, machines: "list[Machine]", message: "Message", source: "Address", to: "Address", now: float) -> None:
        """Tell machines that are out of step; who then stands where the others stand is in step."""
        at, spare, lacking = self._at, self._spare, self._lacking
        strays, attentive = self._strays, self._attentive
        self._receive_all(machines, message, source, to, now)
        for machine in machines:
            seat: Seat = machine.seat
            if seat.at is not at:
                strays.append(machine)
                continue
            seat.pace = self
            seat.spare -= spare
            if seat.attentive:
                attentive.append(machine)
            elif not seat.whole:
                waits = seat.waits_for()
                group = lacking.get(waits)
                if group is None:
                    lacking[waits] = [machine]
                else:
                    group.append(machine)

    def _overhear(self, message: "Message", source: "Address", to: "Address", now: float, deaf: "list[Machine]") -> None:
        """Feedback moves nobody, and the others need not hear it."""
        gone = set(deaf)
        for machine in _without(self._strays, deaf):
            machine.receive(message, source, to, now)
        attentive = self._attentive
        if self._stale:
            attentive, self._stale = list(dict.fromkeys(attentive)), False
        at, heard = self._at, self._heard
        kept: list[Machine] = []
        told: list[Machine] = []
        for machine in attentive:
            seat: Seat = machine.seat
            if seat.pace is not self:
                continue
            if machine in gone:
                kept.append(machine)
            else:
                seat.at, seat.heard = at, heard
                told.append(machine)
        self._receive_all(told, message, source, to, now)
        for machine in told:
            seat = machine.seat
            if seat.attentive:
                kept.append(machine)
            elif not seat.whole:
                self._lack(machine)
        self._attentive = kept

    def _tell_all(self, message: "Message", source: "Address", to: "Address", now: float, deaf: "list[Machine]") -> None:
        machines = self._machines
        for machine in machines:
            if machine.seat.pace is not None:
                machine.alone()
        self._strays = list(deaf)
        self._lacking, self._attentive = {}, []
        self._at = message.after if message.after is not None else object()
        self._heard = now
        self._tell(_without(list(machines), deaf), message, source, to, now)


def _without(machines: "list[Machine]", deaf: "list[Machine]") -> "list[Machine]":
    if not deaf:
        return machines
    gone = set(deaf)
    return [machine for machine in machines if machine not in gone]
