"""Tables of the messages of a run: publishers, and subscriptions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.output.budget import Column, Table
from experiments.output.condensed import condensed

__all__ = ["MESSAGE_COLUMNS", "message_tables"]

_PUBLISHER = {
    "name": Column("publisher", rank=0),
    "to": Column("to", rank=4),
    "published": Column("published", rank=1),
    "accepted": Column("accepted", rank=2),
    "expired": Column("expired", rank=5),
    "dropped": Column("dropped", rank=3),
    "rate": Column("rate", "1/s", rank=2, form=".1f"),
    "blocked": Column("blocked", "s", rank=3, form=".3f"),
    "bytes": Column("bytes", rank=6),
}
_SUBSCRIPTION = {
    "name": Column("subscription", rank=0),
    "to": Column("to", rank=9),
    "due": Column("due", rank=3),
    "promised": Column("promised", rank=2),
    "delivered": Column("delivered", rank=1),
    "lost": Column("lost", rank=1),
    "missing": Column("missing", rank=2),
    "repeated": Column("repeated", rank=6),
    "expired": Column("expired", rank=7),
    "in_order": Column("in order", rank=5),
    "interruptions": Column("interruptions", rank=8),
    "latency_p50": Column("p50", "ms", rank=4, form=".3f"),
    "latency_p99": Column("p99", "ms", rank=4, form=".3f"),
    "goodput_mbit_s": Column("goodput", "Mbit/s", rank=3, form=".3f"),
}
MESSAGE_COLUMNS = tuple(dict.fromkeys(column.name for column in (*_PUBLISHER.values(), *_SUBSCRIPTION.values())))
"""Names of the columns."""


def message_tables(tables: Mapping[str, Sequence[Mapping[str, Any]]] | None) -> Iterator[Table]:
    """Yield the tables of a result's messages; of many rows the worst."""
    if tables is None:
        return
    publishers = [[row[key] for key in _PUBLISHER] for row in tables["publishers"]]
    yield from condensed(Table(list(_PUBLISHER.values()), publishers), lambda row: row[5], "publishers")
    subscriptions = [[_cell(row, key) for key in _SUBSCRIPTION] for row in tables["subscriptions"]]
    yield from condensed(Table(list(_SUBSCRIPTION.values()), subscriptions), lambda row: (row[6], row[5]), "subscriptions")


def _cell(row: Mapping[str, Any], key: str) -> Any:
    value = row[key]
    return value * 1000 if key.startswith("latency") and value is not None else value
