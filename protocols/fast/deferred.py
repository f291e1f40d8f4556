"""What machines that are moved together have missed, until each is told something and notes it.

Messages of runs (`protocols.fast.lookahead`) are numbered in the order they come. Who misses one sees so only from a later one:
what
is missing at the very end of what came is not noticed yet.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from protocols.fast.contract import Coordinator, FastMachine, FastState
    from protocols.fast.lookahead import Burst

__all__ = ["DeferredLosses", "Missed"]

Missed: TypeAlias = "tuple[Burst, int, int, float | None, Sequence[int]]"
"""A message that some do not hear: its run, which of it, its number, when the one before was heard, and their places.

The time is None for the first after what all have heard.
"""


class DeferredLosses:
    """Who owes what: numbers of messages, ascending."""

    __slots__ = ("_messages", "following", "losses", "of")

    def __init__(self) -> None:
        self.of: dict[FastMachine, list[int]] = {}
        self.following = -1
        """The message that has not come yet."""
        self.losses: dict[int, Any] = {}
        """Of each that somebody owes, what `FastState.skip` is to note."""
        # Of each: a run, which of it, and when who missed it had heard the sender before.
        self._messages: dict[int, tuple[Burst, int, float]] = {}

    def add(self, missed: "Iterable[Missed]", machines: "list[FastMachine]", coordinator: "Coordinator", heard: float) -> None:
        """Messages miss some of the machines; who of these moves with `coordinator` owes them. All were heard last at
        `heard`."""
        deferred = self.of
        for run, nth, number, before, out in missed:
            self._messages[number] = run, nth, heard if before is None else before
            self.losses[number] = run.loss(nth)
            for place in out:
                machine = machines[place]
                if machine.fast_state.coordinator is coordinator:
                    known = deferred.get(machine)
                    if known is None:
                        deferred[machine] = [number]
                    else:
                        known.append(number)

    def take_all(self) -> "dict[FastMachine, list[int]]":
        """Who owes what, to be settled now; nobody owes anything from now on, but what is put back."""
        deferred, self.of = self.of, {}
        return deferred

    def forget(self) -> None:
        """What nobody owes any more is of no interest."""
        if not self.of:
            self._messages.clear()
            self.losses.clear()

    def run_of(self, number: int) -> "Burst | None":
        """The run of a message that somebody may owe."""
        message = self._messages.get(number)
        return None if message is None else message[0]

    def split(self, numbers: list[int]) -> tuple[list[int], list[int]]:
        """Of what a machine owes: what it has noticed, and what it has not."""
        end, last = len(numbers), self.following - 1
        while end and numbers[end - 1] == last:
            end -= 1
            last -= 1
        return numbers[:end], numbers[end:]

    def stand_before(self, fast_state: "FastState", number: int) -> None:
        """The seat's owner has heard nothing since it missed this message."""
        run, nth, heard = self._messages[number]
        fast_state.position, fast_state.last_heard = run.position(nth), heard
