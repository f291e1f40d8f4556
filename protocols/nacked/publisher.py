"""A publisher of messages that are repaired on NACKs; a subclass sets the rate."""

from abc import abstractmethod
from math import inf

from protocols.file_messages import SettlingPublisher
from protocols.machine import Address, Group, Message, Packet, Ports
from protocols.messaging import MessageExpired, MessageSent, Publication, PublisherIdle, PublisherUnblocked
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Nack
from protocols.nacked.packet_sender import PacketSender
from protocols.nacked.wire import size_of
from protocols.roles import RoleContext

__all__ = ["Channel", "NackedPublisher"]

_ROUNDS = 8
"""NACKs in a row of one subscriber, of which each or its repair is lost, that a publisher waits for at its end."""


class Channel(PacketSender):
    """What goes to one group, and when its last packet is announced next."""

    __slots__ = ("announce_at", "announcements", "group")

    def __init__(self, origin: tuple[int, int], config: NackedConfig, group: Group) -> None:
        super().__init__(origin, config.segment, config.history)
        self.group = group
        self.announce_at = inf
        self.announcements = 0

    def due_at(self, is_full: bool) -> float:
        """Return when to announce the last packet or to forget kept ones; `is_full`: the network takes no packet."""
        return min(inf if is_full else self.announce_at, self.forgets_at if self.has_history else inf)


class NackedPublisher(SettlingPublisher):
    """Sends messages in the order of publishing, without any bound on what waits; repairs go before."""

    __slots__ = ("_channels", "_counts", "_free_at", "_is_full", "_origin", "_sent_at", "_to_unblock", "config")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self.config: NackedConfig = context.config
        self._origin = (context.node, context.instance)
        self._channels: dict[Group, Channel] = {}
        self._free_at = 0.0
        """When the next packet may be sent, in seconds."""
        self._is_full = False
        self._sent_at = 0.0
        """When the last packet was sent, in seconds."""
        self._to_unblock = inf
        """When the application may publish again."""
        names = ("messages_published", "messages_expired", "data_sent", "repairs_sent", "nacks_received", "status_sent")
        self._counts = dict.fromkeys(names, 0)

    @abstractmethod
    def group_of(self, destination: str) -> Group:
        """Return the group that carries a destination."""

    @abstractmethod
    def gap(self, size: int, now: float) -> float:
        """Return the time in seconds from a packet of `size` bytes to the next one."""

    @property
    def settled_at(self) -> float:
        """See `SettlingPublisher`; a subscriber knows by the announcements what it misses."""
        if any(channel or channel.announce_at < inf for channel in self._channels.values()):
            return inf
        return self._sent_at + _ROUNDS * (self.config.holdoff + self.config.backoff)

    def slow_down(self, now: float) -> None:
        """React to a NACK."""

    def channel(self, group: Group) -> Channel:
        """Return what goes to a group, which is joined for its NACKs. UsageError if the host can't join it."""
        found = self._channels.get(group)
        if found is None:
            self.ports.join(group)
            found = self._channels[group] = Channel(self._origin, self.config, group)
        return found

    def start(self, now: float) -> None:
        """Wait for messages."""

    def publish(self, message: Publication, now: float) -> bool:
        """Queue a message; true while the call lasts (`block_for`)."""
        self._counts["messages_published"] += 1
        self.channel(self.group_of(message.destination)).push(message)
        self._send_due(now)
        return self._to_unblock < inf

    def block_for(self, seconds: float, now: float) -> None:
        """Let the application publish nothing more for some time."""
        self._to_unblock = now + seconds

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Repair what a subscriber misses."""
        if not isinstance(message, Nack) or message.origin != self._origin or not isinstance(to, Group):
            return
        channel = self._channels.get(to)
        if channel is None:
            return
        self._counts["nacks_received"] += 1
        channel.request(message)
        if any(first < channel.first for first, _ in message.missing) and channel.next:
            channel.announce_at = now
            self._announce_due(now)
        self.slow_down(now)
        self._send_due(now)

    def wake(self, now: float) -> None:
        """Send what is due."""
        if self._to_unblock <= now:
            self._to_unblock = inf
            self.ports.notify(PublisherUnblocked())
        for channel in self._channels.values():
            self._forget(channel, now)
        self._announce_due(now)
        self._tell_kept()
        self._send_due(now)

    @staticmethod
    def _forget(channel: Channel, now: float) -> None:
        """Forget what is older than the history; who has requested some of it learns that by an announcement."""
        if channel.forget(now):
            channel.announce_at = now

    def _announce_due(self, now: float) -> None:
        for channel in self._channels.values():
            if channel.announce_at <= now and not self._is_full:
                self._announce(channel, now)

    def resume(self, now: float) -> None:
        """Send again after the network was full."""
        self._is_full = False
        self._announce_due(now)
        self._send_due(now)

    def _tell_kept(self) -> None:
        self.ports.keep(sum(channel.octets for channel in self._channels.values()))

    def _send_due(self, now: float) -> None:
        """Send at the rate of the subclass."""
        for channel in self._channels.values():
            while channel and not self._is_full and self._free_at <= now:
                self._send_from(channel, now)
            # With a history of 0 this is what was just sent.
            self._forget(channel, now)
        self._tell_kept()
        waits = any(self._channels.values()) and not self._is_full
        times = [channel.due_at(self._is_full) for channel in self._channels.values()]
        self._due(min([self._free_at if waits else inf, self._to_unblock, *times]))

    def _send_from(self, channel: Channel, now: float) -> None:
        """Send the next packet of a channel, or drop its next message if that has expired."""
        if self._drop_expired(channel, now):
            return
        packet, message = channel.take(now)
        size = size_of(packet)
        self._counts["repairs_sent" if packet.repair else "data_sent"] += 1
        self._sent_at = now
        self._is_full = bool(self.ports.send(Packet(packet, size, channel.group)))
        # A publisher that is late catches up for at most one packet.
        gap = self.gap(size, now)
        self._free_at = max(self._free_at, now - gap) + gap
        if message is not None:
            self.ports.notify(MessageSent(message.number))
            self._tell_idle()
        if not channel:
            channel.announcements = 0
            channel.announce_at = now + self.config.heartbeat if self.config.heartbeats else inf

    def _drop_expired(self, channel: Channel, now: float) -> bool:
        message = channel.expired(self.ports.epoch + now)
        if message is None:
            return False
        self._counts["messages_expired"] += 1
        self.ports.notify(MessageExpired(message.publisher, message.number))
        self._tell_idle()
        return True

    def _tell_idle(self) -> None:
        if not any(channel.queue for channel in self._channels.values()):
            self.ports.notify(PublisherIdle())

    def _announce(self, channel: Channel, now: float) -> None:
        """Announce the last packet, some times in all after the queue became empty."""
        self._counts["status_sent"] += 1
        self._sent_at = now
        status = channel.status()
        self._is_full |= bool(self.ports.send(Packet(status, size_of(status), channel.group)))
        channel.announcements += 1
        more = channel.announcements < self.config.heartbeats
        channel.announce_at = now + self.config.heartbeat * 2.0 ** min(channel.announcements, 30) if more else inf

    def counts(self) -> dict[str, int]:
        """Return messages published and expired, and packets sent and received by kind."""
        return dict(self._counts)
