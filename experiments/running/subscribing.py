"""The application of a subscriber: subscribes, and keeps an account of what is delivered, in every world alike."""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf, nextafter
from typing import Any, cast

from experiments.running.lives import NO_COUNTS, total_counts
from experiments.running.role_node import RoleNode
from experiments.workload.bodies import body_of
from experiments.workload.publish import MessagePlan
from experiments.workload.subscribe import SubscribeWorkload
from protocols.hosting import PortsHost
from protocols.machine import Event
from protocols.messaging import (
    MessageExpired,
    MessageReceived,
    MessagesLost,
    Publication,
    PublisherSubscriber,
    Subscribed,
    Subscriber,
    Subscription,
    SubscriptionEnded,
)

__all__ = ["SubscriberProgram"]


class _Account:
    """One subscription: when it was in effect, and what was delivered; times are in seconds."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.spans: list[list[Any]] = []
        self.publishers: list[int] = []
        self.numbers: list[int] = []
        self.at: list[float] = []

    def begin(self, now: float) -> None:
        """The subscription is in effect from `now` on, in seconds."""
        self.end(now, "repeated")
        self.spans.append([now, None, ""])

    def end(self, now: float, why: str) -> None:
        """The subscription is not in effect any more, if it was."""
        if self.spans and self.spans[-1][1] is None:
            self.spans[-1][1:] = [now, why]

    def deliver(self, message: Publication, now: float) -> None:
        """Enter a message."""
        self.publishers.append(message.publisher)
        self.numbers.append(message.number)
        self.at.append(now)

    def plain(self, wanted: tuple[float, float | None]) -> dict[str, Any]:
        """Return plain values."""
        return {
            "number": self.subscription.number,
            "destination": self.subscription.destination,
            "selector": self.subscription.selector,
            "wanted": list(wanted),
            "spans": self.spans,
            "delivered": {"publisher": self.publishers, "number": self.numbers, "at": self.at},
        }


class SubscriberProgram:
    """Subscribe to what the workload names; a run does not wait for it.

    `plans` are those of all publishers by their node ids, for the comparison of messages; `bodies` is the seed of their bodies,
    None where they have a size only.
    """

    def __init__(self, node: RoleNode, work: SubscribeWorkload, plans: Mapping[int, MessagePlan], bodies: int | None) -> None:
        self._node = node
        self._work = work
        self._plans = plans
        self._bodies = bodies
        self._host: PortsHost | None = None
        self.machine: Subscriber | None = None
        self._earlier = NO_COUNTS
        """Counters of the machines before crashes and absences."""
        self._restarts = -1
        self._is_down = self._is_away = self._is_subscribed = self._is_subscribing = False
        self._expired: list[list[int]] = []
        self._lost: list[list[float | None]] = []
        self._damaged = 0
        self._accounts = [_Account(Subscription(n, to, work.selector)) for n, to in enumerate(work.to)]

    def start(self, host: PortsHost) -> None:
        """Schedule the subscriptions; a call after a crash does so again."""
        self._host = host
        self._restarts += 1
        self._is_down = self._is_away = self._is_subscribed = False
        work = self._work
        if work.until is None or work.until > host.now:
            self._at(work.at, self._subscribe)
            if work.until is not None:
                self._at(work.until, self._unsubscribe)

    @property
    def _counted(self) -> Subscriber | None:
        """The machine whose counters are those of the subscriber."""
        return self.machine.subscriber if isinstance(self.machine, PublisherSubscriber) else self.machine

    def _subscribe(self) -> None:
        """Run a subscriber, which takes part from now on."""
        host = self._host
        assert host is not None
        self._earlier = total_counts(self._earlier, self._counted)
        machine = self.machine = cast(Subscriber, self._node.make(host, self._restarts))
        host.run(machine, self._on_event)
        self._is_subscribed = self._is_subscribing = True
        for account in self._accounts:
            host.call(machine.subscribe, account.subscription)
        self._is_subscribing = False

    def _at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at `when` seconds, or now if that is past, unless the host crashes before."""
        assert self._host is not None
        if when <= self._host.now:
            action()
        else:
            self._host.later(when, partial(self._in_life, self._restarts, action))

    def _in_life(self, restarts: int, action: Callable[[], None]) -> None:
        if restarts == self._restarts and not self._is_down:
            action()

    def _unsubscribe(self) -> None:
        """End the subscriptions, and the subscriber."""
        host, machine = self._host, self.machine
        assert host is not None
        assert machine is not None
        self._is_subscribed = False
        for account in self._accounts:
            host.call(machine.unsubscribe, account.subscription.number)
            account.end(host.now, "unsubscribed")
        host.stop()

    def leave(self) -> None:
        """Unsubscribe until `come`; one that has not subscribed yet does so no earlier than that."""
        if self._host is None or self._is_down:
            return
        if self._is_subscribed:
            self._unsubscribe()
        self._is_down = self._is_away = True

    def come(self) -> None:
        """Subscribe again after `leave`, unless the host crashed meanwhile."""
        if self._is_away and self._host is not None:
            self.start(self._host)

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes, in other processes, from which the instance follows; call before `start`."""
        self._restarts = times - 1

    def crash(self) -> None:
        """Handle a crash of the host: its subscriptions end."""
        self._earlier, self.machine = total_counts(self._earlier, self._counted), None
        self._is_down, self._is_away, self._is_subscribed = True, False, False
        for account in self._accounts if self._host is not None else ():
            account.end(self._host.now, "crashed")  # type: ignore[union-attr]

    def _on_event(self, event: Event) -> None:
        assert self._host is not None
        now = self._host.now
        if isinstance(event, MessageReceived):
            if event.message.expires_at <= self._host.epoch + now:
                self._expired.append([event.message.publisher, event.message.number])
                return
            self._accounts[event.subscription].deliver(event.message, now)
            self._damaged += not self._is_intact(event.message)
        elif isinstance(event, Subscribed):
            # If a server has the subscription, what was published at this very instant may have come to it before.
            self._accounts[event.number].begin(now if self._is_subscribing else nextafter(now, inf))
        elif isinstance(event, SubscriptionEnded):
            self._accounts[event.number].end(now, event.reason)
        elif isinstance(event, MessageExpired):
            self._expired.append([event.publisher, event.number])
        elif isinstance(event, MessagesLost):
            self._lost.append([event.publisher, event.count, event.first, event.last, now])

    def _is_intact(self, message: Publication) -> bool:
        """Return whether a message is the one its publisher planned."""
        plan = self._plans.get(message.publisher)
        if plan is None or message.size != plan.size(message.number) or message.destination != plan.work.to:
            return False
        if plan.work.properties and dict(message.properties) != plan.properties(message.number):
            return False
        return self._bodies is None or message.body == body_of(self._bodies, plan.client, message.number, message.size)

    def finished(self) -> bool:
        """Return True, since a run does not wait for subscribers."""
        return True

    def result(self) -> dict[str, Any]:
        """Return what was delivered, as plain values."""
        wanted = (self._work.at, self._work.until)
        return {
            "role": "subscriber",
            "subscriptions": [account.plain(wanted) for account in self._accounts],
            "expired": self._expired,
            "lost": self._lost,
            "damaged": self._damaged,
            "counts": total_counts(self._earlier, self._counted),
        }
