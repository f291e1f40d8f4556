"""Messages on their way from a bus to the program: a bounded queue or a callback for each subscription."""

from collections import deque
from collections.abc import Callable
from math import inf

from experiments.session.deliveries import CallbackFailed, DeliveryOverflowed
from experiments.session.waiting import Changes
from protocols.events import Event
from protocols.jms import JmsMessage

__all__ = ["MessageStream"]

TOLD_EVERY = 1.0
"""Seconds between two events that say how many messages were dropped."""


class MessageStream:
    """One subscription: an asynchronous iterator of messages, unless it has a callback.

    At most `most` messages wait for the program; what does not fit is dropped, counted in `dropped` and told by `tell`.
    """

    def __init__(
        self,
        number: int,
        topic: str,
        callback: Callable[[JmsMessage], object] | None,
        most: int,
        tell: Callable[[Event], None],
        end: Callable[["MessageStream"], None],
    ) -> None:
        self.number = number
        self.topic = topic
        self.received = self.dropped = 0
        """Messages that were delivered, and that were dropped."""
        self.is_open = True
        self._callback = callback
        self._most = most
        self._tell = tell
        self._end = end
        self._waiting: deque[JmsMessage] = deque()
        self._told_at = -inf
        self._changes = Changes()

    @property
    def waiting(self) -> int:
        """Messages that wait for the program."""
        return len(self._waiting)

    def deliver(self, message: JmsMessage, now: float) -> None:
        """Take a message; `now` is in seconds."""
        if self._callback is not None:
            self.received += 1
            try:
                self._callback(message)
            except Exception as error:  # noqa: BLE001 a callback of a program may raise anything, and others must not suffer
                self._tell(CallbackFailed(self.topic, error))
        elif len(self._waiting) < self._most:
            self._waiting.append(message)
            self._changes.changed()
        else:
            self.dropped += 1
            if now - self._told_at >= TOLD_EVERY:
                self._told_at = now
                self._tell(DeliveryOverflowed(self.topic, self.dropped))

    def fail(self, error: Exception) -> None:
        """Raise an error in the program that waits for messages, after those that are here."""
        self._changes.fail(error)

    def finish(self) -> None:
        """End the subscription for the program, after the messages that are here."""
        self.is_open = False
        self._changes.changed()

    def close(self) -> None:
        """Unsubscribe. Messages that are here can still be taken."""
        if self.is_open:
            self._end(self)

    def __aiter__(self) -> "MessageStream":
        return self

    async def __anext__(self) -> JmsMessage:
        """Wait for the next message; the iteration ends with the subscription."""
        if not self._waiting:
            await self._changes.until(lambda: self._waiting or not self.is_open)
            if not self._waiting:
                raise StopAsyncIteration
        self.received += 1
        return self._waiting.popleft()
