"""State of one publisher at a subscriber: the order of its segments, what is missing, and the large update under way."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import Any, Final, Protocol

from protocols.distributor.config import DistributorConfig
from protocols.distributor.messages import (
    FIRST,
    LAST,
    Batch,
    Configuration,
    Fragment,
    Heartbeat,
    Segment,
    Source,
    SubjectUpdates,
)
from protocols.distributor.requests import MOST_RANGES, NO_REQUESTS, Range, Requests
from protocols.distributor.serial import unwrap
from protocols.distributor.wire import size_of
from protocols.snapshot import Snapshot

__all__ = ["Follower", "LargeUpdate", "PublisherState"]

SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.01, 3600.0
"""Seconds; intervals that a publisher announces are taken as at least and at most so long."""
MOST_WAITING = 65_536
"""Segments of all publishers that wait for earlier ones, beside the limit of their bytes."""
MOST_PARTS, SMALL_PART = 1024, 128
"""Parts of a large update from which on those of less than so many bytes, on average, are joined."""


_NONE: Final[dict[int, Any]] = {}
"""An empty table, shared by all instances that have no entry; never modified."""


class Follower(Protocol):
    """A subscriber, as the states of its publishers see it."""

    kept: int
    """Bytes of received segments of all publishers that can't be delivered yet."""
    waiting: int
    """Number of received segments of all publishers that can not be delivered before earlier ones arrive."""

    @property
    def most_kept(self) -> int:
        """Most bytes of received segments that it stores before they can be delivered."""

    def new_requests(self) -> Requests:
        """Return requests for a publisher, which has none yet."""

    def deliver(self, source: Source, subjects: Sequence[SubjectUpdates]) -> None:
        """Take the next updates of a publisher."""

    def lose(self, source: Source, first: int, count: int, reason: str, is_last: bool) -> None:
        """Note that segments of a publisher are left out; `is_last`: no update is known that follows them."""


class LargeUpdate:
    """A large update under way: its subject, the parts that came, their bytes, and the bytes of all."""

    __slots__ = ("parts", "size", "subject", "total")

    def __init__(self, subject: str, total: int) -> None:
        self.subject = subject
        self.total = total
        self.parts: list[bytes] = []
        self.size = 0


class PublisherState:
    """The segments of one publisher.

    It delivers updates to the `follower` in the order of their segments, and reports to it which segments are left out. Of a
    publisher that `began_after` the subscription, everything is wanted unless more than `config.requested` segments were
    missed; of others what follows the first segment or heartbeat that is heard.
    """

    __slots__ = (
        "_follower",
        "_is_loss_open",
        "_large",
        "_most_missed",
        "_skipped",
        "_waiting",
        "application",
        "duplicates",
        "expected",
        "from_start",
        "heard_at",
        "highest",
        "interval",
        "overflowed",
        "repairs",
        "requests",
        "segments",
        "source",
        "updates",
    )

    def __init__(self, source: Source, began_after: bool, config: DistributorConfig, follower: Follower) -> None:
        self.source = source
        self.application = ""
        self.from_start = began_after
        """Whether it is received from its first segment on."""
        self.interval = config.heartbeat
        """Seconds between heartbeats of the publisher, as it announced them."""
        self.heard_at = 0.0
        self.expected: int | None = None
        """The number of the next segment to deliver; None before the first is known."""
        self.highest = 0
        self.requests = NO_REQUESTS
        """The requests for missing segments; until the first segment is missing, an empty object that all subscribers share."""
        self.segments = self.updates = self.duplicates = self.repairs = self.overflowed = 0
        self._most_missed = config.requested
        self._follower = follower
        # Segments that wait for earlier ones, and the numbers that will not come with the reason, by the first of each range.
        self._waiting: dict[int, Segment] = _NONE
        self._skipped: dict[int, tuple[int, str]] = _NONE
        self._large: LargeUpdate | None = None
        self._is_loss_open = False
        """Whether a loss was reported as one that an update follows, and none came yet."""

    # What is heard

    def configure(self, message: Configuration) -> None:
        """Take the configuration of a publisher."""
        interval = min(max(message.heartbeat_ms / 1000, SHORTEST_INTERVAL), LONGEST_INTERVAL)
        if interval != self.interval:
            # Else the number of the config serves all subscribers.
            self.interval = interval
        self.application = message.application

    def synchronise(self, message: Segment | Heartbeat) -> bool:
        """Find out by a message which segment comes next; return whether it is known now."""
        following = message.seqno if isinstance(message, Segment) else message.last + 1
        self.from_start = self.from_start and 0 < following <= self._most_missed + 1
        if self.from_start:
            following = 1
        elif isinstance(message, Fragment) and message.flags != FIRST:
            return False
        self.expected = following
        self.highest = following - 1
        return True

    def go_on_at(self, number: int) -> None:
        """Go on with this segment: all before it were delivered or given up."""
        self.expected = number
        self.highest = number - 1

    def hear_last(self, message: Heartbeat, now: float) -> None:
        """Take the last number that was sent; while too much is missing before, it is left to a later heartbeat."""
        last = unwrap(message.last, self.highest)
        if last > self.highest and not self.requests.is_full:
            self._miss(self.highest + 1, last, now)
            self.highest = last

    def receive(self, segment: Segment, now: float) -> bool:
        """Take a segment; return False if there is no room for it."""
        self.segments += 1
        self.repairs += segment.is_retransmission
        number, expected = unwrap(segment.seqno, self.highest), self.expected
        assert expected is not None, "synchronise comes first"
        if number < expected or number in self._waiting or self._is_given_up(number):
            self.duplicates += 1
            return True
        if number > expected and not self._can_wait(number, segment):
            self.overflowed += 1
            return False
        if number > self.highest:
            if number > self.highest + 1:
                self._miss(self.highest + 1, number - 1, now)
            self.highest = number
        else:
            self.requests.served(number)
        if number > expected:
            if not self._waiting:
                self._waiting = {}
            self._waiting[number] = segment
            self._follower.kept += size_of(segment)
            self._follower.waiting += 1
            return True
        self.expected = number + 1
        self._take(segment)
        if self._waiting or self._skipped:
            self._go_on()
        if self._is_loss_open:
            self._end_loss()
        return True

    def _miss(self, low: int, high: int, now: float) -> None:
        """Have numbers requested, which are higher than all before them."""
        if self.requests is NO_REQUESTS:
            self.requests = self._follower.new_requests()
        self.requests.miss(low, high, now)

    def overhear(self, low: int, high: int, now: float) -> None:
        """Let the request of another subscriber suppress own ones, unless its numbers are not in order."""
        first, last = unwrap(low, self.highest), unwrap(high, self.highest)
        if first <= last:
            self.requests.heard(first, last, now)

    def give_up(self, ranges: Sequence[Range], reason: str) -> None:
        """Leave out numbers that will not come, each range when its turn is."""
        if ranges and not self._skipped:
            self._skipped = {}
        for low, high in ranges:
            self._skipped[low] = (high, reason)
        self._go_on()
        if self._is_loss_open:
            self._end_loss()

    def ask(self, now: float) -> list[Range]:
        """Return what is to be requested now; what was requested too often is given up."""
        asked, lost = self.requests.requests(now)
        if lost:
            self.give_up(lost, "too many requests")
        return asked

    def refuse(self, seqnos: Sequence[int]) -> None:
        """Give up what the publisher can't retransmit; beyond `MOST_RANGES` ranges, when it states that again."""
        for low, high in _ranges(unwrap(seqno, self.highest) for seqno in seqnos):
            if len(self._skipped) >= MOST_RANGES:
                break
            self.give_up(self.requests.refused(low, high), "not cached any more")

    def close(self, reason: str) -> None:
        """Give up everything that is missing, and deliver what waited for it; tell of a large update that is not complete."""
        self.give_up(self.requests.all_refused(), reason)
        if self._large is not None:
            self._drop_parts()
            self._follower.lose(self.source, self.highest + 1, 0, reason, True)

    # Order

    def _is_given_up(self, number: int) -> bool:
        """Return whether a segment was given up, and is left out when its turn is, although it comes now."""
        return any(first <= number <= last for first, (last, _) in self._skipped.items())

    def _can_wait(self, number: int, segment: Segment) -> bool:
        """Return whether there is room for a segment that is not the next one."""
        requests, follower = self.requests, self._follower
        if requests.is_full and (number > self.highest + 1 or requests.splits(number)):
            return False
        return follower.kept + size_of(segment) <= follower.most_kept and follower.waiting < MOST_WAITING

    def _go_on(self) -> None:
        """Deliver what waits, and leave out what was given up, as far as nothing is missing."""
        while self.expected is not None:
            segment = self._waiting.pop(self.expected, None)
            if segment is not None:
                self._follower.kept -= size_of(segment)
                self._follower.waiting -= 1
                self.expected += 1
                self._take(segment)
            elif self.expected in self._skipped:
                first = self.expected
                last, reason = self._skipped.pop(first)
                self.expected = last + 1
                self._drop_parts()
                self._lose(first, last - first + 1, reason)
            else:
                return

    def _lose(self, first: int, count: int, reason: str) -> None:
        """Report a loss, and note whether updates follow it."""
        self._is_loss_open = not self._is_at_end
        self._follower.lose(self.source, first, count, reason, not self._is_loss_open)

    def _end_loss(self) -> None:
        """Report that no update follows the last loss after all: what was missing behind it were parts of the lost update."""
        if self.expected is not None and self._large is None and not self._waiting and self._is_at_end:
            self._is_loss_open = False
            self._follower.lose(self.source, self.expected, 0, "parts of a lost update", True)

    @property
    def _is_at_end(self) -> bool:
        """Whether nothing is missing any more, and of what waits nothing begins an update."""
        if self.requests or self._skipped:
            return False
        return all(isinstance(segment, Fragment) and segment.subject is None for segment in self._waiting.values())

    def _take(self, segment: Segment) -> None:
        """Deliver the updates that a segment completes."""
        if isinstance(segment, Batch):
            self._drop_parts()
            self._is_loss_open = False
            self.updates += segment.updates
            self._follower.deliver(self.source, segment.subjects)
        elif isinstance(segment, Fragment):
            self._take_part(segment)

    def _take_part(self, part: Fragment) -> None:
        if part.subject is not None:
            self._drop_parts()
            self._large = LargeUpdate(part.subject, part.total)
        large = self._large
        if large is None:
            # Its first part was given up, or came before anything was expected.
            return
        size = len(part.content)
        if large.size + size > large.total or self._follower.kept + size > self._follower.most_kept:
            self._drop_parts()
            self._lose(unwrap(part.seqno, self.highest), 0, "an update is too long")
            return
        large.parts.append(part.content)
        if len(large.parts) >= MOST_PARTS and large.size - len(large.parts[0]) < SMALL_PART * len(large.parts):
            large.parts = [b"".join(large.parts)]
        large.size += size
        self._follower.kept += size
        if part.flags == LAST:
            self._drop_parts()
            if large.size == large.total:
                self._is_loss_open = False
                self.updates += 1
                self._follower.deliver(self.source, [SubjectUpdates(large.subject, [self._joined(large)])])

    def _joined(self, large: LargeUpdate) -> bytes:
        """Return the content of a large update whose parts have all come."""
        return b"".join(large.parts)

    def _drop_parts(self) -> None:
        if self._large is not None:
            self._follower.kept -= self._large.size
            self._large = None

    def counts(self) -> dict[str, int]:
        """Return the segments received, by what became of them, and the requests that others made unnecessary."""
        return {
            "data_received": self.segments,
            "repairs_received": self.repairs,
            "duplicates": self.duplicates,
            "overflowed": self.overflowed,
            "requests_suppressed": self.requests.suppressed,
        }

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of this publisher at a subscriber."""
        values = {**self.counts(), "ranges_missing": len(self.requests), "silence": now - self.heard_at}
        host, sender_id, start, _ = self.source
        name = f"{IPv4Address(host)}/{sender_id}/{start & 0xFFFFFFFF:08x}"
        large = self._large
        under_way = () if large is None else (_under_way(large),)
        return Snapshot("publisher", name, values, {"application": self.application[:64]}, under_way)

    @property
    def due_at(self) -> float:
        """When `ask` may have something to do, in seconds; inf for never."""
        return self.requests.due_at


def _under_way(large: LargeUpdate) -> Snapshot:
    """Return the statistics of a large update of which parts have come."""
    values = {"bytes_received": large.size, "size": large.total}
    return Snapshot("object", large.subject[:64], values, {"kind": "object", "state": "receiving"})


def _ranges(numbers: Iterator[int]) -> Iterator[Range]:
    """Yield consecutive numbers as ranges."""
    low = high = None
    for number in numbers:
        if high is not None and number == high + 1:
            high = number
            continue
        if low is not None and high is not None:
            yield low, high
        low = high = number
    if low is not None and high is not None:
        yield low, high
