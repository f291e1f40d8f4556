"""A central relay: publishers send messages to it over connections, and it sends a copy to every subscriber."""

from protocols.message_wire import check_message
from protocols.messaging import Guarantees
from protocols.relay.config import RelayConfig
from protocols.relay.publisher import RelayPublisher
from protocols.relay.relay import Relay
from protocols.relay.subscriber import RelaySubscriber
from protocols.relay.wire import RelayCodec
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "RelayConfig"]

PROTOCOL = ProtocolSpec(
    "relay",
    RelayConfig,
    RelayCodec,
    connected=True,
    roles={
        "relay": Role(Relay, single=True),
        "publisher": Role(RelayPublisher, needs=("relay",)),
        "subscriber": Role(RelaySubscriber, needs=("relay",)),
    },
    guarantees=Guarantees(promised=True, once=True, fifo=True, survives_publisher=True),
    check_message=check_message,
)
