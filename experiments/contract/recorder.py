"""Ports that record every output of a machine, for tests of one machine without a host."""

from collections import Counter
from collections.abc import Callable
from math import inf

from experiments.contract.content import CheckedSink
from protocols.events import Event
from protocols.machine import Group, Offer, Packet, Sink
from protocols.rng import Rng, key_of

__all__ = ["Recorder"]


class Recorder:
    """Record each call of a port in a list. Objects are accepted into memory unless `accepting` is replaced.

    A test calls the inputs of its machine itself (`machine.receive(message, source, to, now)`) and compares the lists.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = Rng(key_of(seed, "recorder"))
        self.trace: Callable[[str, object], None] | None = None
        self.packets: list[Packet] = []
        self.events: list[Event] = []
        self.alarms: list[float] = []
        self.groups: list[Group] = []
        self.offers: list[Offer] = []
        self.sinks: dict[tuple[int, int], Sink] = {}
        """The accepted sinks by (sender, object id)."""
        self.room = inf
        """Packets the network takes before `send` returns "full"."""
        self.accepting: Callable[[Offer], Sink | None] = lambda offer: CheckedSink(offer.size)

    def send(self, packet: Packet) -> bool:
        """Record the packet; return True when the network is full now."""
        self.packets.append(packet)
        self.room -= 1
        return self.room <= 0

    def notify(self, event: Event) -> None:
        """Record the event."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Record the time of the alarm, in seconds."""
        self.alarms.append(when)

    def join(self, group: Group) -> None:
        """Add the group to `groups`."""
        self.groups.append(group)

    def leave(self, group: Group) -> None:
        """Remove the group from `groups`."""
        self.groups.remove(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Record the offer and return the sink that `accepting` gives for it."""
        self.offers.append(offer)
        sink = self.accepting(offer)
        if sink is not None:
            self.sinks[offer.sender, offer.object_id] = sink
        return sink

    def kinds(self) -> Counter[str]:
        """Return the number of packets sent, by kind of message."""
        return Counter(packet.message.kind for packet in self.packets)
