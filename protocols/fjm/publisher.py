"""The publisher of FJM: registers for its topics, and sends slower on NACKs and faster after silence."""

from collections import deque
from math import inf

from protocols.fjm.config import FjmConfig
from protocols.fjm.registration import RegisteredClient, Registration
from protocols.machine import Address, Group, Message, Ports
from protocols.messaging import Publication, PublisherUnblocked
from protocols.nacked.publisher import NackedPublisher
from protocols.roles import RoleContext

__all__ = ["FjmPublisher"]


class FjmPublisher(RegisteredClient, NackedPublisher):
    """Keeps messages of a topic until it is registered; blocked while `queue` messages wait to be sent."""

    __slots__ = ("_is_blocked", "_last_at", "_lowered_at", "_raised_at", "_registration", "_waiting", "fjm", "rate")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self.fjm: FjmConfig = context.config
        self._registration = Registration(context, self)
        self._waiting: dict[str, deque[Publication]] = {}
        self._is_blocked = False
        self._last_at = -inf
        self.rate: float = self.fjm.rate
        """Bytes per second."""
        self._lowered_at = -inf
        self._raised_at = -inf

    def publish(self, message: Publication, now: float) -> bool:
        """Queue a message; one that comes too soon ends the publisher, if that fault is on."""
        gap, self._last_at = now - self._last_at, now
        if self.fjm.gap_fault and gap < self.fjm.gap * (1 - 1e-9):
            self.ports.fail(f"a message {gap * 1000:.3g} ms after the one before, and FJM needs {self.fjm.gap * 1000:g} ms")
            return True
        if self._registration.group_of(message.destination) is not None:
            super().publish(message, now)
        else:
            self._counts["messages_published"] += 1
            self._waiting.setdefault(message.destination, deque()).append(message)
            self._registration.enter(message.destination, now)
            self.rearm()
        self._is_blocked = self._queued() >= self.fjm.queue
        return self._is_blocked

    def _queued(self) -> int:
        """Return how many messages wait for their topic or to be sent."""
        channels = sum(len(channel.queue) for channel in self._channels.values())
        return channels + sum(map(len, self._waiting.values()))

    def _send_due(self, now: float) -> None:
        super()._send_due(now)
        if self._is_blocked and self._queued() < self.fjm.queue:
            self._is_blocked = False
            self.ports.notify(PublisherUnblocked())

    def registered(self, destination: str, group: Group, now: float) -> None:
        """Send what waits for a topic. UsageError as for `RegisteredClient`."""
        channel = self.channel(group)
        for message in self._waiting.pop(destination, ()):
            channel.push(message)
        self._send_due(now)

    def _tell_idle(self) -> None:
        if not any(self._waiting.values()):
            super()._tell_idle()

    def gap(self, size: int, now: float) -> float:
        """Return the time from a packet to the next, by the present rate."""
        fjm = self.fjm
        if now >= max(self._lowered_at, self._raised_at) + fjm.quiet:
            self.rate = min(fjm.rate, self.rate + fjm.faster * fjm.rate)
            self._raised_at = now
        return size / self.rate

    def slow_down(self, now: float) -> None:
        """Send slower, once for the NACKs of one hold-off."""
        if now >= self._lowered_at + self.fjm.holdoff:
            self.rate = max(self.fjm.rate_min, self.rate * self.fjm.slower)
            self._lowered_at = now

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a manager, or repair what a subscriber misses."""
        self.take_from_manager(message, now)
        super().receive(message, source, to, now)
        self.rearm()

    def wake(self, now: float) -> None:
        """Ask again, and send what is due."""
        self._registration.wake(now)
        super().wake(now)
        self.rearm()

    def counts(self) -> dict[str, int]:
        """Return messages published and expired, packets sent and received by kind, and refused groups if there were any."""
        return {**super().counts(), **self._registration.counts()}
