"""Messaging protocols with one deliberate defect each, which a rule about messages finds under faults."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from protocols.admin.node import Node, place_of
from protocols.bus.subscriber import BusSubscriber
from protocols.events import Event
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.machine import Group, Machine, Ports
from protocols.messaging import MessagesLost
from protocols.nacked.packet_receiver import PacketReceiver
from protocols.norm.messages import Command, Data, Info
from protocols.norm.run_reception import NormBatchReceiver
from protocols.registry import PROTOCOLS
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


def _with_subscriber(name: str, protocol: str, role: Role) -> ProtocolSpec:
    """Return a protocol with another subscriber, without fast machines."""
    spec = PROTOCOLS[protocol]
    return replace(spec, name=name, roles={**spec.roles, "subscriber": role}, fast_roles=None)


def _fjm2(name: str, subscriber: type[Fjm2Subscriber]) -> ProtocolSpec:
    return _with_subscriber(name, "fjm2", Role(partial(subscriber, NormBatchReceiver)))


FJM2 = PROTOCOLS["fjm2"]
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
}
