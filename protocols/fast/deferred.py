"""Losses of machines in lockstep, recorded per message and applied to a machine's state at its next input.

Messages of bursts (`protocols.fast.lookahead`) are numbered in the order they arrive. A machine notices a loss only when a
later message arrives, so losses at the very end are not applied yet.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from protocols.fast.index import PartIndex

if TYPE_CHECKING:
    from protocols.fast.contract import Coordinator, FastMachine, FastMessage, FastState
    from protocols.fast.lookahead import Burst

__all__ = ["DeferredLosses", "Missed", "StayingLosers"]

Missed: TypeAlias = "tuple[Burst, int, int, Sequence[tuple[int, Sequence[int]]]]"
"""Messages that some machines lost: their burst, the place of a message in the burst, its number, and how far behind it each of
them is, with the indices of the machines.
"""


class DeferredLosses:
    """The numbers of lost messages by machine, ascending. Machines that lost the same message alone share one tuple."""

    __slots__ = ("_latest", "_messages", "following", "losses", "of")

    def __init__(self) -> None:
        self.of: dict[FastMachine, tuple[int, ...]] = {}
        self.following = -1
        """The number of the next message to arrive."""
        self.losses: dict[int, Any] = {}
        """What `FastState.skip` is to record, by number."""
        # By number: the burst, the place in it, and when a machine that lost the message had received the one before: a time,
        # and what is to be added to it step by step.
        self._messages: dict[int, tuple[Burst, int, float, Sequence[float]]] = {}
        # The last message that any machine lost: its number, and the indices of the machines.
        self._latest: tuple[int, Sequence[int]] = -1, ()

    def add(
        self,
        missed: "Iterable[Missed]",
        machines: "list[FastMachine | None]",
        coordinator: "Coordinator",
        lacking: PartIndex,
        heard: float,
        begin: int,
        sent: Sequence[float],
        base: int,
        steps: Sequence[float],
    ) -> None:
        """Record the losses of those of `machines` that `coordinator` advances, and list them in `lacking` (`Burst.lacked`).

        All received the last message before number `begin` at `heard` seconds. Message n, from `begin` on, arrived when the
        `steps` are added one by one to `sent[n - base]`.
        """
        deferred, messages, losses = self.of, self._messages, self.losses
        for burst, first, start, lost in missed:
            is_listed, shift = burst.is_indexed, start - first
            for place, lost_by in lost:
                nth = first + place
                number = nth + shift
                messages[number] = (burst, nth, heard, ()) if number == begin else (burst, nth, sent[number - 1 - base], steps)
                losses[number] = burst.loss(nth)
                alone = (number,)
                losers: list[FastMachine] = []
                for index in lost_by:
                    machine = machines[index]
                    if machine is None:
                        continue
                    state: FastState = machine.fast_state
                    if state.coordinator is coordinator:
                        deferred[machine] = deferred[machine] + alone if machine in deferred else alone
                        if is_listed:
                            losers.append(machine)
                if losers:
                    lacking.add(*burst.lacked(nth), losers)
                self._latest = number, lost_by

    def latest(self) -> Sequence[int]:
        """Return the indices of the machines that lost the last message."""
        number, lost_by = self._latest
        return lost_by if number == self.following - 1 else ()

    def take_all(self) -> "dict[FastMachine, tuple[int, ...]]":
        """Remove and return all losses, to be applied now."""
        deferred, self.of = self.of, {}
        return deferred

    def forget(self) -> None:
        """Forget the messages if no loss is left."""
        if not self.of:
            self._messages.clear()
            self.losses.clear()

    def burst_of(self, number: int) -> "Burst | None":
        """Return the burst of a message that a machine may have lost."""
        message = self._messages.get(number)
        return None if message is None else message[0]

    def split(self, numbers: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Split a machine's losses into those before a message it received, and those after the last it received."""
        end, last = len(numbers), self.following - 1
        while end and numbers[end - 1] == last:
            end -= 1
            last -= 1
        return numbers[:end], numbers[end:]

    def set_before(self, state: Any, number: int) -> None:
        """Set a machine's state to that before a message after which it received nothing."""
        burst, nth, heard, steps = self._messages[number]
        for step in steps:
            heard += step
        state.position, state.last_heard = burst.position(nth), heard


class StayingLosers:
    """The machines that stay in lockstep though they lost a visible message, while it is applied to the others."""

    __slots__ = ("concerned",)

    def __init__(self) -> None:
        self.concerned: dict[FastMachine, bool] = {}
        """By machine that lost the message, whether the message has an effect on its state; empty if no machine lost it."""

    def begin(self, machines: "Sequence[FastMachine]", message: "FastMessage") -> None:
        """Let machines not be advanced until `end`."""
        self.concerned = dict.fromkeys(machines, message.rewinds())
        for machine in machines:
            state: FastState = machine.fast_state
            state.coordinator = None

    def note(self, machines: "Iterable[FastMachine]") -> None:
        """Note those of some machines that lost the message; it concerns all of these."""
        concerned = self.concerned
        for machine in machines:
            if machine in concerned:
                concerned[machine] = True

    def end(self, coordinator: "Coordinator", message: "FastMessage") -> "list[FastMachine]":
        """Have the machines advanced again; return those that the message concerned: they are not listed any more."""
        concerned, self.concerned, redundant = self.concerned, {}, message.redundant
        for machine in concerned:
            state: FastState = machine.fast_state
            state.coordinator = coordinator
            state.duplicates -= redundant
        return [machine for machine, is_concerned in concerned.items() if is_concerned]
