"""The loss map of a run: which host lost which packets, over time and in the order of sending."""

from collections.abc import Iterable, Sequence
from typing import Any

from experiments.report.run_report_folder import RunFolder

__all__ = ["COLUMNS", "LossMap"]

COLUMNS = 240
"""Largest number of columns of the map."""
_NAMED = 4


class _Grid:
    """Losses of each row by column, with the names of the first lost packets of a cell, and what was sent by column."""

    def __init__(self, extent: float, columns: int) -> None:
        self.extent = extent
        self.columns = max(columns, 1)
        self.sent = [0] * self.columns
        self.cells: dict[tuple[int, int], list[Any]] = {}

    def column(self, at: float) -> int:
        return min(int(at / self.extent * self.columns), self.columns - 1) if self.extent > 0 else 0

    def add(self, row: int, at: float, label: str, count: int) -> None:
        cell = self.cells.setdefault((row, self.column(at)), [0])
        cell[0] += count
        if len(cell) <= _NAMED and label not in cell[1:]:
            cell.append(label)

    def plain(self, rows: int) -> dict[str, Any]:
        """Return plain values: of each row the cells as [column, losses, first packets]."""
        found: list[list[list[Any]]] = [[] for _ in range(rows)]
        for (row, column), (count, *labels) in sorted(self.cells.items(), key=lambda item: item[0]):
            found[row].append([column, count, ", ".join(labels)])
        return {"extent": self.extent, "columns": self.columns, "sent": self.sent, "rows": found}

    def cut(self, end: float) -> None:
        """Leave out the columns from `end` on."""
        kept = self.column(end) + 1
        self.extent, self.columns, self.sent = self.extent * kept / self.columns, kept, self.sent[:kept]


class LossMap:
    """Losses of multicast packets: a row for each of the `shown` receivers, and one for all other `known` ones together."""

    def __init__(self, folder: RunFolder, known: Sequence[str], shown: Sequence[str]) -> None:
        members = frozenset[str]().union(*folder.groups.values())
        there = frozenset(known)
        self.rows = [name for name in shown if name in members and name in there]
        self.others = [name for name in known if name in members and name not in shown]
        self._places = {name: place for place, name in enumerate(self.rows)} | dict.fromkeys(self.others, len(self.rows))
        self._groups = folder.groups
        total = max(int(folder.result.metrics["packets"]["total"] or 0), 1)
        self.by_time = _Grid(folder.duration, COLUMNS)
        self.by_order = _Grid(float(total), min(total, COLUMNS))
        self.total = [0] * (len(self.rows) + 1)
        self._orders: dict[int, int] = {}

    def sent(self, number: int, time: float, to: str) -> None:
        """Count a packet; those to a group are the ones that receivers can lose."""
        if to in self._groups:
            order = self._orders[number] = len(self._orders)
            for grid, at in ((self.by_time, time), (self.by_order, order)):
                grid.sent[grid.column(at)] += 1

    def lost(self, number: int, time: float, hosts: Iterable[str], label: str) -> None:
        """Record that hosts did not receive a packet."""
        order = self._orders.get(number)
        if order is None:
            return
        missed: dict[int, int] = {}
        for host in hosts:
            if host in self._places:
                missed[self._places[host]] = missed.get(self._places[host], 0) + 1
        for row, count in missed.items():
            self.total[row] += count
            self.by_time.add(row, time, label, count)
            self.by_order.add(row, order, label, count)

    def plain(self) -> dict[str, Any]:
        """Return plain values for the page."""
        # How many packets go to groups is known only at the end.
        self.by_order.cut(max(len(self._orders) - 1, 0))
        rows = [*self.rows, f"{len(self.others):,} others"] if self.others else self.rows
        count = len(rows)
        sizes = [1] * len(self.rows) + [len(self.others)] * bool(self.others)
        return {
            "names": rows,
            "sizes": sizes,
            "lost": self.total[:count],
            "sent": len(self._orders),
            "time": self.by_time.plain(count),
            "order": self.by_order.plain(count),
        }
