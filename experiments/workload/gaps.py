"""Gaps of a subscriber, which the protocol has to report: messages missing between two that were delivered to it."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, TypeAlias

__all__ = ["Gaps", "count_told"]

Key: TypeAlias = tuple[int, int]
"""Publisher and number of a message."""
Stream: TypeAlias = tuple[int, int]
"""Publisher, and priority where the order of publishing holds within one priority only."""


class Gaps:
    """The missing messages of one subscriber, in all of its subscriptions.

    Only those between two messages of the same stream that were delivered since its subscriptions are in effect count: of what
    came before the first a subscriber has no record, and what comes after the last may never have reached it.
    """

    def __init__(self) -> None:
        self._missing: dict[int, set[Key]] = {}
        self._runs: dict[int, int] = {}

    def add(self, delivered: Iterable[tuple[Stream, Key]], due: Iterable[tuple[Stream, Key, bool]]) -> None:
        """Add a subscription. `delivered` are the messages that came since it is in effect.

        `due` are all messages that were sent for it since then, in order, and whether each was delivered.
        """
        first: dict[Stream, int] = {}
        last: dict[Stream, int] = {}
        for stream, (_, number) in delivered:
            first[stream] = min(number, first.get(stream, number))
            last[stream] = max(number, last.get(stream, number))
        in_gap: set[Stream] = set()
        for stream, key, came in due:
            if came:
                in_gap.discard(stream)
            elif first.get(stream, inf) < key[1] < last.get(stream, -inf):
                self._enter(key, is_first=stream not in in_gap)
                in_gap.add(stream)

    def _enter(self, key: Key, is_first: bool) -> None:
        """Enter a missing message; `is_first`: the one before it was delivered."""
        missing = self._missing.setdefault(key[0], set())
        if key not in missing:
            missing.add(key)
            self._runs[key[0]] = self._runs.get(key[0], 0) + is_first

    def wanted(self, is_counted: bool) -> dict[int, int]:
        """Return by publisher how many missing messages (`is_counted`), or gaps, have to be reported; only those above 0."""
        found = {publisher: len(keys) for publisher, keys in self._missing.items()} if is_counted else self._runs
        return {publisher: count for publisher, count in found.items() if count}


def count_told(rows: Iterable[Sequence[Any]], since: float) -> dict[int, int]:
    """Return by publisher how many lost messages were reported to a subscriber since `since` (seconds).

    `rows` are those of its result.
    """
    told: dict[int, int] = {}
    for publisher, count, _, _, at in rows:
        if at >= since:
            told[publisher] = told.get(publisher, 0) + count
    return told
