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

    def shrugs(self, run: Any, number: int, then: float) -> bool:
        """Would who misses a message of a run (`protocols.foresight`) and hears the next `then` only note what is missing?"""
        return False

    def skip(self, run: Any, number: int) -> None:
        """Note that this message of a run is missing."""

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
        "_heard",
        "_lacking",
        "_machines",
        "_missed",
        "_owing",
        "_receive_all",
        "_spare",
        "_stale",
        "_strays",
        "late",
        "touched",
    )

    def __init__(self, machines: "Sequence[Machine]") -> None:
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
        # In step, but they have missed the last message, which is noted when they hear the next. It was this one of a run, and
        # they had heard the sender then.
        self._owing: list[Machine] = []
        self._missed: tuple[Run, int, float] | None = None
        self.late: Late | None = None
        """Who moves the crowd later than messages arrive, and makes up for it before anything else happens here."""
        self.touched: list[Machine] = []
        """While there is one: who had an input of their own and is in step, for whoever moves the crowd to clear."""

    def stands_at(self, position: object) -> bool:
        """Do all stand there, so that a message that begins there only moves them?"""
        return self._at is position and not self._strays

    def move(self, position: object, heard: float) -> None:
        """All got a message that leads there, and whatever was between, and had nothing else to do."""
        if self._owing:
            self._note(())
        self._at = position
        self._heard = heard

    def at(self, places: Sequence[int]) -> "list[Machine]":
        """The machines there."""
        machines = self._machines
        return [machines[place] for place in places]

    def leads(self, position: object) -> bool:
        """Do those in step stand there?"""
        return self._at is position

    def owes(self, places: Sequence[int]) -> bool:
        """Has anybody there missed the last message, which is to be noted with the next?"""
        return bool(self._owing) and not set(self._owing).isdisjoint(self.at(places))

    def miss(self, run: "Run", number: int, now: float, then: float, out: Sequence[int]) -> "list[Machine]":
        """A message that begins where those in step stand moves them, but not those of `out`; the next comes at `then`.

        Who would do nothing then but note what is missing, stays in step and does so when the next has come. Returned are those
        out of step who hear the message: to be told by `tell_strays`.
        """
        if self._owing:
            self._note(out)
        machines, owing = self._machines, self._owing
        hearing, self._strays = self._strays, []
        if hearing and out:
            gone = {machines[place] for place in out}
            self._strays = [machine for machine in hearing if machine in gone]
            hearing = [machine for machine in hearing if machine not in gone]
        for place in out:
            machine = machines[place]
            seat: Seat = machine.seat
            if seat.pace is not self:
                continue
            if seat.shrugs(run, number, then):
                owing.append(machine)
            else:
                self._let_go(seat)
                self._strays.append(machine)
        self._missed = run, number, self._heard
        self._at = run.position(number + 1)
        self._heard = now
        return hearing

    def tell_strays(self, strays: "list[Machine]", message: "Message", source: "Address", to: "Address", now: float) -> None:
        """Deliver to those out of step what has just moved the others."""
        self._tell(strays, message, source, to, now)

    def note(self, run: "Run", number: int, heard: float | None, out: Sequence[int]) -> None:
        """As `miss`, when all are in step and it is known that who misses the message and hears the next only notes so.

        The message before came at `heard`; None: that to which they were moved last. `stand` or `move` have to follow.
        """
        if self._owing:
            self._note(())
        machines = self._machines
        self._owing = [machines[place] for place in out]
        self._missed = run, number, self._heard if heard is None else heard

    def stand(self, position: object, heard: float) -> None:
        """All are there, after a message that somebody missed."""
        self._at = position
        self._heard = heard

    def _note(self, out: Sequence[int]) -> None:
        """The message after the one missed has come to those who owe, but not to those of `out`."""
        owing, self._owing = self._owing, []
        assert self._missed is not None
        run, number, _ = self._missed
        if out:
            machines = self._machines
            gone = {machines[place] for place in out}
            self._stray([machine for machine in owing if machine in gone])
            owing = [machine for machine in owing if machine not in gone]
        for machine in owing:
            seat: Seat = machine.seat
            if seat.whole and not seat.attentive:
                seat.skip(run, number)
                self._lack(machine)
            else:
                seat.skip(run, number)

    def _stray(self, owing: "list[Machine]") -> None:
        """These have not heard the message after the one they missed, and something else happens."""
        assert self._missed is not None
        run, number, heard = self._missed
        at = run.position(number)
        for machine in owing:
            seat: Seat = machine.seat
            self._let_go(seat)
            seat.at, seat.heard = at, heard
        self._strays += owing

    def call_in(self) -> None:
        """Something else than the next message happens to all: nobody owes anything."""
        owing, self._owing = self._owing, []
        if owing:
            self._stray(owing)

    def _call_in_attentive(self) -> None:
        """Others speak, which matters to the attentive alone: these owe nothing any more."""
        attentive = [machine for machine in self._owing if machine.seat.attentive]
        if attentive:
            self._owing = [machine for machine in self._owing if not machine.seat.attentive]
            self._stray(attentive)

    def tell(self, message: "Message", source: "Address", to: "Address", now: float, out: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the places `out`."""
        late = self.late
        if late is None:
            self.deliver(message, source, to, now, out)
        else:
            late.sync()
            if message.is_feedback:
                self._call_in_attentive()
                self._overhear(message, source, to, now, self.at(out))
            else:
                self.call_in()
                self.deliver(message, source, to, now, out)
            late.rouse()

    def deliver(self, message: "Message", source: "Address", to: "Address", now: float, out: Sequence[int]) -> None:
        """As `tell`, while nothing is to be made up for; who owes has heard the message before."""
        if self._owing:
            self._note(out)
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
                    self.touched.append(machine)
                    if seat.attentive:
                        self._attentive.append(machine)
                    elif not seat.whole:
                        self._lack(machine)

    def release(self, machine: "Machine") -> None:
        """The machine will have an input of its own."""
        late = self.late
        if late is not None:
            late.sync()
        if machine in self._owing:
            self._owing.remove(machine)
            self._stray([machine])
        elif machine.seat.pace is self:
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
        if self.late is not None:
            self.touched += followed
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
        if self.late is not None:
            self.touched += machines
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
        if self.late is not None:
            self.touched += attentive
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
