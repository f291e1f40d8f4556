"""Subscriptions to topics, with selectors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from protocols.errors import UnsupportedError
from protocols.events import Event
from protocols.jms.message import JmsMessage, fields_of, topic_of
from protocols.messaging import MessageExpired, MessageReceived, Publication, Subscription, Value
from protocols.subscriptions import SubscriptionTable

if TYPE_CHECKING:
    from protocols.selector import Selector

__all__ = ["JmsSubscriptions", "check_subscription", "matches", "selector_of"]


def selector_of(text: str) -> "Selector | None":
    """Return a selector that is ready for use, None for the empty one. SelectorError for a text that is none."""
    if not text.strip():
        return None
    try:
        from protocols.selector import selector
    except ImportError as error:
        raise UnsupportedError("selectors need the package lark: pip install 'mcastlab[messaging]'") from error
    return selector(text)


def check_subscription(subscription: Subscription) -> None:
    """Raise UsageError for a destination that is no topic, and SelectorError for a selector that does not parse."""
    topic_of(subscription.destination, "to")
    selector_of(subscription.selector)


def matches(subscription: Subscription, destination: str, fields: Mapping[str, Value]) -> bool:
    """Return whether a message with these header fields and properties is for a subscription."""
    if subscription.destination != destination:
        return False
    chosen = selector_of(subscription.selector)
    return chosen is None or chosen.selects(fields)


class JmsSubscriptions(SubscriptionTable):
    """Subscriptions to topics by number and by destination, with selectors."""

    __slots__ = ("_selectors",)

    def __init__(self, *subscriptions: Subscription) -> None:
        # By number: a selector, and whether it names header fields.
        self._selectors: dict[int, tuple[Selector, bool]] = {}
        super().__init__(*subscriptions)

    def check(self, subscription: Subscription) -> None:
        """Raise UsageError for a destination that is no topic, and SelectorError for a selector that does not parse."""
        check_subscription(subscription)

    def _enter(self, subscription: Subscription) -> None:
        super()._enter(subscription)
        chosen = selector_of(subscription.selector)
        if chosen is not None:
            self._selectors[subscription.number] = chosen, "JMS" in subscription.selector

    def _remove(self, subscription: Subscription) -> None:
        super()._remove(subscription)
        self._selectors.pop(subscription.number, None)

    def delivery(self, message: Publication, time: float) -> list[Event]:
        """Return the event of each subscription that selects the message, or that it has expired."""
        numbers = self.numbers_of(message.destination)
        if numbers and message.expires_at <= time:
            return [MessageExpired(message.publisher, message.number)]
        if self._selectors:
            numbers = [number for number in numbers if self._selects(number, message)]
        return [MessageReceived(number, message) for number in numbers]

    def _selects(self, number: int, message: Publication) -> bool:
        entry = self._selectors.get(number)
        if entry is None:
            return True
        chosen, has_head = entry
        return chosen.selects(fields_of(message) if has_head and isinstance(message, JmsMessage) else message.properties)
