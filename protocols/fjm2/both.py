"""A publisher and a subscriber as one machine, with one session of NORM: each receives the other's messages."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from protocols.event_layer import EventLayer
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectSent
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.service_class import classed_ports
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.machine import Offer, Ports, Sender, Sink
from protocols.messaging import (
    MessageAccepted,
    MessageExpired,
    Publication,
    PublisherIdle,
    PublisherSubscriber,
    PublisherUnblocked,
    Subscription,
)
from protocols.node import NodeMachine
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot
from protocols.spec import MakeReceiver, MakeSender

__all__ = ["Fjm2Both"]

_OF_PUBLISHERS = (ObjectSent, FlushCompleted, MessageAccepted, MessageExpired, PublisherIdle, PublisherUnblocked)


class Fjm2Both(EventLayer, PublisherSubscriber):
    """Publishes and subscribes with one node id.

    A host does not receive its own multicasts at the port they come from. Own subscriptions get a message when it was sent.
    """

    __slots__ = ("_node", "_publisher", "_subscriber")

    def __init__(self, make_sender: MakeSender, make_receiver: MakeReceiver, ports: Ports, context: RoleContext) -> None:
        config, node, group, instance = context.config, context.node, context.group, context.instance

        def sender(inner: Ports) -> Sender:
            return make_sender(classed_ports(inner, self.priority_of) if config.tos else inner, config, node, group, instance)

        session = NodeMachine(
            ports,
            node,
            sender,
            lambda inner: make_receiver(inner, config, node, group),
        )
        super().__init__(ports, session)
        self._node = node
        self._publisher = Fjm2Publisher(lambda *made_with: session.sender, ports, context)
        self._subscriber = Fjm2Subscriber(lambda *made_with: session.receiver, ports, context)

    @property
    def publisher(self) -> Fjm2Publisher:
        """See `PublisherSubscriber`."""
        return self._publisher

    @property
    def subscriber(self) -> Fjm2Subscriber:
        """See `PublisherSubscriber`."""
        return self._subscriber

    def priority_of(self, object_id: int) -> int | None:
        """See `Fjm2Publisher`."""
        return self._publisher.priority_of(object_id)

    def publish(self, message: Publication, now: float) -> bool:
        """See `Fjm2Publisher`."""
        return self._publisher.publish(message, now)

    def longest_queues(self) -> list[int]:
        """See `Fjm2Publisher`."""
        return self._publisher.longest_queues()

    @property
    def is_blocked(self) -> bool:
        """See `Fjm2Publisher`."""
        return self._publisher.is_blocked

    @property
    def limit(self) -> str:
        """See `Fjm2Publisher`."""
        return self._publisher.limit

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """See `Fjm2Subscriber`."""
        self._subscriber.subscribe(subscription, now)

    def unsubscribe(self, number: int, now: float) -> None:
        """See `Fjm2Subscriber`."""
        self._subscriber.unsubscribe(number, now)

    def offered(self, offer: Offer) -> Sink | None:
        """See `Fjm2Subscriber`."""
        return self._subscriber.offered(offer)

    def heard(self, event: Event, now: float) -> Iterator[Event]:
        """Give an event to the part that it is meant for; what was sent is delivered to own subscriptions."""
        if not isinstance(event, _OF_PUBLISHERS) and not (isinstance(event, ObjectAborted) and event.sender == self._node):
            yield from self._subscriber.heard(event, now)
            return
        sent = self._publisher.unsent(event.object_id) if isinstance(event, ObjectSent) else None
        yield from self._publisher.heard(event, now)
        if sent is not None and isinstance(event, ObjectSent):
            yield from self._subscriber.deliver_own(event.object_id, sent, now)

    def counts(self) -> dict[str, int]:
        """Return the sums of the counters of both."""
        return _sums(self._publisher.counts(), self._subscriber.counts())

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of both, those of NORM's sender and receiver as parts."""
        told = super().snapshot(now)
        values = {**told.values, "subscriptions": len(self._subscriber.subscriptions)}
        states, parts = {"role": "publisher and subscriber"}, (*told.parts, *self._publisher.queues())
        return replace(told, values=values, states=states, parts=parts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return what both keep, and the sums of their limits."""
        publisher, subscriber = self._publisher.held(), self._subscriber.held()
        names = [*publisher, *(name for name in subscriber if name not in publisher)]
        pairs = {name: (publisher.get(name, (0, 0)), subscriber.get(name, (0, 0))) for name in names}
        return {name: (one[0] + other[0], one[1] + other[1]) for name, (one, other) in pairs.items()}


def _sums(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two counters by name."""
    return {**one, **{name: one.get(name, 0) + count for name, count in other.items()}}
