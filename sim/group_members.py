"""The machines of one graph node that listen to one group."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Protocol

from protocols.machine import Machine

__all__ = ["GroupMembers", "Lockstep"]


class Lockstep(Protocol):
    """A lockstep group that an accelerator has made of the machines (`sim.acceleration`)."""

    def dissolve(self) -> None:
        """Bring every machine up to date; the group is not used any more."""


class GroupMembers:
    """The listening machines of one node, indexed by member while all members listen.

    Otherwise `machines` is packed, and `members` holds the member number of each entry.
    """

    __slots__ = ("_slots", "lockstep", "machines", "members", "present")

    def __init__(self, count: int) -> None:
        self._slots: list[Machine | None] = [None] * count
        self.present = 0
        """How many members listen."""
        self.machines: list[Machine] | None = None
        self.members: list[int] | None = None
        self.lockstep: Lockstep | None = None

    def put(self, member: int, machine: Machine | None) -> None:
        """Set the machine of a member, or None when it stops listening.

        Safe while a message is being delivered: an input changes only the entry of its machine, and packed lists are made anew.
        """
        self.dissolve()
        self.present += (machine is not None) - (self._slots[member] is not None)
        self._slots[member] = machine
        self.machines = self.members = None

    def dissolve(self) -> None:
        """End the lockstep group; another one is made when it is wanted."""
        if self.lockstep is not None:
            self.lockstep.dissolve()
            self.lockstep = None

    def listens(self, member: int) -> bool:
        """Return whether the member listens."""
        return self._slots[member] is not None

    def pack(self) -> list[Machine]:
        """Compute `machines` and `members` after a change; returns `machines`."""
        if self.present == len(self._slots):
            self.machines, self.members = self._slots, None  # type: ignore[assignment]
        else:
            self.members = [member for member, machine in enumerate(self._slots) if machine is not None]
            self.machines = [machine for machine in self._slots if machine is not None]
        assert self.machines is not None
        return self.machines

    def positions(self, lost_by: Sequence[int]) -> Sequence[int]:
        """Translate ascending member numbers into indices of `machines`, leaving out members that do not listen."""
        members = self.members
        if members is None:
            return lost_by
        found = ((bisect_left(members, member), member) for member in lost_by)
        return [at for at, member in found if at < len(members) and members[at] == member]
