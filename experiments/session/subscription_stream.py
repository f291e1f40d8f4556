"""A subscription of a program: an asynchronous iterator of messages or updates, or a callback for them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Self, TypeVar

from experiments.session.waiting import Changes
from protocols.events import Event

__all__ = ["CallbackFailed", "DeliveryOverflowed", "SubscriptionStream"]

Item = TypeVar("Item")
TOLD_EVERY = 1.0
"""Seconds between two events that say how much was dropped."""


@dataclass(frozen=True, slots=True)
class DeliveryOverflowed(Event):
    """Subscription: the program was too slow; so many items have been dropped in all."""

    pattern: str
    dropped: int


@dataclass(frozen=True, slots=True)
class CallbackFailed(Event):
    """Subscription: the callback raised `error`; the item was left, and the next ones come."""

    pattern: str
    error: Exception


class SubscriptionStream(ABC, Generic[Item]):
    """One subscription to a `pattern`: an asynchronous iterator of items, unless it has a callback.

    At most `most` items wait for the program; what does not fit is dropped, counted in `dropped` and reported by `tell`. `end`
    ends the subscription. A subclass keeps the items that wait.
    """

    def __init__(
        self,
        number: int,
        pattern: str,
        callback: Callable[[Item], object] | None,
        most: int,
        tell: Callable[[Event], None],
        end: Callable[[Self], None],
    ) -> None:
        self.number = number
        self.pattern = pattern
        self.received = self.dropped = self.waiting = 0
        """Items that the program has taken, that were dropped, and that wait for the program."""
        self.is_open = True
        self._callback = callback
        self._most = most
        self._tell = tell
        self._end: Callable[[Any], None] = end
        self._told_at = -inf
        self._told_dropped = 0
        self._changes = Changes()

    # From the session

    def fail(self, error: Exception) -> None:
        """Raise an error in the program that waits for items, after those that are here."""
        self._changes.fail(error)

    def finish(self) -> None:
        """End the subscription for the program, after the items that are here."""
        self.is_open = False
        self._changes.changed()

    # From the program

    def close(self) -> None:
        """End the subscription. Items that are here can still be taken."""
        if self.is_open:
            self._end(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Wait for the next item. It ends with the subscription; TransferError when the session fails."""
        if not self.waiting and not await self._some():
            raise StopAsyncIteration
        item = self._take()
        self._count(1)
        return item

    # What subclasses use

    @abstractmethod
    def _take(self) -> Item:
        """Remove and return the first item of those that wait."""

    async def _some(self) -> bool:
        """Wait until an item is here; return False at the end of the subscription."""
        if not self.waiting:
            await self._changes.until(lambda: self.waiting or not self.is_open)
        return bool(self.waiting)

    def _call(self, callback: Callable[[Item], object], item: Item) -> None:
        """Give an item to the callback; an exception of it becomes an event, and later items are delivered."""
        self.received += 1
        try:
            callback(item)
        except Exception as error:  # noqa: BLE001 a callback of a program may raise anything
            self._tell(CallbackFailed(self.pattern, error))

    def _admit(self, count: int, now: float) -> int:
        """Return how many of so many items the subclass is to keep, and count the others as dropped."""
        kept = min(count, max(self._most - self.waiting, 0))
        if kept < count:
            self.dropped += count - kept
            if now - self._told_at >= TOLD_EVERY:
                self._told_at = now
                self._tell_dropped()
        if kept:
            self.waiting += kept
            self._changes.changed()
        return kept

    def _count(self, count: int) -> None:
        """Count items that the program has taken."""
        self.received += count
        self.waiting -= count
        if not self.waiting:
            # A program that has taken all items learns of the dropped ones before it waits.
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self.dropped > self._told_dropped:
            self._told_dropped = self.dropped
            self._tell(DeliveryOverflowed(self.pattern, self.dropped))
