"""The contract of the fast wing: machines whose state a host can advance from outside, many at a time.

A host may run these in place of a protocol's plain machines; the results are equal. Only hosts and other `fast` folders import
this. It has three layers, each of which works without the next:

1. A `FastMessage` names the receiver state in which it is a no-op except for advancing to the next state. A `FastMachine` in
   that state replaces one reference and returns.
2. A `LockstepGroup` keeps that state once for all machines that have the same, and delivers to the others (`lockstep`).
3. A sender lists the messages it will send in `Burst`s, which a host carries without a wake-up for each (`lookahead`).
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from mypy_extensions import mypyc_attr, trait

from protocols.fast.index import PartIndex, QuietQueue
from protocols.machine import Address, Machine, Message

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["Applied", "Coordinator", "FastMachine", "FastMessage", "FastState", "Other", "OwnState", "Overheard", "fan_out"]


_NO_SLOTS = ()
# A name, because a type checker takes a literal for all the attributes there are; subclasses have the slots.

Applied: TypeAlias = "tuple[list[list[Any]], list[Any], list[Any], list[Any]]"
"""Machines after a message: by group, those that wait for the same; of all, those that have become attentive; others in
lockstep; those to be called singly."""
Other: TypeAlias = "tuple[int, Machine, bool]"
"""A machine beside those of a group, the index of its member, and whether only feedback has an effect on it."""
Overheard: TypeAlias = "tuple[list[Any], list[Any]]"
"""Machines that are attentive now, and machines that may wait for something else now."""


def fan_out(machines: Iterable[Machine], message: Message, source: Address, to: Address, now: float) -> None:
    """Deliver one message to many machines."""
    for machine in machines:
        machine.receive(message, source, to, now)


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class FastMessage(Message):
    """A message that names the state of a receiver for which it is a no-op. States are compared by identity."""

    __slots__ = _NO_SLOTS
    expects: Any
    """Receiver state for which this message is a no-op except for advancing to `next_state`; None for none."""
    expects_if_complete: Any
    """The same for a receiver that besides lacks nothing of what was sent."""
    next_state: Any
    """The state of a receiver after the message; None where the message does not determine it."""
    redundant: bool
    """Whether a receiver that lacks nothing counts the message as a duplicate."""

    def concerned(self, waiting: Iterable[Any]) -> list[Any]:
        """Return those of the things that incomplete receivers wait for (`FastMachine.list_waiting`) that it may be.

        A receiver that waits for something else only advances, as a complete one. What the message brings (`brings`) is
        considered apart from this.
        """
        return list(waiting)

    def brings(self) -> tuple[Hashable, int] | None:
        """Return what the message brings to a receiver that lacks it: a unit and a bit mask of its parts; None for nothing."""
        return None

    def hides_from(self, positions: Iterable[Any]) -> bool:
        """Return whether it shows no receiver at one of these positions that anything was sent from there on."""
        del positions
        return False

    def keeps_lockstep(self, position: Any) -> bool:
        """Return whether it advances receivers at a position, besides what it does to each (`FastMachine.process_in_lockstep`).

        Asked of messages of which neither `expects` nor `expects_if_complete` is this position.
        """
        del position
        return False

    def rewinds(self) -> bool:
        """Return whether it concerns quiet machines (`FastMachine.list_waiting`), and all others by `rewind`."""
        return False


class Coordinator(Protocol):
    """An object that advances the state of machines on their behalf."""

    def release(self, machine: Any) -> None:
        """Update the machine's own state, because it gets an input of its own."""


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class FastState:
    """The part of a machine's state that can be advanced from outside.

    While `coordinator` is not None, `position`, `last_heard`, `duplicates` and `overheard` are out of date;
    `FastMachine.leave_lockstep` updates them. Subclasses have the attributes as slots.
    """

    __slots__ = _NO_SLOTS
    position: Any
    """The state that messages name; compared by identity."""
    last_heard: float
    """When the last message of the sender arrived, in seconds. Set as that of `Any`: mypyc sets no float of a trait."""
    duplicates: int
    """Content received that was of no use."""
    overheard: int
    """Feedback of others that was received in a group (`FastMachine.counts_overheard`)."""
    is_complete: bool
    """Whether nothing is missing of what was sent."""
    attentive: bool
    """Whether feedback of other machines has an effect."""
    coordinator: Coordinator | None

    def skip(self, numbers: tuple[int, ...], losses: dict[int, Any]) -> bool:
        """Record, at the latest before the next input, that messages of bursts were lost; `losses` are `Burst.loss` by number.

        Return whether it may wait for something else now (`FastMachine.list_waiting`).
        """
        del numbers, losses
        return False


class OwnState(FastState):
    """The state of a machine that is never advanced with others."""

    __slots__ = ("attentive", "coordinator", "duplicates", "is_complete", "last_heard", "overheard", "position")

    def __init__(self) -> None:
        self.position = object()
        self.last_heard = 0.0
        self.duplicates = self.overheard = 0
        self.is_complete = True
        self.attentive = False
        self.coordinator = None


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class FastMachine(Machine):
    """A machine that a host can advance from outside. Subclasses have `fast_state` as a slot."""

    __slots__ = ()
    fast_state: Any
    """The `FastState`."""

    plans_bursts: ClassVar[bool] = False
    """Whether `plan_bursts` may return anything."""
    takes_feedback_only: ClassVar[bool] = False
    """Whether all other messages have no effect on the machine."""

    def leave_lockstep(self) -> None:
        """Become independent of the coordinator; called before every input that does not come through it."""
        coordinator = self.fast_state.coordinator
        if coordinator is not None:
            coordinator.release(self)

    def leave_lockstep_for(self, message: Message) -> None:
        """As `leave_lockstep`, before the machine receives a message that the coordinator does not deliver."""
        del message
        self.leave_lockstep()

    def wake_in_lockstep(self, now: float) -> None:
        """Do what is due without leaving the lockstep group, and move the deadline; leave the group if that is impossible."""
        del now
        self.leave_lockstep()

    def plan_bursts(self) -> "Sequence[Burst]":
        """Return the messages the machine will send from its deadline on if it gets no input; none if that is not simple."""
        return ()

    @staticmethod
    def make_group(machines: list[Any], others: list[Other]) -> Any:
        """Return a `protocols.fast.group.MachineGroup` of machines of this class that receive the same messages.

        `machines` may be used as it is; None in it stands for a member of another class. `others` receive the messages, too.
        None: the machines are called singly.
        """
        del machines, others
        return None

    @staticmethod
    def receive_batch(machines: Iterable[Any], message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to machines of this class, with the effect of `receive` on each."""
        fan_out(machines, message, source, to, now)

    @staticmethod
    def apply_to_incomplete(groups: list[list[Any]], message: FastMessage, now: float, coordinator: Coordinator) -> Applied:
        """Apply a message with `expects_if_complete` to groups of machines that are incomplete.

        The machines are of this class; those that `coordinator` does not advance any more, and repetitions, are skipped. The
        state of a machine that advances is afterwards as after `receive`, except that the coordinator counts the duplicate.
        """
        del message, now
        machines = dict.fromkeys([machine for group in groups for machine in group])
        called = [machine for machine in machines if machine.fast_state.coordinator is coordinator]
        return [[] for _ in groups], [], [], called

    @staticmethod
    def process_in_lockstep(machines: list[Any], message: FastMessage, now: float) -> list[Any]:
        """Process a message that keeps machines of this class in lockstep (`FastMessage.keeps_lockstep`).

        Returns those to be called singly. The position of the others, and when the last message came, are out of date.
        """
        del message, now
        return machines

    @staticmethod
    def list_waiting(
        machines: list[Any], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
    ) -> None:
        """List incomplete machines by what they wait for beside what they lack (`FastMessage.concerned`).

        `waiting[None]`: every message that does more than to advance concerns them. A machine in `quiet` is listed anew at
        the given time; before, and if it is not in `waiting`, only messages concern it that bring what it lacks. `now`
        (seconds) may be some time ago.

        `lacking` is given for machines that joined the group, to list there what they lack (`FastMessage.brings`), all of it
        unless they are in `waiting[None]`. What others lack is listed, and they may still be in `quiet`.
        """
        del now, quiet, lacking
        listed = [each for each in machines if not each.fast_state.is_complete]
        if listed:
            waiting.setdefault(None, []).extend(listed)

    @staticmethod
    def rewind(machines: list[Any], message: FastMessage, now: float, coordinator: Coordinator) -> list[Any]:
        """Note a message that may rewind (`FastMessage.rewinds`); called before it is applied.

        Machines that `coordinator` does not advance any more are skipped. Returns those that may have stopped being quiet.
        """
        del message, now, coordinator
        return machines

    @staticmethod
    def unaware_position(position: Any, of_group: Any) -> Any:
        """Return the position of a machine that was at `position`, and went on to `of_group` by messages that hide from it.

        That is equal to `position` if it is there. None: machines of this class are advanced singly then.
        """
        del position, of_group

    @staticmethod
    def make_overhearers(group: Any) -> Any:
        """Return the `Overhearers` of a lockstep group of machines of this class; None: each is called at each feedback."""
        del group

    @staticmethod
    def counts_overheard(feedback: Message) -> bool:
        """Return whether machines count this feedback of others. Then they do so themselves only while not in lockstep."""
        del feedback
        return False

    @staticmethod
    def overhear_batch(
        machines: list[Any], message: Message, source: Address, to: Address, now: float, position: Any, last_heard: float
    ) -> Overheard:
        """Deliver feedback to machines of this class, all at `position` with `last_heard`.

        Both are up to date afterwards in the state of machines that are not attentive any more.
        """
        attentive: list[Any] = []
        others: list[Any] = []
        for machine in machines:
            state: FastState = machine.fast_state
            timed: Any = state
            state.position, timed.last_heard = position, last_heard
            machine.receive(message, source, to, now)
            (attentive if state.attentive else others).append(machine)
        return attentive, others
