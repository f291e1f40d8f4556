"""Losses of machines in lockstep, recorded per message and applied to a machine's state at its next input.

Messages of bursts (`protocols.fast.lookahead`) are numbered in the order they arrive. A machine notices a loss only when a
later message arrives, so losses at the very end are not applied yet.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from protocols.fast.contract import Coordinator, FastMachine
    from protocols.fast.lookahead import Burst

__all__ = ["DeferredLosses", "Missed"]

Missed: TypeAlias = "tuple[Burst, int, int, float | None, Sequence[int]]"
"""A message that some machines lost: its burst, its place in the burst, its number, when the message before arrived (seconds),
and the indices of the machines. The time is None for the first after what all have received.
"""


class DeferredLosses:
    """The numbers of lost messages by machine, ascending."""

    __slots__ = ("_latest", "_messages", "following", "losses", "of")

    def __init__(self) -> None:
        self.of: dict[FastMachine, list[int]] = {}
        self.following = -1
        """The number of the next message to arrive."""
        self.losses: dict[int, Any] = {}
        """What `FastState.skip` is to record, by number."""
        # By number: the burst, the place in it, and when a machine that lost the message had received the one before.
        self._messages: dict[int, tuple[Burst, int, float]] = {}
        # The last message that any machine lost: its number, and the indices of the machines.
        self._latest: tuple[int, Sequence[int]] = -1, ()

    def add(
        self, missed: "Iterable[Missed]", machines: "Sequence[FastMachine | None]", coordinator: "Coordinator", heard: float
    ) -> "list[tuple[Hashable, int, list[FastMachine]]]":
        """Record the losses of those of `machines` that `coordinator` advances. All received their last message at `heard`.

        Returns what they lack from now on: unit, parts (`Burst.lacked`), machines.
        """
        deferred, lacked = self.of, []
        for burst, nth, number, before, lost_by in missed:
            self._messages[number] = burst, nth, heard if before is None else before
            self.losses[number] = burst.loss(nth)
            self._latest = number, lost_by
            losers: list[FastMachine] = []
            for index in lost_by:
                machine = machines[index]
                if machine is not None and machine.fast_state.coordinator is coordinator:
                    losers.append(machine)
                    known = deferred.get(machine)
                    if known is None:
                        deferred[machine] = [number]
                    else:
                        known.append(number)
            parts = burst.lacked(nth)
            if parts is not None and losers:
                lacked.append((*parts, losers))
        return lacked

    def latest(self) -> Sequence[int]:
        """Return the indices of the machines that lost the last message."""
        number, lost_by = self._latest
        return lost_by if number == self.following - 1 else ()

    def take_all(self) -> "dict[FastMachine, list[int]]":
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

    def split(self, numbers: list[int]) -> tuple[list[int], list[int]]:
        """Split a machine's losses into those before a message it received, and those after the last it received."""
        end, last = len(numbers), self.following - 1
        while end and numbers[end - 1] == last:
            end -= 1
            last -= 1
        return numbers[:end], numbers[end:]

    def set_before(self, state: Any, number: int) -> None:
        """Set a machine's state to that before a message after which it received nothing."""
        burst, nth, heard = self._messages[number]
        state.position, state.last_heard = burst.position(nth), heard
