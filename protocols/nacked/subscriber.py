"""A subscriber that requests what it misses by NACKs to the group."""

from abc import abstractmethod
from math import inf

from protocols.machine import Address, Group, Message, Packet, Ports
from protocols.messaging import MessageReceived, MessagesLost, Publication, Subscribed, Subscriber, Subscription
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Data, Nack, Origin, Status
from protocols.nacked.packet_receiver import PacketReceiver
from protocols.nacked.wire import size_of
from protocols.roles import RoleContext
from protocols.subscriptions import SubscriptionTable

__all__ = ["NackedSubscriber"]

MOST_PUBLISHERS = 4096
"""Publishers of which the state is kept, those heard first forgotten first."""

EARLY = 64
"""Sequence number up to which a packet shows that its publisher has just begun."""


class NackedSubscriber(Subscriber):
    """Delivers the messages of every publisher in order."""

    __slots__ = ("_counts", "_groups", "_receivers", "config", "subscriptions")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self.config: NackedConfig = context.config
        self.subscriptions = SubscriptionTable()
        self._groups: dict[Group, int] = {}
        self._receivers: dict[tuple[Origin, Group], PacketReceiver] = {}
        names = ("messages_received", "data_received", "duplicates", "nacks_sent", "nacks_overheard", "data_lost")
        self._counts = dict.fromkeys(names, 0)

    @abstractmethod
    def group_of(self, destination: str) -> Group:
        """Return the group that carries a destination."""

    def start(self, now: float) -> None:
        """Wait for subscriptions."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on."""
        self.subscriptions.add(subscription)
        self.join(self.group_of(subscription.destination))
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        self.leave(self.group_of(self.subscriptions.remove(number).destination))

    def join(self, group: Group) -> None:
        """Join a group for one more subscription."""
        if group not in self._groups:
            self.ports.join(group)
        self._groups[group] = self._groups.get(group, 0) + 1

    def leave(self, group: Group) -> None:
        """Leave a group when the last subscription that needs it ends."""
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]
            self._receivers = {key: each for key, each in self._receivers.items() if key[1] != group}
            self.ports.leave(group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a packet of a publisher, or the NACK of another subscriber."""
        if not isinstance(to, Group) or to not in self._groups:
            return
        if isinstance(message, Data):
            self._counts["data_received"] += 1
            receiver = self._of(message.origin, to, message.sequence)
            self._deliver(receiver, receiver.take(message, now), now)
        elif isinstance(message, Status):
            # Who has heard no message of a publisher begins behind what it has sent.
            receiver = self._of(message.origin, to, message.last + 1)
            self._deliver(receiver, receiver.note(message, now), now)
        elif isinstance(message, Nack) and (message.origin, to) in self._receivers:
            self._counts["nacks_overheard"] += 1
            self._receivers[message.origin, to].overhear(message, now)

    def _of(self, origin: Origin, group: Group, first: int) -> PacketReceiver:
        receiver = self._receivers.get((origin, group))
        if receiver is None:
            if len(self._receivers) >= MOST_PUBLISHERS:
                del self._receivers[next(iter(self._receivers))]
            # Who hears one of the first packets of a publisher was there before it, and lost those in front.
            first = 0 if first <= EARLY else first
            receiver = self._receivers[origin, group] = PacketReceiver(origin, self.config, self.ports.rng, first)
        return receiver

    def _deliver(self, receiver: PacketReceiver, messages: list[Publication], now: float) -> None:
        """Deliver messages, and tell of those that are lost."""
        if receiver.skipped:
            self.ports.notify(MessagesLost(receiver.origin[0], receiver.skipped))
            receiver.skipped = 0
        self._counts["data_lost"] += receiver.lost
        receiver.lost = 0
        for message in messages:
            for event in self.subscriptions.delivery(message, self.ports.epoch + now):
                self._counts["messages_received"] += isinstance(event, MessageReceived)
                self.ports.notify(event)
        if receiver.nack_at < self.deadline:
            self._due(receiver.nack_at)

    def wake(self, now: float) -> None:
        """Send the NACKs that are due."""
        for (_, group), receiver in list(self._receivers.items()):
            found: list[Publication] = []
            nack = receiver.due(now, found)
            if nack is not None:
                self._counts["nacks_sent"] += 1
                self.ports.send(Packet(nack, size_of(nack), group))
            self._deliver(receiver, found, now)
        self.deadline = min((receiver.nack_at for receiver in self._receivers.values()), default=inf)

    def counts(self) -> dict[str, int]:
        """Return messages delivered, and packets received, lost and sent by kind."""
        return dict(self._counts)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most packets that wait for a missing one."""
        return {"packets": (max((each.kept for each in self._receivers.values()), default=0), self.config.ahead + 1)}
