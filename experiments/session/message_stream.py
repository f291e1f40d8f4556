"""Messages on their way from a bus to the program: a bounded queue or a callback for each subscription."""

from collections import deque
from collections.abc import Callable
from typing import Self

from experiments.session.subscription_stream import SubscriptionStream
from protocols.events import Event
from protocols.jms import JmsMessage

__all__ = ["MessageStream"]


class MessageStream(SubscriptionStream[JmsMessage]):
    """One subscription to a topic; see `SubscriptionStream`."""

    def __init__(
        self,
        number: int,
        topic: str,
        callback: Callable[[JmsMessage], object] | None,
        most: int,
        tell: Callable[[Event], None],
        end: Callable[[Self], None],
    ) -> None:
        super().__init__(number, topic, callback, most, tell, end)
        self._waiting: deque[JmsMessage] = deque()

    def deliver(self, message: JmsMessage, now: float) -> None:
        """Take a message; `now` is in seconds."""
        if self._callback is not None:
            self._call(self._callback, message)
        elif self._admit(1, now):
            self._waiting.append(message)

    def _take(self) -> JmsMessage:
        return self._waiting.popleft()
