"""Dictionaries of at most one entry that are equal for most machines of a simulation, which share one object."""

from functools import lru_cache
from typing import TypeVar, cast

__all__ = ["shared_map", "with_entry", "without_entry"]

Key = TypeVar("Key")
Item = TypeVar("Item")


def shared_map(*entries: tuple[Key, Item]) -> dict[Key, Item]:
    """Return a dictionary of at most one entry, the same object for equal entries; not to be modified."""
    return cast("dict[Key, Item]", _map_of(*entries))


@lru_cache(maxsize=128)
def _map_of(*entries: tuple[object, object]) -> dict[object, object]:
    return dict(entries)


def with_entry(entries: dict[Key, Item], key: Key, item: Item) -> dict[Key, Item]:
    """Return the dictionary that takes the place of `entries`, with another entry; one of several entries is not shared."""
    if not entries or entries.keys() == {key}:
        return shared_map((key, item))
    if len(entries) == 1:
        entries = dict(entries)
    entries[key] = item
    return entries


def without_entry(entries: dict[Key, Item], key: Key) -> dict[Key, Item]:
    """Return the dictionary that takes the place of `entries`, without one that is there."""
    if len(entries) == 1:
        return shared_map()
    del entries[key]
    return entries if len(entries) > 1 else shared_map(*entries.items())
