"""Packets of a publisher: those to send, and those kept for repairs, without a bound of its own."""

from collections import deque

from protocols.message_wire import head_size, write_message
from protocols.messaging import Publication
from protocols.nacked.messages import Data, Nack, Origin, Status
from protocols.range_set import RangeSet

__all__ = ["PacketSender"]


class PacketSender:
    """Messages of one publisher on one group: queued, cut into packets, and kept for `history` seconds after sending."""

    __slots__ = (
        "_encoded",
        "_history",
        "_kept",
        "_part",
        "_repairs",
        "_segment",
        "_since",
        "first",
        "next",
        "octets",
        "origin",
        "queue",
    )

    def __init__(self, origin: Origin, segment: int, history: float) -> None:
        self.origin = origin
        self._segment = segment
        self._history = history
        self.queue: deque[Publication] = deque()
        """Messages that were not sent wholly."""
        self._encoded: bytes | None = None
        self._part = 0
        self.next = 0
        """Sequence number of the next packet."""
        self.first = 0
        """That of the first packet kept for repairs."""
        self._kept: deque[Data] = deque()
        self._since: deque[float] = deque()
        self._repairs = RangeSet()
        self.octets = 0
        """Bytes of messages that wait or are kept."""

    def push(self, message: Publication) -> None:
        """Queue a message."""
        self.queue.append(message)
        self.octets += head_size(message) + message.size

    def __bool__(self) -> bool:
        return bool(self.queue) or bool(self._repairs.firsts)

    def take(self, now: float) -> tuple[Data, Publication | None]:
        """Return the next packet, repairs first, and the message of which it is the last one of the first transmission."""
        if self._repairs.firsts:
            sequence = self._repairs.firsts[0]
            self._repairs.remove(sequence)
            return _repair_of(self._kept[sequence - self.first]), None
        message = self.queue[0]
        packet, parts = self._cut(message)
        self._kept.append(packet)
        self._since.append(now)
        self.next += 1
        self._part += 1
        if self._part < parts:
            return packet, None
        self._part, self._encoded = 0, None
        return packet, self.queue.popleft()

    def expired(self, time: float) -> Publication | None:
        """Remove and return the next message if it has expired by `time` (seconds since 1970) before any part was sent."""
        if self._repairs.firsts or self._part or not self.queue or self.queue[0].expires_at > time:
            return None
        message = self.queue.popleft()
        self.octets -= head_size(message) + message.size
        return message

    def _cut(self, message: Publication) -> tuple[Data, int]:
        """Return the next packet of a message, and how many it has."""
        if self._encoded is None and message.body is not None:
            self._encoded = write_message(message)
        size = head_size(message) + message.size
        parts, start = -(-size // self._segment), self._part * self._segment
        length = min(self._segment, size - start)
        content = None if self._encoded is None else self._encoded[start : start + length]
        return Data(self.origin, self.next, message.number, self._part, parts, length, content, message), parts

    def forget(self, now: float) -> bool:
        """Forget what is older than the history; return whether a repair of it was to be sent."""
        since = self._since
        while since and since[0] + self._history <= now:
            since.popleft()
            self.octets -= self._kept.popleft().length
            self.first += 1
        repairs = self._repairs
        if not repairs.firsts or repairs.firsts[0] >= self.first:
            return False
        repairs.remove_before(self.first)
        return True

    @property
    def forgets_at(self) -> float:
        """When the first packet is forgotten; there is one."""
        return self._since[0] + self._history

    @property
    def has_history(self) -> bool:
        """Whether packets are kept."""
        return bool(self._since)

    def request(self, nack: Nack) -> None:
        """Queue repairs of the requested packets that are kept, each once."""
        for first, last in nack.missing:
            first, last = max(first, self.first), min(last, self.next - 1)
            if first <= last:
                self._repairs.add(first, last)

    def status(self) -> Status:
        """Return the announcement of the last packet; there is one."""
        return Status(self.origin, self.first, self.next - 1)


def _repair_of(packet: Data) -> Data:
    return Data(
        packet.origin,
        packet.sequence,
        packet.number,
        packet.part,
        packet.parts,
        packet.length,
        packet.content,
        packet.whole,
        True,
    )
