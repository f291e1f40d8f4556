"""Tables of the receivers of a run: one row each, or the worst of many."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from experiments.output.budget import Column, Table
from experiments.output.condensed import ALIKE, condensed
from experiments.output.node_errors import last_call
from experiments.running.result import Row

__all__ = ["RECEIVER_COLUMNS", "receiver_tables"]

_COLUMNS = (
    Column("receiver", rank=0),
    Column("complete", rank=1),
    Column("completed at", "s", rank=2, form=".3f"),
    Column("loss", "%", rank=4, form=".2f"),
    Column("NACKs", rank=5),
    Column("suppressed", rank=6),
    Column("objects", rank=7),
    Column("bytes", rank=8),
    Column("fault", rank=3),
)
RECEIVER_COLUMNS = tuple(column.name for column in (*_COLUMNS, ALIKE))


def receiver_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the tables that show these receivers; the worst are those that lack content, then those complete last."""
    return condensed(Table(_COLUMNS, list(map(_cells, rows))), _badness, "receivers")


def _cells(row: Row) -> list[Any]:
    return [
        row.name,
        row.equal,
        row.completed_at,
        None if row.loss is None else row.loss * 100,
        row.nacks_sent,
        row.nacks_suppressed,
        row.objects,
        row.bytes,
        None if row.fault is None else last_call(row.fault),
    ]


def _badness(cells: Sequence[Any]) -> tuple[Any, ...]:
    _, complete, completed_at, loss, nacks, *_ = cells
    return not complete, cells[-1] is not None, inf if completed_at is None else completed_at, loss or 0, nacks or 0
