"""Sinks of objects in progress, by the ids under which events name the objects."""

from typing import Generic, TypeAlias, TypeVar

__all__ = ["OpenSinks"]

S = TypeVar("S")
Key: TypeAlias = tuple[int, int]
"""Sender and object id."""


class OpenSinks(Generic[S]):
    """The sinks that an application gave to its receiver.

    A receiver asks for a sink within an input, and the application has the events of that input after it. When a sender has
    restarted, one message ends an object of the earlier instance and opens one with the same id: its sink is added first, and
    the event that the earlier object is aborted comes after that.
    """

    __slots__ = ("_replaced", "_sinks")

    def __init__(self) -> None:
        self._sinks: dict[Key, S] = {}
        self._replaced: set[Key] = set()

    def add(self, key: Key, sink: S) -> None:
        """Keep the sink of an object that begins."""
        if key in self._sinks:
            self._replaced.add(key)
        self._sinks[key] = sink

    def take(self, key: Key) -> S | None:
        """Return the sink of an object that was received, and forget it; None if there is none."""
        self._replaced.discard(key)
        return self._sinks.pop(key, None)

    def discard(self, key: Key) -> None:
        """Forget the sink of an object that was aborted."""
        if key in self._replaced:
            self._replaced.remove(key)
        else:
            self._sinks.pop(key, None)
