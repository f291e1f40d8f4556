"""The subscriber of FJM: registers for its topics, and receives them on groups of their own."""

from typing import Final

from protocols.errors import UsageError
from protocols.fjm.config import FjmConfig
from protocols.fjm.messages import ForManagers, FromManager
from protocols.fjm.registration import RegisteredClient, Registration
from protocols.machine import Address, Group, Message, Ports
from protocols.messaging import Subscribed, Subscription
from protocols.nacked.messages import Data
from protocols.nacked.subscriber import NackedSubscriber
from protocols.roles import RoleContext

__all__ = ["FjmSubscriber"]

_NO_GROUPS: Final[dict[Group, None]] = {}
"""Those of subscribers whose card lets no others pass; never modified."""


class FjmSubscriber(RegisteredClient, NackedSubscriber):
    """A subscription is in effect when the manager of its topic has registered it."""

    __slots__ = ("_active", "_others", "_registration", "_unwanted_received", "fjm")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self.fjm: FjmConfig = context.config
        self._registration = Registration(context, self)
        # The subscriptions that are in effect.
        self._active = self.subscriptions
        # The groups that the card lets pass beside the own ones.
        self._others = _NO_GROUPS
        self._unwanted_received = 0

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Register for the topic."""
        self.subscriptions = self.subscriptions.added(subscription)
        destination = subscription.destination
        if self._registration.group_of(destination) is not None:
            self._begin(subscription)
        self._registration.enter(destination, now)
        self.rearm()

    def _begin(self, subscription: Subscription) -> None:
        self.join(self.group_of(subscription.destination))
        self._active = self._active.added(subscription)
        self.ports.notify(Subscribed(subscription.number))

    def registered(self, destination: str, group: Group, now: float) -> None:
        """Begin the subscriptions to a topic. UsageError as for `RegisteredClient`."""
        if group in self._others:
            # It is the own one now, and joined once more by `join`.
            del self._others[group]
            self.ports.leave(group)
        for subscription in self.subscriptions:
            if subscription.destination == destination:
                self._begin(subscription)

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription, and leave the topic with the last one."""
        destination = self.subscriptions[number].destination
        self.subscriptions = self.subscriptions.removed(number)
        if number in self._active:
            self._active = self._active.removed(number)
            self.leave(self.group_of(destination))
        if not self.subscriptions.has(destination):
            self._registration.leave(destination)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a manager or a packet; one of another topic costs time only."""
        if isinstance(message, ForManagers):
            return
        if isinstance(message, FromManager):
            self.take_from_manager(message, now)
        elif isinstance(message, Data) and to in self._others:
            self._unwanted_received += 1
            self.ports.work(self.fjm.unwanted)
            return
        else:
            super().receive(message, source, to, now)
        if self.fjm.address_fault:
            self._let_pass()
        self.rearm()

    def _let_pass(self) -> None:
        """Join the groups of other topics, which have the same address for the card."""
        for group in self._registration.others.values():
            if group not in self._others and group not in self._groups:
                self._others = self._others or {}
                self._others[group] = None
                try:
                    self.ports.join(group)
                except UsageError:
                    # It stays among the others, so that it is tried once.
                    self._registration.groups_refused += 1

    def counts(self) -> dict[str, int]:
        """Return messages delivered, packets received, lost, sent, and of other topics, and refused groups if any."""
        return {**super().counts(), "unwanted_received": self._unwanted_received, **self._registration.counts()}

    def wake(self, now: float) -> None:
        """Ask again, and send the NACKs that are due."""
        self._registration.wake(now)
        super().wake(now)
        self.rearm()
