"""Updates on their way from a Distributor connection to the program: a queue or a callback for each subscription."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from experiments.session.waiting import Changes
from protocols.distributor.messages import Source
from protocols.events import Event

__all__ = ["CallbackFailed", "DeliveryOverflowed", "UpdateStream", "Update", "Updates"]


@dataclass(slots=True)
class Update:
    """An update that matches a subscription; `source` names its publisher, `value` is that of the subscription."""

    subject: str
    content: bytes
    source: Source
    value: Any = None


@dataclass(slots=True)
class Updates:
    """Updates of one subject and one publisher that came together, in their order."""

    subject: str
    contents: Sequence[bytes]
    source: Source
    value: Any = None


@dataclass(frozen=True, slots=True)
class DeliveryOverflowed(Event):
    """Subscription: the program was too slow; so many updates have been dropped in all."""

    pattern: str
    dropped: int


@dataclass(frozen=True, slots=True)
class CallbackFailed(Event):
    """Subscription: the callback raised `error`; the update was left, and the next ones come."""

    pattern: str
    error: Exception


class UpdateStream:
    """One subscription of a program: an asynchronous iterator of updates, unless it has a callback.

    At most `most` updates wait for the program; what does not fit is dropped, counted in `dropped` and told by `tell`.
    """

    def __init__(
        self,
        number: int,
        pattern: str,
        value: Any,
        callback: Callable[[Update], object] | None,
        most: int,
        tell: Callable[[Event], None],
        end: Callable[["UpdateStream"], None],
    ) -> None:
        self.number = number
        self.pattern = pattern
        self.value = value
        self.received = self.dropped = 0
        """Updates that were delivered, and that were dropped."""
        self.is_open = True
        self._callback = callback
        self._most = most
        self._tell = tell
        self._end = end
        # Updates of one subject and publisher together, and how many of the first of them were taken.
        self._waiting: deque[tuple[str, Source, Sequence[bytes]]] = deque()
        self._taken = 0
        self._size = 0
        self._told_at = -inf
        self._told_dropped = 0
        self._changes = Changes()

    # From the connection

    @property
    def waiting(self) -> int:
        """Updates that wait for the program."""
        return self._size

    def deliver(self, subject: str, source: Source, contents: Sequence[bytes], now: float) -> None:
        """Take updates of one subject."""
        if self._callback is not None:
            self._call(self._callback, subject, source, contents)
            return
        room = self._most - self._size
        if len(contents) > room:
            self._drop(len(contents) - room, now)
            contents = contents[:room]
        if contents:
            self._waiting.append((subject, source, contents))
            self._size += len(contents)
            self._changes.changed()

    def _call(self, callback: Callable[[Update], object], subject: str, source: Source, contents: Sequence[bytes]) -> None:
        value, index = self.value, 0
        while index < len(contents):
            try:
                for content in contents[index:]:
                    index += 1
                    callback(Update(subject, content, source, value))
            except Exception as error:  # noqa: BLE001 a callback of a program may raise anything, and others must not suffer
                self._tell(CallbackFailed(self.pattern, error))
        self.received += len(contents)

    def _drop(self, count: int, now: float) -> None:
        """Count updates that do not fit, and tell of it once in a second, and when the program has caught up."""
        self.dropped += count
        if now - self._told_at >= 1.0:
            self._told_at = now
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self.dropped > self._told_dropped:
            self._told_dropped = self.dropped
            self._tell(DeliveryOverflowed(self.pattern, self.dropped))

    def fail(self, error: Exception) -> None:
        """Raise an error in the program that waits for updates, after those that are here."""
        self._changes.fail(error)

    def finish(self) -> None:
        """End the subscription for the program, after the updates that are here."""
        self.is_open = False
        self._changes.changed()

    # From the program

    def close(self) -> None:
        """End the subscription."""
        if self.is_open:
            self._end(self)

    def __aiter__(self) -> "UpdateStream":
        return self

    async def __anext__(self) -> Update:
        """Wait for the next update. It ends with the subscription; TransferError when the connection fails."""
        if not self._waiting:
            await self._changes.until(lambda: self._waiting or not self.is_open)
            if not self._waiting:
                raise StopAsyncIteration
        subject, source, contents = self._waiting[0]
        content = contents[self._taken]
        self._count(1)
        return Update(subject, content, source, self.value)

    async def together(self) -> Updates | None:
        """Wait for updates, and return all that came together, which costs less than one by one; None at the end."""
        if not self._waiting:
            await self._changes.until(lambda: self._waiting or not self.is_open)
            if not self._waiting:
                return None
        subject, source, contents = self._waiting[0]
        found = contents[self._taken :] if self._taken else contents
        self._count(len(found))
        return Updates(subject, found, source, self.value)

    def _count(self, count: int) -> None:
        """Count updates that the program has taken from the first of those that wait."""
        self.received += count
        self._size -= count
        self._taken += count
        if self._taken == len(self._waiting[0][2]):
            self._waiting.popleft()
            self._taken = 0
            if not self._waiting:
                # Who has taken everything that is here knows of everything that is not.
                self._tell_dropped()
