"""Ports that write down what a machine says: the smallest place to test a machine in."""

from collections import Counter
from collections.abc import Callable
from math import inf

from experiments.contract.content import CheckedSink
from protocols.events import Event
from protocols.machine import Group, Offer, Packet, Sink
from protocols.rng import Rng, key_of

__all__ = ["Recorder"]


class Recorder:
    """Every port appends to a list; offers are accepted into memory unless `accepting` says otherwise.

    Feed the machine by hand (`machine.receive(message, source, to, now)`) and look at the lists.
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
        """Packets the network takes before `send` answers "full"."""
        self.accepting: Callable[[Offer], Sink | None] = lambda offer: CheckedSink(offer.size)

    def send(self, packet: Packet) -> bool:
        """Keep the packet; True when the network is full now."""
        self.packets.append(packet)
        self.room -= 1
        return self.room <= 0

    def notify(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Keep the time."""
        self.alarms.append(when)

    def join(self, group: Group) -> None:
        """Keep the group."""
        self.groups.append(group)

    def leave(self, group: Group) -> None:
        """Forget the group."""
        self.groups.remove(group)

    def accept(self, offer: Offer) -> Sink | None:
        """Keep the offer and answer as `accepting` does."""
        self.offers.append(offer)
        sink = self.accepting(offer)
        if sink is not None:
            self.sinks[offer.sender, offer.object_id] = sink
        return sink

    def kinds(self) -> Counter[str]:
        """How many packets of each kind were sent."""
        return Counter(packet.message.kind for packet in self.packets)
