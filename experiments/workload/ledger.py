"""The ledger of a run: for every message and subscription whether it was due, promised, delivered, repeated or expired.

A message is *due* in a subscription that matches it if it was published while the application wanted the subscription. It is
*promised* if the protocol accepted it, and the subscription was in effect from then to the end of the run: of one that was
interrupted, by a crash or a broken connection, nothing is promised that was under way. A message that is due and neither
delivered nor expired is *lost*; one that is promised and lost is *missing*, and *untold* if its subscriber was not notified.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any, NamedTuple, TypeAlias

from experiments.workload.gaps import Gaps, count_told
from experiments.workload.publish import LIFE_SHIFT, MessagePlan
from protocols.messaging import Guarantees, Subscription

__all__ = ["Broken", "Ledger", "PublisherAccount", "SubscriptionAccount"]

Key: TypeAlias = tuple[int, int]
"""Publisher and number of a message."""


class Broken(NamedTuple):
    """A guarantee that was broken: when (seconds), the row of the subscriber, the rule, and what happened."""

    at: float
    host: str
    rule: str
    what: str


@dataclass(frozen=True, slots=True)
class PublisherAccount:
    """Messages of one publisher; `blocked` is in seconds, `rate` in messages per second while it published."""

    name: str
    to: str
    published: int
    bytes: int
    accepted: int
    expired: int
    dropped: int
    blocked: float
    rate: float | None


@dataclass(frozen=True, slots=True)
class SubscriptionAccount:
    """What became of the messages of one subscription. Latencies are in seconds, from publishing to delivery.

    `interruptions`: how often it ceased to be in effect before the application ended it.
    """

    name: str
    to: str
    due: int
    promised: int
    delivered: int
    bytes: int
    repeated: int
    expired: int
    lost: int
    missing: int
    untold: int
    in_order: bool
    interruptions: int
    latency_p50: float | None
    latency_p99: float | None
    latency_max: float | None
    goodput_mbit_s: float | None
    first_at: float | None
    last_at: float | None


@dataclass(slots=True)
class _Life:
    """Life of a publisher between two crashes of its host: times of messages by their order, and what became of them."""

    at: list[float]
    accepted: list[tuple[int, int]]
    """Ranges of numbers within the life, of messages that the protocol accepted."""
    sent: list[tuple[int, int]]
    """Ranges of numbers of messages that were sent and not accepted."""
    expired: set[int]
    dropped: int


class _Message(NamedTuple):
    """A message of a publisher, published at `at` seconds, or inf where the result of the publisher lacks that life.

    `octets` is the size of its body; `stream` has publisher and priority (0 if that does not matter), within which messages are
    sent in order. `is_expired`: it expired at its publisher or by the end of the run; `is_promised`: it was accepted, by a
    publisher that did not crash later unless accepted ones survive that; `is_sent`: it was sent and not accepted, by a
    publisher that did not crash later.
    """

    number: int
    at: float
    octets: int
    stream: tuple[int, int]
    is_expired: bool
    is_promised: bool
    is_sent: bool


class _Published:
    """Messages of a publisher in all its lives, in a run of `end` seconds."""

    def __init__(
        self, name: str, plan: MessagePlan, lives: Mapping[int, _Life], blocked: float, guarantees: Guarantees, end: float
    ) -> None:
        self.name, self.plan, self.lives, self.blocked = name, plan, lives, blocked
        self._guarantees = guarantees
        self._by_life = {number: self._messages(number, lives[number], end) for number in sorted(lives)}

    def __iter__(self) -> Iterator[_Message]:
        return (message for messages in self._by_life.values() for message in messages)

    def find(self, number: int) -> _Message | None:
        """Return a message; None for one that was not published."""
        messages = self._by_life.get(number >> LIFE_SHIFT)
        if messages is None:
            return _Message(number, inf, self.plan.size(number), self.stream(number), False, False, False)
        place = number & (1 << LIFE_SHIFT) - 1
        return messages[place] if place < len(messages) else None

    def _messages(self, number: int, life: _Life, end: float) -> list[_Message]:
        is_last = number == max(self.lives)
        survives = is_last or self._guarantees.survives_publisher
        first, expires = number << LIFE_SHIFT, self.plan.work.expires
        return [
            _Message(
                first | place,
                at,
                self.plan.size(first | place),
                self.stream(first | place),
                place in life.expired or (expires is not None and at + expires <= end),
                survives and any(begin <= place <= last for begin, last in life.accepted),
                is_last and any(begin <= place <= last for begin, last in life.sent),
            )
            for place, at in enumerate(life.at)
        ]

    def stream(self, number: int) -> tuple[int, int]:
        """Return the stream of a message (`_Message`)."""
        return self.plan.client, self.plan.priority(number) if self._guarantees.fifo_by_priority else 0


@dataclass(slots=True)
class _Tally:
    """The account of one subscription while it is made."""

    first: dict[Key, float] = field(default_factory=dict)
    repeated: int = 0
    octets: int = 0
    in_order: bool = True
    latencies: list[float] = field(default_factory=list)

    def enter(self, key: Key, message: _Message, at: float) -> None:
        """Enter the first delivery of a message, at `at` seconds."""
        self.first[key] = at
        self.octets += message.octets
        if message.at < inf:
            self.latencies.append(at - message.at)


class _ToldLost:
    """The messages that a subscriber was notified to be lost; `rows` are those of its result."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._ranges = [(publisher, first, last) for publisher, _, first, last, _ in rows if first is not None]
        # Publisher -> when (seconds) the last notification had only the number of lost messages.
        self._counted = {publisher: at for publisher, _, first, _, at in rows if first is None}

    def has(self, key: Key, published_at: float, is_passed: bool) -> bool:
        """Return whether it was notified that a message is lost.

        `is_passed`: whether a later one was delivered. Of those behind the last delivered one only the number is told, when
        they are given up or the publisher is gone.
        """
        publisher, number = key
        if not is_passed and published_at <= self._counted.get(publisher, -inf):
            return True
        return any(other == publisher and first <= number <= last for other, first, last in self._ranges)


def _steady_from(entry: Mapping[str, Any]) -> float:
    """Return since when a subscription is in effect (seconds); inf for one that is not."""
    spans = entry["spans"]
    return float(spans[-1][0]) if spans and spans[-1][1] is None else inf


def _named(key: Key) -> str:
    return f"message {key[1]} of publisher {key[0]}"


class Ledger:
    """The accounts of a run of `end` seconds, from the results of its publishers and subscribers."""

    def __init__(self, guarantees: Guarantees, end: float) -> None:
        self.guarantees = guarantees
        self._end = end
        self._published: dict[int, _Published] = {}
        self.subscriptions: list[SubscriptionAccount] = []
        self.broken: list[Broken] = []
        self.untold: list[Broken] = []
        """Messages missing without a notification so far. They break the rule `told` at the end of a run that comes to rest."""

    def add_publisher(self, name: str, plan: MessagePlan, result: Mapping[str, Any]) -> None:
        """Enter the result of a publisher; a process that failed has none."""
        lives = {
            entry["life"]: _Life(
                entry["at"],
                [(a, b) for a, b in entry["accepted"]],
                [(a, b) for a, b in entry.get("sent", ())],
                set(entry["expired"]),
                entry["dropped"],
            )
            for entry in result.get("lives", ())
        }
        blocked = result.get("blocked", 0.0)
        self._published[plan.client] = _Published(name, plan, lives, blocked, self.guarantees, self._end)

    def add_subscriber(self, name: str, result: Mapping[str, Any]) -> list[SubscriptionAccount]:
        """Enter the result of a subscriber, after those of all publishers; return the accounts of its subscriptions."""
        told_expired = {(publisher, number) for publisher, number in result.get("expired", ())}
        told_lost = _ToldLost(result.get("lost", ()))
        gaps = Gaps() if self.guarantees.tells else None
        entries = result.get("subscriptions", ())
        made = [self._account(name, entry, told_expired, told_lost, gaps) for entry in entries]
        if gaps is not None:
            # What is missing may be of the subscription that was in effect first.
            self._check_gaps(name, gaps, count_told(result["lost"], min(map(_steady_from, entries), default=inf)))
        if result.get("damaged"):
            self._break(self._end, name, "intact", f"{result['damaged']} messages are not what was published")
        self.subscriptions += made
        return made

    # One subscription

    def _check_gaps(self, name: str, gaps: Gaps, told: Mapping[int, int]) -> None:
        """Record where fewer lost messages were reported than are missing."""
        unit = "messages" if self.guarantees.tells == "counts" else "gaps"
        for publisher, count in gaps.wanted(is_counted=unit == "messages").items():
            if told.get(publisher, 0) < count:
                what = f"{count} {unit} of publisher {publisher} are missing, and {told.get(publisher, 0)} were told"
                self.untold.append(Broken(self._end, name, "told", what))

    def _account(
        self, name: str, entry: Mapping[str, Any], expired: set[Key], told_lost: "_ToldLost", gaps: Gaps | None
    ) -> SubscriptionAccount:
        subscription = Subscription(entry["number"], entry["destination"], entry["selector"])
        spans: list[tuple[float, float | None]] = [(begin, end) for begin, end, _ in entry["spans"]]
        tally = self._deliveries(name, subscription, entry["delivered"], spans)
        due = promised = lost = missing = untold = gone = 0
        first_due = inf
        steady = _steady_from(entry)
        latest = self._latest(tally)
        for key, message in self._due(subscription, *entry["wanted"]):
            publisher, number = key
            # What was not delivered in its time may have been dropped anywhere, and must not be delivered later.
            came, over = key in tally.first, message.is_expired or key in expired
            due, first_due = due + 1, min(first_due, message.at)
            gone += over and not came
            lost += not came and not over
            if message.is_promised and (came or (message.at >= steady and not over)):
                promised += 1
                missing += not came
                is_passed = number < latest.get(publisher, -1)
                if not came and not told_lost.has(key, message.at, is_passed):
                    untold += 1
                    self._note_untold(message.at, name, key, is_passed)
        if gaps is not None and lost:
            self._add_gaps(gaps, subscription, entry, expired, tally)
        return SubscriptionAccount(
            name=name,
            to=subscription.destination,
            due=due,
            promised=promised,
            delivered=len(tally.first),
            bytes=tally.octets,
            repeated=tally.repeated,
            expired=gone,
            lost=lost,
            missing=missing,
            untold=untold,
            in_order=tally.in_order,
            interruptions=sum(why not in ("", "unsubscribed") for _, _, why in entry["spans"]),
            **self._times(tally, first_due),
        )

    def _note_untold(self, at: float, name: str, key: Key, is_passed: bool) -> None:
        """Record a promised message that is missing and was not reported; `is_passed`: a later one was delivered."""
        if self.guarantees.promised:
            self.untold.append(Broken(at, name, "told", f"{_named(key)} is lost, and nobody told"))
            if is_passed:
                self._break(at, name, "promised", f"{_named(key)} was skipped, and nobody told")

    def _add_gaps(
        self, gaps: Gaps, subscription: Subscription, entry: Mapping[str, Any], expired: set[Key], tally: _Tally
    ) -> None:
        """Add what is missing in a subscription since it is in effect, of messages that were accepted or sent."""
        steady = _steady_from(entry)
        due = []
        for key, message in self._due(subscription, *entry["wanted"]):
            came = key in tally.first
            is_over = not came and (message.is_expired or key in expired)
            if message.at >= steady and not is_over and (came or message.is_promised or message.is_sent):
                due.append((message.stream, key, came))
        delivered = [key for key, at in tally.first.items() if at >= steady]
        gaps.add([(self._published[key[0]].stream(key[1]), key) for key in delivered], due)

    def _due(self, subscription: Subscription, begin: float, end: float | None) -> Iterator[tuple[Key, _Message]]:
        """Yield what was published for the subscription while it was wanted."""
        behind = inf if end is None else end
        for publisher, published in self._published.items():
            matches = self._matcher(subscription, published)
            for message in published:
                if begin <= message.at < behind and matches(message.number):
                    yield (publisher, message.number), message

    def _matcher(self, subscription: Subscription, published: _Published) -> Callable[[int], bool]:
        """Return a function from the number of a publisher's message to whether the message matches the subscription."""
        matches, to, plan = self.guarantees.matches, published.plan.work.to, published.plan
        if subscription.selector:
            return lambda number: matches(subscription, to, plan.fields(number))
        is_match = matches(subscription, to, {})
        return lambda number: is_match

    def _deliveries(
        self, name: str, subscription: Subscription, rows: Mapping[str, Sequence[Any]], spans: Sequence[tuple[float, Any]]
    ) -> _Tally:
        """Go through the deliveries in order, and check what is guaranteed of each."""
        tally, highest = _Tally(), dict[tuple[int, int], int]()
        matchers = {publisher: self._matcher(subscription, published) for publisher, published in self._published.items()}
        begins = [begin for begin, _ in spans]
        in_spans: dict[Key, set[int]] = {}
        for publisher, number, at in zip(rows["publisher"], rows["number"], rows["at"], strict=True):
            key = publisher, number
            message = self._published[publisher].find(number) if publisher in self._published else None
            if message is None:
                self._break(at, name, "matches", f"{_named(key)} came, and was never published")
                continue
            if not matchers[publisher](number):
                self._break(at, name, "matches", f"{_named(key)} came, and does not match {subscription.destination}")
            if key in tally.first:
                tally.repeated += 1
                earlier = in_spans.setdefault(key, {bisect_left(begins, tally.first[key])})
                span = bisect_left(begins, at)
                if self.guarantees.once and span in earlier:
                    self._break(at, name, "once", f"{_named(key)} came twice")
                earlier.add(span)
                continue
            tally.enter(key, message, at)
            latest = highest.get(message.stream, -1)
            if number > latest:
                highest[message.stream] = number
            else:
                tally.in_order = False
                if self.guarantees.fifo:
                    self._break(at, name, "fifo", f"{_named(key)} came after {latest}")
        return tally

    @staticmethod
    def _latest(tally: _Tally) -> dict[int, int]:
        """Return the highest number that was delivered, by publisher."""
        found: dict[int, int] = {}
        for publisher, number in tally.first:
            found[publisher] = max(number, found.get(publisher, -1))
        return found

    @staticmethod
    def _times(tally: _Tally, first_due: float) -> dict[str, float | None]:
        """Return latencies and goodput; the time of the goodput begins with the first message that was due."""
        delays, times = sorted(tally.latencies), list(tally.first.values())
        span = max(times) - first_due if times else 0.0
        return {
            "latency_p50": delays[len(delays) // 2] if delays else None,
            "latency_p99": delays[min(len(delays) - 1, len(delays) * 99 // 100)] if delays else None,
            "latency_max": delays[-1] if delays else None,
            "goodput_mbit_s": tally.octets * 8e-6 / span if span > 0 else None,
            "first_at": min(times) if times else None,
            "last_at": max(times) if times else None,
        }

    def _break(self, at: float, host: str, rule: str, what: str) -> None:
        self.broken.append(Broken(at, host, rule, what))

    # The whole run

    def publishers(self) -> list[PublisherAccount]:
        """Return the accounts of the publishers."""
        return [self._publisher(published) for published in self._published.values()]

    @staticmethod
    def _publisher(published: _Published) -> PublisherAccount:
        messages = list(published)
        span = messages[-1].at - messages[0].at if len(messages) > 1 else 0.0
        lives = published.lives.values()
        return PublisherAccount(
            name=published.name,
            to=published.plan.work.to,
            published=len(messages),
            bytes=sum(message.octets for message in messages),
            accepted=sum(last - first + 1 for life in lives for first, last in life.accepted),
            expired=sum(len(life.expired) for life in lives),
            dropped=sum(life.dropped for life in lives),
            blocked=published.blocked,
            rate=(len(messages) - 1) / span if span > 0 else None,
        )

    def began_at(self) -> float | None:
        """Return the time of the first message; None without one."""
        return min((message.at for published in self._published.values() for message in published), default=None)

    def expected(self) -> dict[Key, tuple[int, None]]:
        """Return the size of every message by publisher and number."""
        return {
            (publisher, message.number): (message.octets, None)
            for publisher, published in self._published.items()
            for message in published
        }

    def plain(self) -> dict[str, list[dict[str, Any]]]:
        """Return the tables of the ledger as plain values."""
        return {
            "publishers": [asdict(row) for row in self.publishers()],
            "subscriptions": [asdict(row) for row in self.subscriptions],
        }
