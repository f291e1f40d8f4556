"""A subscriber that requests what it misses by NACKs to the group."""

from abc import abstractmethod
from functools import lru_cache
from math import inf
from typing import Final

from protocols.events import SenderReset
from protocols.machine import Address, Group, Message, Packet, Ports
from protocols.messaging import MessageReceived, MessagesLost, Publication, Subscribed, Subscriber, Subscription
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Data, Nack, Origin, Status
from protocols.nacked.packet_receiver import PacketReceiver
from protocols.nacked.wire import size_of
from protocols.norm.maps import SmallDict
from protocols.roles import RoleContext
from protocols.shared_maps import shared_map, with_entry, without_entry
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["NackedSubscriber"]

MOST_PUBLISHERS = 4096
"""Publishers of which the state is kept, those heard first forgotten first."""
MOST_OCTETS = 128 << 20
"""Bytes of packets that are kept of all publishers; beyond, the publisher of most of them is forgotten."""

EARLY = 64
"""Sequence number up to which a packet shows that its publisher has just begun."""


_NOTHING: Final[dict[tuple[int, Group], Origin]] = {}
"""The publishers of subscribers that have left no group; never modified."""


@lru_cache(maxsize=64)
def _key(node: int, group: Group) -> tuple[int, Group]:
    """Return the key of a publisher, one object for all its subscribers."""
    return node, group


class NackedSubscriber(Subscriber):
    """Delivers the messages of every publisher in order."""

    __slots__ = (
        "_data_lost",
        "_data_received",
        "_duplicates",
        "_groups",
        "_left",
        "_messages_received",
        "_nacks_overheard",
        "_nacks_sent",
        "_octets",
        "_receivers",
        "config",
        "subscriptions",
    )

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self.config: NackedConfig = context.config
        self.subscriptions = shared_table(SubscriptionTable)
        # How many subscriptions need each group.
        self._groups: dict[Group, int] = shared_map()
        # By the node id of the publisher and its group. Most subscribers hear one publisher: a dictionary would be a third of
        # their memory.
        self._receivers: SmallDict[PacketReceiver] = SmallDict()
        # The publishers that were heard in groups that this has left, at most `MOST_PUBLISHERS`.
        self._left = _NOTHING
        self._octets = 0
        self._messages_received = self._data_received = self._data_lost = self._nacks_sent = self._nacks_overheard = 0
        self._duplicates = 0

    @abstractmethod
    def group_of(self, destination: str) -> Group:
        """Return the group that carries a destination."""

    def start(self, now: float) -> None:
        """Wait for subscriptions."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on."""
        self.subscriptions = self.subscriptions.added(subscription)
        self.join(self.group_of(subscription.destination))
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        group = self.group_of(self.subscriptions[number].destination)
        self.subscriptions = self.subscriptions.removed(number)
        self.leave(group)

    def join(self, group: Group) -> None:
        """Join a group for one more subscription. UsageError if the host can't."""
        if group not in self._groups:
            self.ports.join(group)
        self._groups = with_entry(self._groups, group, self._groups.get(group, 0) + 1)

    def leave(self, group: Group) -> None:
        """Leave a group when the last subscription that needs it ends."""
        count = self._groups[group] - 1
        if count:
            self._groups = with_entry(self._groups, group, count)
        else:
            self._groups = without_entry(self._groups, group)
            for key in [key for key in self._receivers if key[1] == group]:
                self._note_left(key, self._receivers.pop(key).origin)
            self.ports.leave(group)

    def _note_left(self, key: tuple[int, Group], origin: Origin) -> None:
        """Remember a publisher: what it sent before its group is joined again is not wanted any more."""
        self._left = self._left or {}
        if key not in self._left and len(self._left) >= MOST_PUBLISHERS:
            del self._left[next(iter(self._left))]
        self._left[key] = origin

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a packet of a publisher, or the NACK of another subscriber."""
        if not isinstance(to, Group) or to not in self._groups:
            return
        if isinstance(message, Data):
            self._data_received += 1
            receiver = self._of(message.origin, to, message.sequence)
            self._duplicates += receiver.is_known(message.sequence)
            before = receiver.octets
            messages = receiver.take(message, now)
            self._octets += receiver.octets - before
            self._deliver(receiver, messages, now)
            if self._octets > MOST_OCTETS:
                self._bound_memory()
        elif isinstance(message, Status):
            # What a publisher sent before its first packet heard here is not requested.
            receiver = self._of(message.origin, to, message.last + 1)
            self._deliver(receiver, receiver.note(message, now), now)
        elif isinstance(message, Nack):
            known = self._receivers.get((message.origin[0], to))
            if known is not None and known.origin == message.origin:
                self._nacks_overheard += 1
                known.overhear(message, now)

    def _of(self, origin: Origin, group: Group, first: int) -> PacketReceiver:
        key = _key(origin[0], group)
        receiver = self._receivers.get(key)
        if receiver is None or receiver.origin != origin:
            if receiver is not None:
                # Another start of the publisher, which numbers its messages from 0 again.
                del self._receivers[key]
                self.ports.notify(SenderReset(origin[0]))
            elif len(self._receivers) >= MOST_PUBLISHERS:
                del self._receivers[next(iter(self._receivers.more or ()))]
            # A subscriber that receives one of the first packets was there before the publisher, and lost the ones in front.
            first = 0 if first <= EARLY and self._left.get(key) != origin else first
            receiver = self._receivers[key] = PacketReceiver(origin, self.config, self.ports.rng, first)
        return receiver

    def _bound_memory(self) -> None:
        """Count what is kept anew, since some of it was given up; forget the publisher of which most is kept, if need be."""
        self._octets = sum(receiver.octets for receiver in self._receivers.values())
        if self._octets > MOST_OCTETS:
            key = max(self._receivers, key=lambda each: self._receivers[each].octets)
            gone = self._receivers.pop(key)
            self._octets -= gone.octets
            self._data_lost += gone.kept
            self.ports.notify(MessagesLost(key[0], 1))

    def _deliver(self, receiver: PacketReceiver, messages: list[Publication], now: float) -> None:
        """Deliver messages, and report those that are lost."""
        if receiver.skipped:
            self.ports.notify(MessagesLost(receiver.origin[0], receiver.skipped))
            receiver.skipped = 0
        self._data_lost += receiver.lost
        receiver.lost = 0
        for message in messages:
            for event in self.subscriptions.delivery(message, self.ports.epoch + now):
                self._messages_received += isinstance(event, MessageReceived)
                self.ports.notify(event)
        if receiver.nack_at < self.deadline:
            self._due(receiver.nack_at)

    def wake(self, now: float) -> None:
        """Send the NACKs that are due."""
        for (_, group), receiver in self._receivers.items():
            if receiver.nack_at > now:
                continue
            found: list[Publication] = []
            nack = receiver.due(now, found)
            if nack is not None:
                self._nacks_sent += 1
                self.ports.send(Packet(nack, size_of(nack), group))
            self._deliver(receiver, found, now)
        self.deadline = min((receiver.nack_at for receiver in self._receivers.values()), default=inf)

    def counts(self) -> dict[str, int]:
        """Return messages delivered, and packets received, lost and sent by kind."""
        return {
            "messages_received": self._messages_received,
            "data_received": self._data_received,
            "duplicates": self._duplicates,
            "nacks_sent": self._nacks_sent,
            "nacks_overheard": self._nacks_overheard,
            "data_lost": self._data_lost,
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most packets that wait for a missing one."""
        return {"packets": (max((each.kept for each in self._receivers.values()), default=0), self.config.ahead + 1)}
