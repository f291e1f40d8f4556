"""Which machines of a lockstep group a message concerns, found by what they lack and by time instead of by asking all.

Entries may be out of date or repeated: whoever takes machines from here asks each of them again.
"""

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, TypeAlias

__all__ = ["PartIndex", "QuietQueue"]

Machines: TypeAlias = list[Any]
"""Of `FastMachine`s."""

MOST_RUNS = 8
LONGEST_RUN = 2048
"""Entries that are sorted at once: to sort takes 40 bytes for each of them meanwhile."""


class PartIndex:
    """Machines by unit (e.g. a block) and part of it (e.g. a symbol)."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[Any, dict[int, Machines]] = {}

    def add(self, unit: Hashable, parts: int, machines: Machines) -> None:
        """Add machines under each part of a unit; `parts` is a bit mask."""
        row = self.rows.get(unit)
        if row is None:
            row = self.rows[unit] = {}
        while parts:
            part = (parts & -parts).bit_length() - 1
            if part in row:
                row[part] += machines
            else:
                row[part] = machines[:]
            parts &= parts - 1

    def add_one(self, unit: Hashable, part: int, machine: Any) -> None:
        """Add a machine under one part of a unit."""
        row = self.rows.get(unit)
        if row is None:
            row = self.rows[unit] = {}
        if part in row:
            row[part].append(machine)
        else:
            row[part] = [machine]

    def take(self, unit: Hashable, parts: int) -> Machines:
        """Remove and return the machines under these parts of a unit, a bit mask; 0: all of the unit."""
        row = self.rows.get(unit)
        if row is None:
            return []
        if not parts:
            del self.rows[unit]
            return list(dict.fromkeys([machine for machines in row.values() for machine in machines]))
        taken: Machines = []
        if not parts & parts - 1:
            taken = row.pop(parts.bit_length() - 1, taken)
        elif parts.bit_count() > len(row):
            # Of a long range of parts, hardly any has machines.
            for part in sorted([part for part in row if parts >> part & 1]):
                taken += row.pop(part)
        else:
            while parts:
                low = parts & -parts
                parts ^= low
                taken += row.pop(low.bit_length() - 1, ())
        if not row:
            del self.rows[unit]
        return taken

    def take_all(self) -> Machines:
        """Remove and return all machines."""
        taken = [machine for row in self.rows.values() for machines in row.values() for machine in machines]
        self.rows.clear()
        return taken

    def keep(self, is_kept: Callable[[Any], bool]) -> None:
        """Remove all other machines, and repetitions."""
        rows = self.rows
        for unit in list(rows):
            row = {part: [each for each in dict.fromkeys(machines) if is_kept(each)] for part, machines in rows[unit].items()}
            rows[unit] = {part: machines for part, machines in row.items() if machines}
            if not rows[unit]:
                del rows[unit]

    def clear(self) -> None:
        """Remove all machines."""
        self.rows.clear()


class QuietQueue:
    """Machines by the time at which they stop being quiet (`FastMachine.list_waiting`), at 16 bytes for each.

    New entries wait unsorted until the first of them is due, and are sorted together then.
    """

    __slots__ = ("_ends", "_first", "_machines", "_runs", "next_due")

    def __init__(self) -> None:
        self.next_due = inf
        """The first of the times (seconds); inf if there is no machine."""
        self._ends: list[float] = []
        self._machines: Machines = []
        self._first = inf
        # Sorted entries, the last of which is due first.
        self._runs: list[tuple[list[float], Machines]] = []

    def push(self, machine: Any, end: float) -> None:
        """Add a machine that is quiet until `end` (seconds)."""
        self._ends.append(end)
        self._machines.append(machine)
        if end < self._first:
            self._first = end
            self.next_due = min(self.next_due, end)

    def due(self, now: float) -> Machines:
        """Remove and return the machines whose time has come."""
        if self._first <= now:
            self._sort()
        due: Machines = []
        for ends, machines in self._runs:
            while ends and ends[-1] <= now:
                ends.pop()
                due.append(machines.pop())
        if due:
            self._runs = [run for run in self._runs if run[0]]
        self.next_due = min([self._first, *[ends[-1] for ends, _ in self._runs]])
        return due

    def _sort(self) -> None:
        """Make runs of the unsorted entries; all runs become new ones when there are many."""
        if len(self._runs) >= MOST_RUNS + 2 * sum([len(ends) for ends, _ in self._runs]) // LONGEST_RUN:
            for ends, machines in self._runs:
                self._ends += ends
                self._machines += machines
            self._runs.clear()
        ends, machines = self._ends, self._machines
        self._ends, self._machines, self._first = [], [], inf
        for first in range(0, len(ends), LONGEST_RUN):
            order = sorted(range(first, min(first + LONGEST_RUN, len(ends))), key=ends.__getitem__, reverse=True)
            self._runs.append(([ends[at] for at in order], [machines[at] for at in order]))

    def machines(self) -> list[Machines]:
        """Return all machines, in lists that must not be changed."""
        return [machines for machines in (*[machines for _, machines in self._runs], self._machines) if machines]

    def clear(self) -> None:
        """Remove all machines."""
        self._ends, self._machines, self._first, self.next_due = [], [], inf, inf
        self._runs.clear()
