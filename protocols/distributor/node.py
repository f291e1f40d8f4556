"""A node of a connection that publishes and subscribes: one port, one identity; its own updates reach it, too."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from protocols.distributor.config import DistributorConfig
from protocols.distributor.identity import AnyIdentity
from protocols.distributor.messages import Content, Segment
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.events import Event
from protocols.inner_ports import InnerPorts
from protocols.layer import Layer, unheard
from protocols.machine import Group, Message, Packet, Ports
from protocols.messaging import Subscription

__all__ = ["DistributorNode"]

T = TypeVar("T")

_HERE = "this node"


class _PublisherPorts(InnerPorts):
    """The ports of the publisher: what it sends is kept for the subscriber of the same node, too."""

    def __init__(self, owner: "DistributorNode", out: Ports, own: deque[Message]) -> None:
        super().__init__(owner, "publisher", out, b"publisher\0")
        self._own = own

    def send(self, packet: Packet) -> object:
        """Send a packet; see `Ports.send`."""
        message = packet.message
        if not (isinstance(message, Segment) and message.is_retransmission):
            self._own.append(message)
        return super().send(packet)


class DistributorNode(Layer):
    """A subscriber, and from the first update on a publisher. Applications call its methods through `Host.call`.

    Their events go to the application as they are.
    """

    __slots__ = ("_config", "_group", "_identity", "_own", "publisher", "subscriber")

    def __init__(self, ports: Ports, config: DistributorConfig, identity: AnyIdentity, group: Group) -> None:
        super().__init__(ports)
        self._config = config
        self._identity = identity
        self._group = group
        # What the publisher has sent, and the subscriber of this node has not received.
        self._own: deque[Message] = deque()
        self.publisher: DistributorPublisher | None = None
        self.subscriber = self.inner("subscriber", self._subscriber, unheard)

    def _subscriber(self, ports: Ports) -> DistributorSubscriber:
        return DistributorSubscriber(ports, self._config, self._identity, self._group)

    def announce(self, now: float) -> DistributorPublisher:
        """Begin to publish: the publisher announces itself, now or earlier."""
        if self.publisher is None:
            inner = _PublisherPorts(self, self.ports, self._own)
            self._inner.append(inner)
            self.publisher = inner.machine = DistributorPublisher(inner, self._config, self._identity, self._group)
            self.give(self.publisher.start, now)
            self.earlier(self.publisher.deadline)
        return self.publisher

    def publish_many(self, subject: str, contents: Sequence[Content], now: float) -> bool:
        """See `DistributorPublisher.publish_many`."""
        return self.give(self.announce(now).publish_many, subject, contents, now)

    def flush(self, now: float) -> None:
        """See `DistributorPublisher.flush`."""
        if self.publisher is not None:
            self.give(self.publisher.flush, now)

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """See `DistributorSubscriber.subscribe`."""
        self.give(self.subscriber.subscribe, subscription, now)

    def unsubscribe(self, number: int, now: float) -> None:
        """See `DistributorSubscriber.unsubscribe`."""
        self.give(self.subscriber.unsubscribe, number, now)

    def give(self, verb: Callable[..., T], *args: object) -> T:
        """See `Layer.give`; then the subscriber receives what the publisher has sent."""
        result = super().give(verb, *args)
        now = args[-1]
        assert isinstance(now, (int, float))
        while self._own:
            self.subscriber.receive(self._own.popleft(), _HERE, self._group, now)
        return result

    def notified(self, inner: InnerPorts, event: Event) -> None:
        """Pass an event on to the application."""
        del inner
        self.ports.notify(event)

    def counts(self) -> dict[str, int]:
        """Return the counters of both machines; each has names of its own."""
        return {name: count for machine in self.machines() for name, count in machine.counts().items()}
