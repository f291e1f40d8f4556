"""A multicast bus in the manner of iBus: reliable by NACKs, without any bound at the publisher, and without pacing."""

from functools import partial

from protocols.bus.config import BusConfig
from protocols.bus.publisher import BusPublisher
from protocols.bus.subscriber import BusSubscriber
from protocols.file_messages import FileSender, file_makers
from protocols.message_wire import check_message
from protocols.messaging import Guarantees
from protocols.nacked.repairs import NackedRepairs
from protocols.nacked.wire import NackedCodec
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "BusConfig"]

PROTOCOL = ProtocolSpec(
    "bus",
    BusConfig,
    NackedCodec,
    *file_makers(partial(FileSender, BusPublisher), BusSubscriber),
    ordered=True,
    can_fail=True,
    roles={"publisher": Role(BusPublisher), "subscriber": Role(BusSubscriber)},
    guarantees=Guarantees(once=True, fifo=True, tells="gaps"),
    check_message=check_message,
    repairs=NackedRepairs(),
)
