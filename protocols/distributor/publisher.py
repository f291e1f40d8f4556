"""The publisher of a connection: packs updates into segments, sends them at the rate, and retransmits what is requested."""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import ClassVar

from protocols.distributor.answers import Answers
from protocols.distributor.batching import HoldBack, OpenBatch, parts_of
from protocols.distributor.cache import RetransmissionCache
from protocols.distributor.config import DistributorConfig
from protocols.distributor.events import UpdatesSent
from protocols.distributor.identity import AnyIdentity, endpoint_of
from protocols.distributor.limits import check_size
from protocols.distributor.messages import LAST, Batch, Configuration, Content, Fragment, Heartbeat, Nak, Request, Segment
from protocols.distributor.serial import on_wire, unwrap
from protocols.distributor.subjects import check_subject
from protocols.distributor.wire import FIRST_OVERHEAD, OVERHEAD, size_of
from protocols.errors import UsageError
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.messaging import PublisherIdle, PublisherUnblocked
from protocols.snapshot import Snapshot, buffers

__all__ = ["DistributorPublisher"]

COUNTERS = (
    "messages_published",
    "bytes_sent",
    "data_sent",
    "repairs_sent",
    "requests_received",
    "requests_merged",
    "naks_sent",
)
CATCH_UP = 0.01
"""Seconds for which a publisher that was late sends faster than its rate."""
NAKS_AT_ONCE = 4
"""Datagrams that one request for what is not cached may cause."""
MOST_HOSTS = 64
"""Hosts whose requests are remembered by name."""
MOST_SUBJECTS = 10_000
"""Subjects that are known to be allowed."""


class DistributorPublisher(Machine):
    """Numbers its segments from 1 on. `publish` and `publish_many` return whether it is blocked until `PublisherUnblocked`."""

    __slots__ = (
        "_answers",
        "_batch",
        "_cache",
        "_config",
        "_configuration_at",
        "_counts",
        "_free_at",
        "_full",
        "_group",
        "_has_news",
        "_heartbeat_at",
        "_hold_back",
        "_identity",
        "_is_flushing",
        "_is_idle",
        "_last",
        "_outbox",
        "_sent",
        "_source",
        "_start",
        "_subjects",
        "_was_answer",
        "is_blocked",
        "requestors",
    )
    answers_type: ClassVar[type[Answers]] = Answers

    def __init__(self, ports: Ports, config: DistributorConfig, identity: AnyIdentity, group: Group) -> None:
        super().__init__(ports)
        self._config = config
        self._identity = identity
        self._group = group
        self._batch = OpenBatch(config.segment)
        self._hold_back = HoldBack(config.holdback, config.holdback_threshold, config.check_interval)
        self._cache = RetransmissionCache(config.cache, config.cache_age)
        self._answers = self.answers_type(config.server_holdback)
        self._outbox: deque[tuple[Segment, int]] = deque()
        # The last number given to a segment, and the last one sent.
        self._last = self._sent = 0
        self._subjects: dict[str, int] = {}
        self.requestors: dict[str, None] = {}
        """Names of the hosts that have requested retransmissions, the first `MOST_HOSTS`."""
        self._free_at = -inf
        self._heartbeat_at = self._configuration_at = inf
        self._full = self.is_blocked = self._has_news = self._was_answer = False
        self._is_idle = True
        self._is_flushing = False
        self._counts = dict.fromkeys(COUNTERS, 0)

    def start(self, now: float) -> None:
        """Announce the publisher, and that it has sent nothing: who hears it misses none of its updates."""
        self._start = round((self.ports.epoch + now) * 1000)
        self._source = self._identity.source(self._start)
        self.ports.join(self._group)
        self._announce(now)
        self._beat(now)
        self._set_deadline()

    # Publishing

    def publish(self, subject: str, content: Content, now: float) -> bool:
        """Publish an update. UsageError for a subject with wildcards, and for an update that is too long."""
        return self.publish_many(subject, (content,), now)

    def publish_many(self, subject: str, contents: Sequence[Content], now: float) -> bool:
        """Publish updates of one subject, in their order; see `publish`. Blocked or not, it takes all of them."""
        subject_size = self._checked(subject)
        check_size(max(map(len, contents), default=0))
        batch, index = self._batch, 0
        while index < len(contents):
            after = batch.fill(subject, subject_size, contents, index, now)
            if after < len(contents):
                self._seal()
                if batch.is_large(subject_size, len(contents[after])):
                    self._queue_large(subject, bytes(contents[after]))
                    after += 1
            index = after
        self._counts["messages_published"] += len(contents)
        self._is_idle = self._is_idle and not contents
        self._send_due(now)
        self.is_blocked = len(self._outbox) >= self._config.queue
        return self.is_blocked

    def flush(self, now: float) -> None:
        """Send what waits for further updates, and after it a heartbeat: what of it is lost is found at once."""
        self._seal()
        self._is_flushing = True
        self._send_due(now)

    def _checked(self, subject: str) -> int:
        """Return the bytes of a subject. UsageError for one that can't be published."""
        size = self._subjects.get(subject)
        if size is None:
            check_subject(subject)
            size, most = len(subject.encode()), self._config.segment - FIRST_OVERHEAD
            if size > most:
                raise UsageError(f"subject {subject[:40]!r}... has {size} bytes; in segments of {self._config.segment}: {most}")
            if len(self._subjects) >= MOST_SUBJECTS:
                self._subjects.clear()
            self._subjects[subject] = size
        return size

    def _seal(self) -> None:
        """Make a segment of the updates that were collected."""
        batch = self._batch
        if batch.updates:
            self._last += 1
            segment = Batch(self._source, on_wire(self._last), batch.take(), batch.updates, batch.octets)
            self._outbox.append((segment, batch.octets))
            batch.clear()

    def _queue_large(self, subject: str, content: bytes) -> None:
        for flags, part, name, total in parts_of(subject, content, self._config.segment):
            self._last += 1
            fragment = Fragment(self._source, on_wire(self._last), flags, part, name, total)
            self._outbox.append((fragment, size_of(fragment)))

    # Sending

    def wake(self, now: float) -> None:
        """Send what is due."""
        if not self._full:
            if self._heartbeat_at <= now:
                self._beat(now)
            if self._configuration_at <= now:
                self._announce(now)
        self._send_due(now)

    def resume(self, now: float) -> None:
        """Send again after the network was full."""
        self._full = False
        self.wake(now)

    def _announce(self, now: float) -> None:
        """Send a configuration."""
        config = self._config
        intervals = (round(config.heartbeat * 1000), round(config.configuration * 1000))
        self._send(Configuration(self._source, *endpoint_of(self._group), self._start, *intervals, self._identity.name))
        self._configuration_at = now + config.configuration

    def _beat(self, now: float) -> None:
        """Send a heartbeat, unless an update was sent since the time of the one before."""
        if not self._has_news:
            self._send(Heartbeat(self._source, *endpoint_of(self._group), self._start, on_wire(self._sent)))
        self._has_news = False
        self._heartbeat_at = now + self._config.heartbeat

    def _send(self, message: Message) -> None:
        if self.ports.send(Packet(message, size_of(message), self._group)):
            self._full = True

    def _send_due(self, now: float) -> None:
        """Send what the rate allows, retransmissions and new segments in turn."""
        while not self._full and self._free_at <= now:
            has_answer, has_segment = self._answers.due_at <= now, self._has_segment(now)
            if has_answer and not (has_segment and self._was_answer):
                self._was_answer = True
                self._answer(now)
            elif has_segment:
                self._was_answer = False
                self._send_next(now)
            else:
                break
        if self.is_blocked and len(self._outbox) < self._config.queue:
            self.is_blocked = False
            self.ports.notify(PublisherUnblocked())
        if not self._outbox and not self._batch.updates:
            if self._is_flushing and not self._full:
                self._is_flushing = self._has_news = False
                self._beat(now)
            if not self._is_idle:
                self._is_idle = True
                self.ports.notify(PublisherIdle())
        self._set_deadline()

    def _has_segment(self, now: float) -> bool:
        """Return whether a segment is ready; one that has room stays open as long as others wait before it."""
        if not self._outbox and self._batch.updates and self._hold_back.until(self._batch.since, now) <= now:
            self._seal()
        return bool(self._outbox)

    def _send_next(self, now: float) -> None:
        segment, size = self._outbox.popleft()
        self._cache.add(segment, size, now)
        self._transmit(segment, size, now)
        self._sent += 1
        self._has_news = True
        self._hold_back.sent(now)
        self._counts["data_sent"] += 1
        if isinstance(segment, Batch):
            self.ports.notify(UpdatesSent(segment.updates))
        elif isinstance(segment, Fragment) and segment.flags == LAST:
            self.ports.notify(UpdatesSent(1))

    def _transmit(self, message: Message, size: int, now: float) -> None:
        """Send a message, which counts towards the rate."""
        if self.ports.send(Packet(message, size, self._group)):
            self._full = True
        self._counts["bytes_sent"] += size
        self._free_at = max(self._free_at, now - CATCH_UP) + size / self._config.limit

    def _set_deadline(self) -> None:
        """Set when something is due that does not wait for the network."""
        if self._full:
            self._due(inf)
            return
        due = self._answers.due_at
        if self._outbox:
            due = -inf
        elif self._batch.updates:
            due = min(due, self._hold_back.until(self._batch.since, self._batch.since))
        self._due(min(max(due, self._free_at), self._heartbeat_at, self._configuration_at))

    # Retransmissions

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take a request that is for this publisher."""
        if not isinstance(message, Request):
            return
        if (message.target_id, message.target_start) != (self._source.sender_id, self._source.start):
            return
        self._counts["requests_received"] += 1
        if len(self.requestors) < MOST_HOSTS:
            self.requestors[message.host_name[:64]] = None
        # What is due by now was not merged with what is requested now.
        self._send_due(now)
        low, high = max(unwrap(message.low, self._sent), 1), min(unwrap(message.high, self._sent), self._sent)
        self._cache.purge(now)
        first = self._cache.first
        last_gone = min(high, first - 1, low + NAKS_AT_ONCE * self._naks_in_one - 1)
        added = low <= last_gone and self._answers.request(low, last_gone, now)
        added |= max(low, first) <= high and self._answers.request(max(low, first), high, now)
        self._counts["requests_merged"] += low <= high and not added
        self._send_due(now)

    @property
    def _naks_in_one(self) -> int:
        """How many numbers fit into one NAK."""
        return (self._config.segment - OVERHEAD - 8) // 4

    def _answer(self, now: float) -> None:
        """Retransmit the next segment that is due, or state all that follow and are not cached any more."""
        number = self._answers.take()
        cached = self._cache.get(number)
        if cached is not None:
            segment, size = cached
            self._counts["repairs_sent"] += 1
            self._transmit(segment.again(), size, now)
            return
        gone = [number]
        while self._answers.due_at <= now and len(gone) < self._naks_in_one and self._answers.next < self._cache.first:
            gone.append(self._answers.take())
        self._refuse(gone, now)

    def _refuse(self, gone: Sequence[int], now: float) -> None:
        """State numbers that are not cached any more."""
        self._counts["naks_sent"] += 1
        nak = Nak(self._source, *endpoint_of(self._group), tuple(map(on_wire, gone)))
        self._transmit(nak, size_of(nak), now)

    def counts(self) -> dict[str, int]:
        """Return updates published, segments and retransmissions sent, requests received and merged with others, NAKs sent."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the bytes of the cache."""
        return {"cache": (self._cache.octets, self._config.cache)}

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the publisher: its counters, what waits, and its cache."""
        values = {**self._counts, "segments_queued": len(self._outbox), "rate": self._config.limit}
        known = {name: value for name, value in values.items() if value < inf}
        return Snapshot("session", self._group.name, known, {"role": "publisher"}, buffers(self.held()))
