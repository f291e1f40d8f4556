"""A topic: its subscriptions, by selector, and who gets a copy of a message.

Other kinds of destinations, such as queues or the stored messages of durable subscribers, would stand beside it, with the same
methods.
"""

from collections.abc import Iterator

from protocols.broker.messages import Content
from protocols.broker.selection import Selection, selection
from protocols.connection import Connection

__all__ = ["Topic"]


class Topic:
    """The subscriptions to one topic. Equal selectors are evaluated once for a message."""

    __slots__ = ("_by_selector",)

    def __init__(self) -> None:
        self._by_selector: dict[str, tuple[Selection | None, dict[tuple[Connection, str], None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_selector)

    def add(self, connection: Connection, subscription: str, selector: str) -> None:
        """Add a subscription of a client. ConfigError for a selector that is none."""
        chosen = self._by_selector.get(selector)
        if chosen is None:
            chosen = self._by_selector[selector] = (selection(selector), {})
        chosen[1][connection, subscription] = None

    def remove(self, connection: Connection, subscription: str, selector: str) -> None:
        """Remove a subscription that was added."""
        subscriptions = self._by_selector[selector][1]
        del subscriptions[connection, subscription]
        if not subscriptions:
            del self._by_selector[selector]

    def selection(self, selector: str) -> Selection | None:
        """Return the selection of a selector with which there is a subscription; None for the empty one."""
        return self._by_selector[selector][0]

    def chosen_by(self, content: Content) -> Iterator[tuple[Connection, str]]:
        """Yield the subscriptions that select a message."""
        for chosen, subscriptions in self._by_selector.values():
            if chosen is None or chosen.selects(content):
                yield from subscriptions
