"""Datagrams: messages over plain UDP, by multicast or unicast, without any reliability, as iperf sends them."""

from protocols.datagram.config import DatagramConfig
from protocols.datagram.publisher import DatagramPublisher
from protocols.datagram.subscriber import DatagramSubscriber
from protocols.datagram.wire import DatagramCodec
from protocols.message_wire import check_message
from protocols.messaging import Guarantees
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "DatagramConfig"]

PROTOCOL = ProtocolSpec(
    "datagram",
    DatagramConfig,
    DatagramCodec,
    roles={"publisher": Role(DatagramPublisher, needs=("subscriber",)), "subscriber": Role(DatagramSubscriber)},
    guarantees=Guarantees(),
    check_message=check_message,
)
