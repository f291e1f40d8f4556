"""What of a machine can be moved from outside, and what a protocol that can be moved so answers for many machines at once."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from protocols.machine import Address, Machine, Message

__all__ = ["Answers", "Overheard", "Coordinator", "FastState"]

Answers: TypeAlias = "tuple[list[Machine], list[Machine], list[Machine], list[Machine]]"
"""Who has no more to do than a whole seat; who followed, the attentive and the others; who is to be told singly."""
Overheard: TypeAlias = "tuple[list[Machine], list[Machine]]"
"""Who is attentive now, and who is not."""


class Coordinator(Protocol):
    """Who moves a seat."""

    def release(self, machine: "Machine") -> None:
        """The machine will have an input of its own."""


class FastState:
    """What of a machine can be moved from outside: where it stands in the chain of one sender's messages.

    While `coordinator` is not None, `at`, `heard` and `redundant` are out of date; `Machine.leave_lockstep` brings them up to
    date.
    """

    __slots__ = ("at", "attentive", "coordinator", "heard", "redundant", "whole")

    def __init__(self, at: Any) -> None:
        self.at = at
        """The position; compared by identity."""
        self.heard = 0.0
        """When the sender was heard."""
        self.redundant = 0
        """Messages of no use that were heard in step."""
        self.whole = True
        """Is nothing missing of what was sent?"""
        self.attentive = False
        """Does it matter what other machines say?"""
        self.coordinator: Coordinator | None = None

    def waiting_for(self) -> Hashable:
        """What the machine, idle but not whole, waits to hear of; None when that is not simple.

        Messages say of which waits they are no news (`Message.is_irrelevant_to`).
        """
        return None

    def skip(self, loss: Any) -> None:
        """Note, at the latest before the next input, that an inner message of a run did not come (`foresight.Burst.loss`)."""

    @staticmethod
    def apply_to_incomplete(machines: "list[Machine]", message: "Message", now: float, coordinator: Coordinator) -> "Answers":
        """A calm message moves those of `coordinator`; what does it do to these, which are not whole or attentive?

        Who has left since, or comes a second time, is passed over. A seat that followed is as after `Machine.receive`, but that
        the crowd counts what is spare.
        """
        del message, now
        return [], [], [], [machine for machine in dict.fromkeys(machines) if machine.fast_state.coordinator is coordinator]

    @staticmethod
    def overhear_batch(
        machines: "list[Machine]", message: "Message", source: "Address", to: "Address", now: float, at: Any, heard: float
    ) -> "Overheard":
        """Feedback comes to these, which are in step at `at` and heard the sender at `heard`.

        The `at` and `heard` of who is attentive no more are up to date.
        """
        answers: Overheard = [], []
        attentive, others = answers
        for machine in machines:
            fast_state = machine.fast_state
            fast_state.at, fast_state.heard = at, heard
            machine.receive(message, source, to, now)
            (attentive if fast_state.attentive else others).append(machine)
        return answers
