"""The publisher: sends each message once, as datagrams at a constant rate."""

from collections import deque
from math import inf

from protocols.datagram.config import DatagramConfig
from protocols.datagram.messages import part_of
from protocols.datagram.wire import OVERHEAD
from protocols.machine import Address, Event, Message, Packet, Ports
from protocols.message_wire import head_size, write_message
from protocols.messaging import MessageExpired, MessageSent, Publication, Publisher, PublisherIdle, PublisherUnblocked
from protocols.roles import RoleContext

__all__ = ["DatagramPublisher"]


class DatagramPublisher(Publisher):
    """Sends messages in the order of publishing; blocked while `queue` of them wait."""

    __slots__ = (
        "_config",
        "_encoded",
        "_expired",
        "_free_at",
        "_full",
        "_is_blocked",
        "_messages",
        "_node",
        "_part",
        "_queue",
        "_sequence",
        "_to",
    )

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self._config: DatagramConfig = context.config
        self._node = context.node
        unicast = self._config.cast == "unicast"
        self._to: list[Address] = list(context.addresses["subscriber"]) if unicast else [context.group]
        self._queue: deque[Publication] = deque()
        self._encoded: bytes | None = None
        self._part = 0
        self._sequence = 0
        self._messages = self._expired = 0
        self._free_at = 0.0
        self._full = self._is_blocked = False

    def start(self, now: float) -> None:
        """Wait for messages."""

    def publish(self, message: Publication, now: float) -> bool:
        """Queue a message; true while `queue` messages wait."""
        self._queue.append(message)
        self._messages += 1
        self._send_due(now)
        self._is_blocked = len(self._queue) >= self._config.queue
        return self._is_blocked

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore all messages."""

    def wake(self, now: float) -> None:
        """Send what the rate allows."""
        self._send_due(now)

    def resume(self, now: float) -> None:
        """Send again after the network was full."""
        self._full = False
        self._send_due(now)

    def _send_due(self, now: float) -> None:
        while self._queue and not self._full and self._free_at <= now:
            self._send_part(now)
        if self._is_blocked and len(self._queue) < self._config.queue:
            self._is_blocked = False
            self.ports.notify(PublisherUnblocked())
        self._due(self._free_at if self._queue and not self._full else inf)

    def _send_part(self, now: float) -> None:
        """Send the next part of the first message, or drop the message if it has expired."""
        message, segment, stamp = self._queue[0], self._config.segment, self.ports.epoch + now
        if message.expires_at <= stamp and not self._part:
            self._expired += 1
            self._end_first(MessageExpired(message.publisher, message.number))
            return
        if not self._part and message.body is not None:
            self._encoded = write_message(message)
        size = head_size(message) + message.size
        parts, start = -(-size // segment), self._part * segment
        length = min(segment, size - start)
        content = None if self._encoded is None else self._encoded[start : start + length]
        part = part_of(self._node, self._sequence, stamp, message.number, self._part, parts, length, content, message)
        for to in self._to:
            self._full |= bool(self.ports.send(Packet(part, OVERHEAD + length, to)))
        # A sender that is late catches up for at most one datagram.
        gap = (OVERHEAD + length) * len(self._to) / self._config.rate
        self._free_at = max(self._free_at, now - gap) + gap
        self._sequence += 1
        self._part += 1
        if self._part == parts:
            self._part, self._encoded = 0, None
            self._end_first(MessageSent(message.number))

    def _end_first(self, event: Event) -> None:
        """Remove the first message and notify its event, and `PublisherIdle` if no other message waits."""
        self._queue.popleft()
        self.ports.notify(event)
        if not self._queue:
            self.ports.notify(PublisherIdle())

    def counts(self) -> dict[str, int]:
        """Return the messages published, datagrams sent (a copy to each subscriber is one), and messages expired."""
        return {
            "messages_published": self._messages,
            "data_sent": self._sequence * len(self._to),
            "messages_expired": self._expired,
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the messages that wait."""
        return {"messages": (len(self._queue), self._config.queue)}
