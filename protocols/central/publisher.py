"""A publisher whose messages a central server acknowledges."""

from abc import abstractmethod
from collections import deque

from protocols.central.client import Client
from protocols.machine import Message, Ports
from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    Publication,
    Publisher,
    PublisherIdle,
    PublisherUnblocked,
)
from protocols.roles import RoleContext

__all__ = ["ClientPublisher"]


class ClientPublisher(Client, Publisher):
    """Sends messages to the server; blocked while `window` of them are not accepted.

    What was sent and not accepted when the connection is closed is dropped, since the server may have copied it.
    """

    __slots__ = ("_counts", "_is_blocked", "_queue", "_sent")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._queue: deque[Publication] = deque()
        self._sent: dict[int, None] = {}
        self._is_blocked = False
        self._counts = dict.fromkeys(("messages_published", "messages_accepted", "messages_dropped", "messages_expired"), 0)

    @abstractmethod
    def submission(self, message: Publication) -> Message:
        """Return what carries a message to the server."""

    def publish(self, message: Publication, now: float) -> bool:
        """Send a message, or keep it until there is a connection."""
        self._counts["messages_published"] += 1
        self._queue.append(message)
        self._send_queued(now)
        self._is_blocked = self._unsettled() >= self.config.window
        return self._is_blocked

    def _unsettled(self) -> int:
        return len(self._queue) + len(self._sent)

    def connected(self, now: float) -> None:
        """Send what waited for the connection."""
        self._send_queued(now)
        self._tell_progress()

    def disconnected(self, reason: str, now: float) -> None:
        """Drop what was not accepted."""
        self._counts["messages_dropped"] += len(self._sent)
        for number in self._sent:
            self.ports.notify(MessageDropped(number, reason))
        if self._sent:
            self._sent.clear()
            self._tell_progress()

    def accepted(self, number: int) -> None:
        """Note that the server accepted a message; one that was not sent is ignored."""
        if number in self._sent:
            del self._sent[number]
            self._counts["messages_accepted"] += 1
            self.ports.notify(MessageAccepted(number))
            self._tell_progress()

    def _send_queued(self, now: float) -> None:
        """Send what is queued, without what has expired meanwhile."""
        while self._queue and self.outbox is not None:
            message = self._queue.popleft()
            if message.expires_at <= self.ports.epoch + now:
                self._counts["messages_expired"] += 1
                self.ports.notify(MessageExpired(message.publisher, message.number))
                self._tell_progress()
            else:
                self._sent[message.number] = None
                self.outbox.send(self.submission(message))

    def _tell_progress(self) -> None:
        """Notify the application when there is room again, and when nothing is left to do."""
        if self._is_blocked and self._unsettled() < self.config.window:
            self._is_blocked = False
            self.ports.notify(PublisherUnblocked())
        if not self._unsettled():
            self.ports.notify(PublisherIdle())

    def counts(self) -> dict[str, int]:
        """Return messages by what became of them, and the connections made."""
        return {**self._counts, "connections": self.connections}

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the messages that are not accepted."""
        return {"messages": (self._unsettled(), self.config.window)}
