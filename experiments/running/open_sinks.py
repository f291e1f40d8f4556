"""Sinks of objects in progress, by the ids under which events name the objects."""

from typing import Generic, Protocol, TypeAlias, TypeVar

from protocols.machine import Sink

__all__ = ["AbortableSink", "OpenSinks"]


class AbortableSink(Sink, Protocol):
    """A sink that says whether its object was aborted."""

    @property
    def aborted(self) -> bool:
        """Whether the sink was aborted."""


S = TypeVar("S", bound=AbortableSink)
Key: TypeAlias = tuple[int, int]
"""Sender and object id."""


class OpenSinks(Generic[S]):
    """The sinks that an application gave to its receiver.

    A receiver asks for a sink within an input, and the application has the events of that input after it. When a sender has
    restarted, one message ends an object of the earlier instance, which may have no sink yet, and opens one with the same
    id, which it may complete: its sink is added first, and the event that the earlier object is aborted comes after that.
    """

    __slots__ = ("_sinks",)

    def __init__(self) -> None:
        self._sinks: dict[Key, S] = {}

    def add(self, key: Key, sink: S) -> None:
        """Keep the sink of an object that begins."""
        self._sinks[key] = sink

    def take(self, key: Key) -> S | None:
        """Return the sink of an object that was received, and forget it; None if there is none."""
        return self._sinks.pop(key, None)

    def discard(self, key: Key) -> None:
        """Forget the sink of an object that was aborted; one that was not is that of a later object."""
        sink = self._sinks.get(key)
        if sink is not None and sink.aborted:
            del self._sinks[key]
