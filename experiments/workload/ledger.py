"""The ledger of a run: for every message and subscription whether it was due, promised, delivered, repeated or expired.

A message is *due* in a subscription that matches it if it was published while the application wanted the subscription. It is
*promised* if the protocol accepted it, and the subscription was in effect from then to the end of the run: of one that was
interrupted, by a crash or a broken connection, nothing is promised that was under way. A message that is due and neither
delivered nor expired is *lost*; one that is promised and lost is *missing*, and *untold* if nobody was told that it is.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
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
    """Ranges of numbers within the life, of those that the protocol answers for."""
    sent: list[tuple[int, int]]
    """Of those that were sent, and nobody answers for."""
    expired: set[int]
    dropped: int


@dataclass(slots=True)
class _Published:
    """Messages of a publisher in all its lives."""

    name: str
    plan: MessagePlan
    lives: dict[int, _Life]
    blocked: float

    def times(self) -> Iterator[tuple[int, float]]:
        """Yield number and time of every message."""
        for life, found in sorted(self.lives.items()):
            for place, at in enumerate(found.at):
                yield life << LIFE_SHIFT | place, at

    def time_of(self, number: int) -> float | None:
        """Return when a message was published; None for one that was not, or in a life that nobody told of."""
        life, place = number >> LIFE_SHIFT, number & (1 << LIFE_SHIFT) - 1
        found = self.lives.get(life)
        return found.at[place] if found is not None and place < len(found.at) else None

    def is_known(self, number: int) -> bool:
        """Return whether the life of a message is known."""
        return number >> LIFE_SHIFT in self.lives

    def is_promised(self, number: int, survives: bool) -> bool:
        """Return whether a message was accepted, by a publisher that did not crash later unless accepted ones survive that."""
        life, place = number >> LIFE_SHIFT, number & (1 << LIFE_SHIFT) - 1
        if not survives and life != max(self.lives):
            return False
        return any(first <= place <= last for first, last in self.lives[life].accepted)

    def is_sent(self, number: int) -> bool:
        """Return whether a message was sent, by a publisher that did not crash later, and nobody answers for it."""
        life, place = number >> LIFE_SHIFT, number & (1 << LIFE_SHIFT) - 1
        return life == max(self.lives) and any(first <= place <= last for first, last in self.lives[life].sent)

    def is_expired(self, number: int, at: float, end: float) -> bool:
        """Return whether a message, published at `at`, expired at its publisher, or has expired by `end`."""
        if self.plan.work.expires is not None and at + self.plan.work.expires <= end:
            return True
        return number & (1 << LIFE_SHIFT) - 1 in self.lives[number >> LIFE_SHIFT].expired


@dataclass(slots=True)
class _Tally:
    """The account of one subscription while it is made."""

    first: dict[Key, float] = field(default_factory=dict)
    repeated: int = 0
    octets: int = 0
    in_order: bool = True
    latencies: list[float] = field(default_factory=list)


class _ToldLost:
    """The messages of which a subscriber was told that they are lost; `rows` are those of its result."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._ranges = [(publisher, first, last) for publisher, _, first, last, _ in rows if first is not None]
        self._gone = {publisher for publisher, _, first, _, _ in rows if first is None}

    def has(self, key: Key, is_passed: bool) -> bool:
        """Return whether it was told that a message is lost.

        `is_passed`: whether a later one was delivered. Of a publisher that is gone only the number of lost ones is told, all of
        them after the last delivered one.
        """
        publisher, number = key
        if publisher in self._gone and not is_passed:
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
        """What nobody told, or has not told yet. It breaks the rule `told` at the end of a run in which nothing goes on."""

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
        self._published[plan.client] = _Published(name, plan, lives, result.get("blocked", 0.0))

    def add_subscriber(self, name: str, result: Mapping[str, Any]) -> list[SubscriptionAccount]:
        """Enter the result of a subscriber, after those of all publishers; return the accounts of its subscriptions."""
        told_expired = {(publisher, number) for publisher, number in result.get("expired", ())}
        told_lost = _ToldLost(result.get("lost", ()))
        gaps = Gaps() if self.guarantees.tells else None
        entries = result.get("subscriptions", ())
        made = [self._account(name, entry, told_expired, told_lost, gaps) for entry in entries]
        if gaps is not None:
            told = count_told(result["lost"], max((_steady_from(entry) for entry in entries), default=inf)) if entries else {}
            self._check_gaps(name, gaps, told)
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
        for key, at, published in self._due(subscription, *entry["wanted"]):
            publisher, number = key
            # What was not delivered in its time may have been dropped anywhere, and must not be delivered later.
            came, over = key in tally.first, key in expired or published.is_expired(number, at, self._end)
            answered = published.is_promised(number, self.guarantees.survives_publisher)
            due, first_due = due + 1, min(first_due, at)
            gone += over and not came
            lost += not came and not over
            if answered and (came or (at >= steady and not over)):
                promised += 1
                missing += not came
                is_passed = number < latest.get(publisher, -1)
                if not came and not told_lost.has(key, is_passed):
                    untold += 1
                    self._note_untold(at, name, key, is_passed)
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
        """Add what is missing in a subscription since it is in effect, of what its publishers answer for or have sent."""
        steady, survives = _steady_from(entry), self.guarantees.survives_publisher
        due = []
        for key, at, published in self._due(subscription, *entry["wanted"]):
            came, number = key in tally.first, key[1]
            is_over = not came and (key in expired or published.is_expired(number, at, self._end))
            if at >= steady and not is_over and (came or published.is_promised(number, survives) or published.is_sent(number)):
                due.append((self._stream(published, number), key, came))
        delivered = [key for key, at in tally.first.items() if at >= steady]
        gaps.add([(self._stream(self._published[key[0]], key[1]), key) for key in delivered], due)

    def _due(self, subscription: Subscription, begin: float, end: float | None) -> Iterator[tuple[Key, float, _Published]]:
        """Yield what was published for the subscription while it was wanted: key, time and publisher."""
        for publisher, published in self._published.items():
            for number, at in published.times():
                if begin <= at < (inf if end is None else end) and self._is_match(subscription, published, number):
                    yield (publisher, number), at, published

    def _is_match(self, subscription: Subscription, published: _Published, number: int) -> bool:
        fields = published.plan.fields(number) if subscription.selector else {}
        return self.guarantees.matches(subscription, published.plan.work.to, fields)

    def _deliveries(
        self, name: str, subscription: Subscription, rows: Mapping[str, Sequence[Any]], spans: Sequence[tuple[float, Any]]
    ) -> _Tally:
        """Go through the deliveries in order, and check what is guaranteed of each."""
        tally, highest = _Tally(), dict[tuple[int, int], int]()
        begins = [begin for begin, _ in spans]
        in_span: set[tuple[int, int, int]] = set()
        for publisher, number, at in zip(rows["publisher"], rows["number"], rows["at"], strict=True):
            what = _named((publisher, number))
            published = self._published.get(publisher)
            if published is None or (published.is_known(number) and published.time_of(number) is None):
                self._break(at, name, "matches", f"{what} came, and was never published")
                continue
            if not self._is_match(subscription, published, number):
                self._break(at, name, "matches", f"{what} came, and does not match {subscription.destination}")
            span = bisect_left(begins, at)
            if (publisher, number) in tally.first:
                tally.repeated += 1
                if self.guarantees.once and (publisher, number, span) in in_span:
                    self._break(at, name, "once", f"{what} came twice")
            else:
                self._enter(tally, published, number, at)
                stream = self._stream(published, number)
                if number < highest.get(stream, -1):
                    tally.in_order = False
                    if self.guarantees.fifo:
                        self._break(at, name, "fifo", f"{what} came after {highest[stream]}")
                highest[stream] = max(number, highest.get(stream, -1))
            in_span.add((publisher, number, span))
        return tally

    def _stream(self, published: _Published, number: int) -> tuple[int, int]:
        """Return publisher and priority (0 if that does not matter), within which messages are sent in order."""
        return published.plan.client, published.plan.priority(number) if self.guarantees.fifo_by_priority else 0

    @staticmethod
    def _enter(tally: _Tally, published: _Published, number: int, at: float) -> None:
        tally.first[published.plan.client, number] = at
        tally.octets += published.plan.size(number)
        sent = published.time_of(number)
        if sent is not None:
            tally.latencies.append(at - sent)

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
        numbers, times = [], []
        for number, at in published.times():
            numbers.append(number)
            times.append(at)
        span = times[-1] - times[0] if len(times) > 1 else 0.0
        lives = published.lives.values()
        return PublisherAccount(
            name=published.name,
            to=published.plan.work.to,
            published=len(numbers),
            bytes=sum(map(published.plan.size, numbers)),
            accepted=sum(last - first + 1 for life in lives for first, last in life.accepted),
            expired=sum(len(life.expired) for life in lives),
            dropped=sum(life.dropped for life in lives),
            blocked=published.blocked,
            rate=(len(times) - 1) / span if span > 0 else None,
        )

    def began_at(self) -> float | None:
        """Return the time of the first message; None without one."""
        return min((at for published in self._published.values() for _, at in published.times()), default=None)

    def expected(self) -> dict[Key, tuple[int, None]]:
        """Return the size of every message by publisher and number."""
        return {
            (publisher, number): (published.plan.size(number), None)
            for publisher, published in self._published.items()
            for number, _ in published.times()
        }

    def plain(self) -> dict[str, list[dict[str, Any]]]:
        """Return the tables of the ledger as plain values."""
        return {
            "publishers": [asdict(row) for row in self.publishers()],
            "subscriptions": [asdict(row) for row in self.subscriptions],
        }
