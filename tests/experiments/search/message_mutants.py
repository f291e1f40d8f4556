"""Messaging protocols with one deliberate defect each, which a rule about messages finds under faults."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from protocols import registry
from protocols.admin.node import Node, place_of
from protocols.bus.publisher import BusPublisher
from protocols.bus.subscriber import BusSubscriber
from protocols.events import Event
from protocols.fjm.subscriber import FjmSubscriber
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.machine import Address, Group, Machine, Message, Ports
from protocols.messaging import MessagesLost, Publication
from protocols.nacked import messages as nacked
from protocols.nacked.packet_receiver import PacketReceiver
from protocols.nacked.subscriber import NackedSubscriber
from protocols.norm.messages import Ack, Command, Data, DataRun, Info, Nack, NormMessage
from protocols.norm.requests import LEVEL_BLOCK, LEVEL_SEGMENT
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender
from protocols.roles import Role, RoleContext
from protocols.spec import ProtocolSpec
from protocols.tunnel import ROLE as TUNNEL
from protocols.tunnel.config import TunnelOptions
from protocols.tunnel.parcel import Parcel
from protocols.tunnel.tunnel import Tunnel

__all__ = ["MUTANTS"]


class Silent(Fjm2Subscriber):
    """Tell nobody what is lost."""

    __slots__ = ()

    def _on_lost(self, publisher: int, count: int, now: float) -> Iterator[Event]:
        return (event for event in super()._on_lost(publisher, count, now) if not isinstance(event, MessagesLost))


class Undercounts(Fjm2Subscriber):
    """Tell of one lost message where several are."""

    __slots__ = ()

    def _on_lost(self, publisher: int, count: int, now: float) -> Iterator[Event]:
        return super()._on_lost(publisher, 1, now)


class Unordered(Fjm2Subscriber):
    """Deliver messages as they become complete, whatever the order is to be."""

    __slots__ = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._early = None


class BadLeaver(Fjm2Subscriber):
    """Raise when a subscription ends."""

    __slots__ = ()

    def unsubscribe(self, number: int, now: float) -> None:
        """Raise."""
        raise LookupError(f"subscription {number}")


class RelabellingTunnel(Tunnel):
    """Give the packets that it multicasts at home other source ids, so that those of two tunnels are of different senders."""

    __slots__ = ("node",)
    node: int

    def _multicast(self, parcel: Parcel, now: float) -> None:
        message = parcel.message
        if isinstance(message, (Data, Info, Command)):
            origin = replace(message.origin, source_id=message.origin.source_id ^ self.node << 8)
            parcel = parcel._replace(message=replace(message, origin=origin))
        super()._multicast(parcel, now)


def _relabelling(ports: Ports, context: RoleContext) -> Machine:
    """Make a tunnel that knows all others of the scenario."""
    options: TunnelOptions = context.options
    tunnel = RelabellingTunnel(ports, context.node, Group(context.group.name, options.lan), options)
    tunnel.node = context.node
    places = [place_of(address) for address in context.addresses["tunnel"] if address != context.address]
    tunnel.update_peers([Node(number, place[0], 0, *place, "") for number, place in enumerate(places, 1)])
    return tunnel


class SilentBus(BusSubscriber):
    """Tell nobody what is lost."""

    __slots__ = ()

    def _deliver(self, receiver: PacketReceiver, messages: Any, now: float) -> None:
        receiver.skipped = 0
        super()._deliver(receiver, messages, now)


class DeliversAgain(BusSubscriber):
    """Deliver the first message again after one was lost."""

    __slots__ = ("first",)

    def _deliver(self, receiver: PacketReceiver, messages: Any, now: float) -> None:
        messages = list(messages)
        if messages and not hasattr(self, "first"):
            self.first = messages[0]
        super()._deliver(receiver, [*messages, self.first] if receiver.skipped and messages else messages, now)


# Requests and repairs


class DeafReceiver(NormBatchReceiver):
    """Hear no request of another receiver."""

    __slots__ = ()

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Ignore NACKs."""
        if not isinstance(message, Nack):
            super().overhear(message, now)


class GreedyReceiver(NormBatchReceiver):
    """Request whole blocks of which a symbol is missing."""

    __slots__ = ()

    def say(self, message: Nack | Ack, sender: Address | None) -> None:
        """Widen the requests of a NACK."""
        if isinstance(message, Nack):
            wide = tuple(
                replace(request, level=LEVEL_BLOCK, items=tuple(item._replace(symbol=0) for item in request.items))
                if request.level == LEVEL_SEGMENT
                else request
                for request in message.requests
            )
            message = replace(message, requests=wide)
        super().say(message, sender)


class TwiceSender(NormSender):
    """Send every repair twice."""

    __slots__ = ()

    def _send(self, message: NormMessage | DataRun, size: int) -> None:
        super()._send(message, size)
        if message.repair:
            super()._send(message, size)


class DeafPackets(PacketReceiver):
    """Hear no request of another subscriber."""

    __slots__ = ()

    def overhear(self, nack: nacked.Nack, now: float) -> None:
        """Ignore it."""


class GreedyPackets(PacketReceiver):
    """Request again what was repaired."""

    __slots__ = ()

    def take(self, packet: nacked.Data, now: float) -> list[Publication]:
        """Forget that a repair arrived."""
        found = super().take(packet, now)
        if packet.repair:
            self.missing.add(packet.sequence, packet.sequence)
            self.nack_at = now + 0.01
        return found


class _OtherPackets(NackedSubscriber):
    """A subscriber with other state of the packets of a publisher."""

    __slots__ = ()
    packets: ClassVar[type[PacketReceiver]]

    def _of(self, origin: nacked.Origin, group: Group, first: int) -> PacketReceiver:
        known = super()._of(origin, group, first)
        known.__class__ = self.packets
        return known


class DeafBus(_OtherPackets, BusSubscriber):
    """See `DeafPackets`."""

    __slots__ = ()
    packets = DeafPackets


class GreedyBus(_OtherPackets, BusSubscriber):
    """See `GreedyPackets`."""

    __slots__ = ()
    packets = GreedyPackets


class DeafFjm(_OtherPackets, FjmSubscriber):
    """See `DeafPackets`."""

    __slots__ = ()
    packets = DeafPackets


class GreedyFjm(_OtherPackets, FjmSubscriber):
    """See `GreedyPackets`."""

    __slots__ = ()
    packets = GreedyPackets


class TwiceBus(BusPublisher):
    """Repair twice what is requested once."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take a NACK twice, as if it came again after its repair."""
        super().receive(message, source, to, now)
        super().receive(message, source, to, now)


class ForgetfulBus(BusPublisher):
    """Answer no request for every third packet."""

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take what is left of a NACK."""
        if isinstance(message, nacked.Nack):
            wanted = [number for first, last in message.missing for number in range(first, last + 1) if number % 3]
            message = nacked.Nack(message.origin, tuple((number, number) for number in wanted))
        super().receive(message, source, to, now)


def _with_publisher(name: str, protocol: str, role: Role) -> ProtocolSpec:
    """Return a protocol with another publisher, without fast machines."""
    spec = registry.protocol(protocol)
    return replace(spec, name=name, roles={**spec.roles, "publisher": role}, fast_roles=None)


def _fjm(name: str, subscriber: type[FjmSubscriber]) -> ProtocolSpec:
    return _with_subscriber(name, "fjm", Role(subscriber, needs=("manager",)))


def _with_subscriber(name: str, protocol: str, role: Role) -> ProtocolSpec:
    """Return a protocol with another subscriber, without fast machines."""
    spec = registry.protocol(protocol)
    return replace(spec, name=name, roles={**spec.roles, "subscriber": role}, fast_roles=None)


def _fjm2(name: str, subscriber: type[Fjm2Subscriber]) -> ProtocolSpec:
    return _with_subscriber(name, "fjm2", Role(partial(subscriber, NormBatchReceiver)))


FJM2 = registry.protocol("fjm2")
assert FJM2.guarantees is not None
RELABELLING = replace(FJM2, name="relabelling", roles={**FJM2.roles, "tunnel": replace(TUNNEL, make=_relabelling)})
MUTANTS = {
    "silent": _fjm2("silent", Silent),
    "undercounts": _fjm2("undercounts", Undercounts),
    "unordered": _fjm2("unordered", Unordered),
    "bad-leaver": _fjm2("bad-leaver", BadLeaver),
    # Losses are told of senders, whom it does not know by their names.
    "relabelling": replace(RELABELLING, fast_roles=None, guarantees=replace(FJM2.guarantees, tells="")),
    "silent-bus": _with_subscriber("silent-bus", "bus", Role(SilentBus)),
    "repeating-bus": _with_subscriber("repeating-bus", "bus", Role(DeliversAgain)),
    "deaf": _with_subscriber("deaf", "fjm2", Role(partial(Fjm2Subscriber, DeafReceiver))),
    "greedy": _with_subscriber("greedy", "fjm2", Role(partial(Fjm2Subscriber, GreedyReceiver))),
    "twice": _with_publisher("twice", "fjm2", Role(partial(Fjm2Publisher, TwiceSender))),
    "deaf-bus": _with_subscriber("deaf-bus", "bus", Role(DeafBus)),
    "greedy-bus": _with_subscriber("greedy-bus", "bus", Role(GreedyBus)),
    "twice-bus": _with_publisher("twice-bus", "bus", Role(TwiceBus)),
    "forgetful-bus": _with_publisher("forgetful-bus", "bus", Role(ForgetfulBus)),
    "deaf-fjm": _fjm("deaf-fjm", DeafFjm),
    "greedy-fjm": _fjm("greedy-fjm", GreedyFjm),
}
