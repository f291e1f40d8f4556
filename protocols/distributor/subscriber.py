"""The subscriber of a connection: follows every publisher it hears, and delivers what matches its subscriptions."""

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Any, ClassVar, Final

from protocols.distributor.config import DistributorConfig
from protocols.distributor.events import (
    ConnectionNagging,
    PublisherGone,
    PublisherHeard,
    QueueOverflowed,
    SegmentsLost,
    UpdatesReceived,
)
from protocols.distributor.identity import AnyIdentity
from protocols.distributor.messages import (
    Configuration,
    Content,
    Heartbeat,
    Nak,
    Request,
    Segment,
    Source,
    SubjectUpdates,
    sender_key,
)
from protocols.distributor.nagging import NaggingMonitor
from protocols.distributor.publisher_state import PublisherState
from protocols.distributor.requests import Requests
from protocols.distributor.serial import on_wire
from protocols.distributor.subscriptions import SubjectSubscriptions
from protocols.distributor.wire import size_of
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from protocols.messaging import Subscribed, Subscription, SubscriptionEnded
from protocols.norm.maps import SmallDict
from protocols.snapshot import Snapshot, buffers
from protocols.subscriptions import shared_table

__all__ = ["DistributorSubscriber"]

MOST_HOSTS = 64
"""Addresses of publishers that are remembered because they were requested to retransmit."""
MOST_PUBLISHERS = 4096
"""Publishers that are followed at the same time."""
LONGEST_DELAY = 1.0
"""Seconds by which a datagram, or the clock of its sender, may be late."""
COUNTERS = (
    "messages_received",
    "messages_unmatched",
    "bytes_received",
    "requests_sent",
    "requests_heard",
    "segments_lost",
    "publishers_heard",
    "publishers_gone",
)

Key = tuple[int, ...]
_NONE: Final[dict[Any, Any]] = {}
"""An empty table, shared by all subscribers that have no entry; never modified."""


@lru_cache(maxsize=4)
def _received(source: Source, subject: str, contents: tuple[Content, ...], subscriptions: tuple[int, ...]) -> UpdatesReceived:
    """Return the event of updates; in simulations most nodes have an equal one at the same time."""
    return UpdatesReceived(source, subject, contents, subscriptions)


class DistributorSubscriber(Machine):
    """Member of the group while it has subscriptions; without any it forgets all publishers."""

    __slots__ = (
        "_asking",
        "_check_at",
        "_config",
        "_gone",
        "_group",
        "_has_overflowed",
        "_identity",
        "_is_nagging",
        "_monitor",
        "_receptions",
        "_silent",
        "_since",
        "_started",
        "_subscriptions",
        "_window_at",
        "asked",
        "kept",
        "waiting",
        *COUNTERS,
    )
    state_type: ClassVar[type[PublisherState]] = PublisherState
    requests_type: ClassVar[type[Requests]] = Requests
    monitor_type: ClassVar[type[NaggingMonitor]] = NaggingMonitor

    def __init__(self, ports: Ports, config: DistributorConfig, identity: AnyIdentity, group: Group) -> None:
        super().__init__(ports)
        self._config = config
        self._identity = identity
        self._group = group
        self._subscriptions = shared_table(SubjectSubscriptions)
        self._receptions: SmallDict[PublisherState] = SmallDict()
        # The next segments of publishers that have fallen silent.
        self._silent: dict[Key, int] = _NONE
        # Those of which something is missing.
        self._asking: dict[Key, PublisherState] = _NONE
        self._monitor: NaggingMonitor | None = None
        if config.nagging_window:
            self._monitor = self.monitor_type(config.nagging_window, config.nagging_check, config.nagging_max)
        # When the machine was started, and when it began to listen, in seconds.
        self._started = self._since = 0.0
        self._check_at = self._window_at = inf
        self._is_nagging = self._has_overflowed = False
        self.kept = 0
        """Bytes of segments that wait for earlier ones, and of parts of large updates."""
        self.waiting = 0
        """Segments that wait for earlier ones."""
        self.asked: tuple[int, ...] = ()
        """Addresses of publishers that were requested to retransmit, the first `MOST_HOSTS`."""
        self.messages_received = self.messages_unmatched = self.bytes_received = 0
        self.requests_sent = self.requests_heard = self.segments_lost = 0
        self.publishers_heard = self.publishers_gone = 0
        # What was counted for publishers that are gone.
        self._gone: dict[str, int] = _NONE

    def start(self, now: float) -> None:
        """Wait for subscriptions."""
        self._started = now

    @property
    def most_kept(self) -> int:
        """Most bytes of received segments that are stored before they can be delivered."""
        return self._config.receive_queue

    # Subscriptions

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on. UsageError for a number in use, and for a pattern that nothing can match."""
        is_first = not len(self._subscriptions)
        self._subscriptions = self._subscriptions.added(subscription)
        if self._is_nagging:
            self.ports.notify(SubscriptionEnded(subscription.number, "nagging"))
            return
        if is_first:
            self._begin(now)
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription. UsageError for an unknown number."""
        self._subscriptions = self._subscriptions.removed(number)
        if not len(self._subscriptions) and not self._is_nagging:
            self._end()

    def _begin(self, now: float) -> None:
        self._since = now
        self.ports.join(self._group)
        if self._config.nagging_window:
            self._window_at = now + self._config.nagging_window
        self._set_deadline()

    def _end(self) -> None:
        """Leave the group, and forget all publishers."""
        self.ports.leave(self._group)
        for reception in self._receptions.values():
            self._forget(reception)
        self._silent = _NONE
        self.kept = self.waiting = 0
        self._check_at = self._window_at = inf
        self._set_deadline()

    # Publishers

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take a message of a publisher, or the request of another subscriber."""
        if self._is_nagging or not len(self._subscriptions):
            return
        if isinstance(message, (Segment, Heartbeat)):
            reception = self._hear(message.source, now)
            self.bytes_received += size_of(message)
            if reception is not None and self._is_synchronised(reception, message):
                self._take(reception, message, now)
        elif isinstance(message, Configuration):
            self._configure(message, now)
        elif isinstance(message, Nak):
            self._take_refusal(message, now)
        elif isinstance(message, Request):
            self._overhear(message, now)
        self._set_deadline()

    def _key_of(self, source: Source) -> Key:
        """Return the key of a publisher."""
        return sender_key(source)

    def _hear(self, source: Source, now: float) -> PublisherState | None:
        """Return what is known of a publisher, which may be new; None if there are too many."""
        key = self._key_of(source)
        reception = self._receptions.get(key)
        if reception is None:
            if len(self._receptions) >= MOST_PUBLISHERS:
                return None
            self._end_before(source)
            began_after = on_wire(source.start - round((self.ports.epoch + self._since) * 1000)) >= 0
            expected = self._silent.pop(key, None)
            reception = self.state_type(source, began_after, self._config, self)
            if expected is not None:
                reception.go_on_at(expected)
            self._receptions[key] = reception
            self.publishers_heard += 1
            self._check_at = min(self._check_at, now + self._patience(reception))
            self.ports.notify(PublisherHeard(source, ""))
        reception.heard_at = now
        return reception

    def _end_before(self, source: Source) -> None:
        """Give up what is missing of earlier publishers with this address and id, which have restarted and no longer have it.

        They are followed on, since addresses and ids may collide; one that was heard well after the start has not restarted.
        """
        for reception in list(self._asking.values()):
            known = reception.source
            heard = round((self.ports.epoch + reception.heard_at - LONGEST_DELAY) * 1000)
            if known[:2] == source[:2] and on_wire(source.start - known.start) > 0 and on_wire(source.start - heard) > 0:
                reception.close("the publisher has restarted")
                self._note_requests(reception)

    def _configure(self, message: Configuration, now: float) -> None:
        reception = self._hear(message.source, now)
        if reception is None:
            return
        is_news = message.application != reception.application
        reception.configure(message)
        self._check_at = min(self._check_at, now + self._patience(reception))
        if is_news:
            self.ports.notify(PublisherHeard(reception.source, message.application))

    def _is_synchronised(self, reception: PublisherState, message: Segment | Heartbeat) -> bool:
        """Return whether it is known which segment comes next; find it out by a message if it can be.

        Subscriptions are in effect from then on, unless the publisher is received from its first segment.
        """
        if reception.expected is not None:
            return True
        if not reception.synchronise(message):
            return False
        if not reception.from_start:
            for subscription in self._subscriptions:
                self.ports.notify(Subscribed(subscription.number))
        return True

    def _take(self, reception: PublisherState, message: Segment | Heartbeat, now: float) -> None:
        if isinstance(message, Heartbeat):
            reception.hear_last(message, now)
        elif not reception.receive(message, now):
            self._note_overflow(message)
        if self._has_overflowed and 2 * self.kept < self.most_kept:
            self._has_overflowed = False
        self._note_requests(reception)

    def _note_overflow(self, segment: Segment) -> None:
        """Report a segment for which there was no room; further ones until the queue is half empty are not reported."""
        if self.ports.trace is not None:
            self.ports.trace("segment_dropped", {"segment": segment.brief})
        if not self._has_overflowed:
            self._has_overflowed = True
            self.ports.notify(QueueOverflowed(self.kept))

    def _take_refusal(self, message: Nak, now: float) -> None:
        """Give up what a publisher can't retransmit."""
        reception = self._receptions.get(self._key_of(message.source))
        if reception is not None:
            reception.heard_at = now
            reception.refuse(message.seqnos)
            self._note_requests(reception)

    def deliver(self, source: Source, subjects: Sequence[SubjectUpdates]) -> None:
        """Report updates that match subscriptions."""
        for updates in subjects:
            matching = self._subscriptions.numbers_of(updates.subject)
            if matching:
                self.messages_received += len(updates.contents)
                self.ports.notify(_received(source, updates.subject, tuple(updates.contents), matching))
            else:
                self.messages_unmatched += len(updates.contents)

    def lose(self, source: Source, first: int, count: int, reason: str, is_last: bool) -> None:
        """Report segments that are left out."""
        self.segments_lost += count
        self.ports.notify(SegmentsLost(source, first, count, reason, is_last))

    # Requests

    def new_requests(self) -> Requests:
        """Return requests for a publisher of which the first segment is missing."""
        return self.requests_type(self._config, self.ports.rng)

    def _note_requests(self, reception: PublisherState) -> None:
        """Keep apart the publishers of which something is missing."""
        if reception.requests:
            if not self._asking:
                self._asking = {}
            self._asking[self._key_of(reception.source)] = reception
        elif self._asking:
            self._asking.pop(self._key_of(reception.source), None)

    def _overhear(self, message: Request, now: float) -> None:
        """Let a request of another subscriber suppress own ones."""
        self.requests_heard += 1
        for reception in self._asking.values():
            source = reception.source
            if (source.sender_id, source.start) == (message.target_id, message.target_start):
                before = reception.requests.suppressed
                reception.overhear(message.low, message.high, now)
                if self.ports.trace is not None and reception.requests.suppressed > before:
                    self.ports.trace("request_suppressed", {"by": message.brief, "of": source.sender_id})

    def _request(self, reception: PublisherState, low: int, high: int) -> None:
        """Request a range of segments."""
        who, target = self._identity, reception.source
        names = (who.host_name, who.name)
        first, last = on_wire(low), on_wire(high)
        source = who.source(round((self.ports.epoch + self._started) * 1000))
        request = Request(source, who.host, target.sender_id, target.start, first, last, *names)
        self.ports.send(Packet(request, size_of(request), self._group))
        self.requests_sent += 1
        if target.host not in self.asked and len(self.asked) < MOST_HOSTS:
            self.asked += (target.host,)
        if self._monitor is not None:
            self._monitor.count()

    # Time

    def wake(self, now: float) -> None:
        """Request what is due, forget publishers that are gone, and look whether this connection nags."""
        for reception in [reception for reception in self._asking.values() if reception.due_at <= now]:
            for low, high in reception.ask(now):
                self._request(reception, low, high)
            self._note_requests(reception)
        if self._check_at <= now:
            self._forget_silent(now)
        if self._window_at <= now:
            self._window_at = now + self._config.nagging_window
            requests = None if self._monitor is None else self._monitor.end_window()
            if requests is not None:
                self._give_up(requests)
        self._set_deadline()

    def _patience(self, reception: PublisherState) -> float:
        """Return for how many seconds a publisher may be silent."""
        return (self._config.heartbeats_lost + 1) * reception.interval

    def _forget_silent(self, now: float) -> None:
        for reception in self._receptions.values():
            if reception.heard_at + self._patience(reception) <= now:
                reception.close("the publisher is gone")
                self._forget(reception)
                self._remember(reception)
                self.publishers_gone += 1
                self.ports.notify(PublisherGone(reception.source))
        times = [known.heard_at + self._patience(known) for known in self._receptions.values()]
        self._check_at = min(times, default=inf)

    def _remember(self, reception: PublisherState) -> None:
        """Remember where a publisher fell silent: if it is heard again, nothing is delivered twice."""
        if reception.expected is not None:
            if not self._silent:
                self._silent = {}
            if len(self._silent) >= MOST_PUBLISHERS:
                del self._silent[next(iter(self._silent))]
            self._silent[self._key_of(reception.source)] = reception.expected

    def _forget(self, reception: PublisherState) -> None:
        key = self._key_of(reception.source)
        del self._receptions[key]
        self._asking.pop(key, None)
        self._gone = {name: self._gone.get(name, 0) + count for name, count in reception.counts().items()}

    def _give_up(self, requests: int) -> None:
        """Stop receiving."""
        self._is_nagging = True
        self._end()
        self.ports.notify(ConnectionNagging(requests))
        for subscription in self._subscriptions:
            self.ports.notify(SubscriptionEnded(subscription.number, "nagging"))

    def _set_deadline(self) -> None:
        due = min(self._check_at, self._window_at)
        if self._asking:
            due = min(due, *[reception.due_at for reception in self._asking.values()])
        self._due(due)

    # What others ask

    def counts(self) -> dict[str, int]:
        """Return updates delivered and unmatched, requests sent and suppressed, and segments by what became of them."""
        counts = {**{name: getattr(self, name) for name in COUNTERS}, **self._gone}
        for reception in self._receptions.values():
            for name, count in reception.counts().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the bytes that wait, and the publishers that are followed."""
        return {
            "receive queue": (self.kept, self.most_kept),
            "publishers": (len(self._receptions), MOST_PUBLISHERS),
        }

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the subscriber, and of each publisher that it follows."""
        publishers = [reception.snapshot(now) for reception in self._receptions.values()]
        values = {**self.counts(), "subscriptions": len(self._subscriptions)}
        states = {"role": "subscriber", "activity": "nagging" if self._is_nagging else "receiving"}
        return Snapshot("session", self._group.name, values, states, [*publishers, *buffers(self.held())])
