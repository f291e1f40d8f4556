"""Complete messages that wait for earlier ones of their publisher (`order: fifo`), bounded in number and in bytes.

Who can send to the group can begin a message, never complete it, and send many behind it. Where there is no room for another
message, the publisher of which most bytes wait is not waited for any more: what is incomplete before its first message is given
up by its id until it ends, and does not count when it completes after all.
"""

from bisect import insort
from collections.abc import Collection

from protocols.jms import JmsMessage
from protocols.serial import ahead

__all__ = ["EarlyMessages"]


class EarlyMessages:
    """Messages by publisher, in the order of their object ids; at most `most` of all, of `limit` bytes.

    One more than that is kept between `add` and what makes room for it.
    """

    __slots__ = ("_given_up", "_octets", "_waiting", "count", "limit", "most", "octets")

    def __init__(self, most: int, limit: int) -> None:
        self.most = most
        self.limit = limit
        self.count = self.octets = 0
        self._waiting: dict[int, list[tuple[int, JmsMessage, int]]] = {}
        self._octets: dict[int, int] = {}
        # What was given up and has not ended, by publisher.
        self._given_up: dict[int, set[int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, and all that was given up has ended."""
        return not self._waiting and not self._given_up

    def is_over(self) -> bool:
        """Return whether more messages, or more bytes, wait than are allowed."""
        return self.count > self.most or self.octets > self.limit

    def add(self, publisher: int, object_id: int, message: JmsMessage, octets: int) -> None:
        """Add a message of `octets` bytes."""
        waiting = self._waiting.setdefault(publisher, [])
        first = waiting[0][0] if waiting else object_id
        insort(waiting, (object_id, message, octets), key=lambda entry: ahead(entry[0], first))
        self._octets[publisher] = self._octets.get(publisher, 0) + octets
        self.count += 1
        self.octets += octets

    def first(self, publisher: int) -> tuple[int, JmsMessage] | None:
        """Return the first message of a publisher with its object id; None if none waits."""
        waiting = self._waiting.get(publisher)
        return waiting[0][:2] if waiting else None

    def remove_first(self, publisher: int) -> None:
        """Remove the first message of a publisher, to deliver it."""
        waiting = self._waiting[publisher]
        _, _, octets = waiting.pop(0)
        self._octets[publisher] -= octets
        self.count -= 1
        self.octets -= octets
        if not waiting:
            del self._waiting[publisher], self._octets[publisher]

    def largest(self) -> int:
        """Return the publisher of which most bytes wait."""
        return max(self._octets, key=self._octets.__getitem__)

    def give_up(self, publisher: int, object_ids: Collection[int]) -> None:
        """Note that these incomplete messages are not waited for."""
        if object_ids:
            self._given_up.setdefault(publisher, set()).update(object_ids)

    def is_given_up(self, publisher: int, object_id: int) -> bool:
        """Return whether this message was given up and has not ended."""
        return object_id in self._given_up.get(publisher, ())

    def end(self, publisher: int, object_id: int) -> bool:
        """Note that a message has ended; return whether it had been given up."""
        given_up = self._given_up.get(publisher, set())
        if object_id not in given_up:
            return False
        given_up.remove(object_id)
        if not given_up:
            del self._given_up[publisher]
        return True
