"""The subscriptions of a subscriber, whose destinations are patterns of subjects."""

from protocols.distributor.subjects import SubjectTrie, check_pattern
from protocols.messaging import Subscription
from protocols.subscriptions import SubscriptionTable

__all__ = ["SubjectSubscriptions"]


class SubjectSubscriptions(SubscriptionTable):
    """Subscriptions by number and by pattern."""

    __slots__ = ("_trie",)

    def __init__(self, *subscriptions: Subscription) -> None:
        self._trie: SubjectTrie[int] = SubjectTrie()
        super().__init__(*subscriptions)

    def check(self, subscription: Subscription) -> None:
        """Raise UsageError for a selector, and for a pattern that no subject can match."""
        super().check(subscription)
        check_pattern(subscription.destination)

    def numbers_of(self, destination: str) -> tuple[int, ...]:
        """Return the numbers of the subscriptions with a pattern that a subject matches."""
        return self._trie.match(destination)

    def _enter(self, subscription: Subscription) -> None:
        super()._enter(subscription)
        self._trie.add(subscription.destination, subscription.number)

    def _remove(self, subscription: Subscription) -> None:
        super()._remove(subscription)
        self._trie.remove(subscription.destination, subscription.number)
