"""The subscriber: delivers what arrives, and measures loss and jitter as iperf does."""

from dataclasses import dataclass

from protocols.datagram.config import DatagramConfig
from protocols.datagram.messages import Part
from protocols.machine import Address, Message, Ports
from protocols.message_wire import find_message
from protocols.messaging import MessageReceived, MessagesLost, Publication, Subscribed, Subscriber, Subscription
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot, buffers
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["DatagramSubscriber"]

MOST_PUBLISHERS = 4096
"""Publishers of which the state is kept, those heard first forgotten first."""
MOST_BYTES = 96 << 20
"""Bytes of incomplete messages that are kept, with `PART_OVERHEAD` for each part."""
PART_OVERHEAD = 512
"""Bytes that a part which is kept takes beside its content."""


@dataclass(slots=True)
class _Reception:
    """Reception from one publisher: datagrams, those missing, those that came late, jitter in seconds."""

    next_sequence: int
    transit: float
    received: int = 0
    lost: int = 0
    late: int = 0
    jitter: float = 0.0

    def count(self, sequence: int, transit: float) -> None:
        """Count a datagram that took `transit` seconds, up to a constant (RFC 3550, 6.4.1 and A.8)."""
        self.received += 1
        if sequence >= self.next_sequence:
            self.lost += sequence - self.next_sequence
            self.next_sequence = sequence + 1
        else:
            self.late += 1
            self.lost = max(0, self.lost - 1)
        self.jitter += (abs(transit - self.transit) - self.jitter) / 16
        self.transit = transit

    def snapshot(self, name: str) -> Snapshot:
        """Return the statistics of the publisher `name`."""
        values = {
            "data_received": self.received,
            "data_lost": self.lost,
            "loss": self.lost / (self.received + self.lost),
            "reordered": self.late,
            "jitter_us": round(self.jitter * 1e6),
        }
        return Snapshot("publisher", name, values)


class DatagramSubscriber(Subscriber):
    """Joins the group with its first subscription and leaves it with the last."""

    __slots__ = ("_config", "_delivered", "_given_up", "_group", "_incomplete", "_kept", "_receptions", "_subscriptions")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self._config: DatagramConfig = context.config
        self._group = context.group
        self._subscriptions = shared_table(SubscriptionTable)
        self._receptions: dict[int, _Reception] = {}
        # The parts that arrived, by publisher and number of the message; and the bytes that they take in all.
        self._incomplete: dict[tuple[int, int], dict[int, Part]] = {}
        self._kept = 0
        self._delivered = self._given_up = 0

    def start(self, now: float) -> None:
        """Wait for subscriptions."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on."""
        self._subscriptions = self._subscriptions.added(subscription)
        if len(self._subscriptions) == 1 and self._config.cast == "multicast":
            self.ports.join(self._group)
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        self._subscriptions = self._subscriptions.removed(number)
        if not len(self._subscriptions) and self._config.cast == "multicast":
            self.ports.leave(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count a datagram, and deliver the message that it completes."""
        if not isinstance(message, Part):
            return
        self._reception(message, now)
        whole = self._completed(message)
        if whole is not None:
            for event in self._subscriptions.delivery(whole, self.ports.epoch + now):
                self._delivered += isinstance(event, MessageReceived)
                self.ports.notify(event)

    def _reception(self, part: Part, now: float) -> None:
        transit = self.ports.epoch + now - part.sent_at
        known = self._receptions.get(part.publisher)
        if known is None:
            if len(self._receptions) >= MOST_PUBLISHERS:
                del self._receptions[next(iter(self._receptions))]
            known = self._receptions[part.publisher] = _Reception(part.sequence, transit)
        known.count(part.sequence, transit)

    def _completed(self, part: Part) -> Publication | None:
        """Return the message that this part completes; None if parts are missing, or it is none."""
        if part.parts == 1:
            return part.whole or find_message(part.content or b"")
        key = (part.publisher, part.number)
        if key not in self._incomplete and len(self._incomplete) >= self._config.incomplete:
            self._give_up(next(iter(self._incomplete)))
        known = self._incomplete.setdefault(key, {})
        if part.part not in known:
            known[part.part] = part
            self._kept += part.length + PART_OVERHEAD
        if len(known) < part.parts:
            while self._kept > MOST_BYTES:
                self._give_up(next(iter(self._incomplete)))
            return None
        self._forget(key)
        return part.whole or find_message(b"".join(known[n].content or b"" for n in sorted(known)))

    def _forget(self, key: tuple[int, int]) -> None:
        self._kept -= sum(part.length + PART_OVERHEAD for part in self._incomplete.pop(key).values())

    def _give_up(self, key: tuple[int, int]) -> None:
        self._forget(key)
        self._given_up += 1
        if len(self._subscriptions):
            self.ports.notify(MessagesLost(key[0], 1, key[1], key[1]))

    def wake(self, now: float) -> None:
        """Do nothing, since there are no timers."""

    def counts(self) -> dict[str, int]:
        """Return datagrams received, missing and late, messages delivered and given up, and the largest jitter (us)."""
        known = self._receptions.values()
        return {
            "data_received": sum(each.received for each in known),
            "data_lost": sum(each.lost for each in known),
            "reordered": sum(each.late for each in known),
            "jitter_us": round(max((each.jitter for each in known), default=0.0) * 1e6),
            "messages_received": self._delivered,
            "messages_given_up": self._given_up,
        }

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the incomplete messages."""
        return {"incomplete": (len(self._incomplete), self._config.incomplete)}

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the subscriber, and of each publisher that is heard."""
        parts = [each.snapshot(str(node)) for node, each in self._receptions.items()]
        values = {**self.counts(), "subscriptions": len(self._subscriptions)}
        return Snapshot("session", self._group.name, values, {"role": "subscriber"}, (*parts, *buffers(self.held())))
