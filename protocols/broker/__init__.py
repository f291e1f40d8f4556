"""A central broker of topics that speaks STOMP 1.2, its publishers and subscribers, and senders and receivers of files."""

from protocols.broker.broker import Broker
from protocols.broker.config import BrokerConfig
from protocols.broker.content import check_message
from protocols.broker.files import BrokerReceiver, BrokerSender
from protocols.broker.framing import StompFraming
from protocols.broker.publisher import BrokerPublisher
from protocols.broker.subscriber import BrokerSubscriber
from protocols.broker.wire import StompCodec
from protocols.jms.subscriptions import check_subscription, matches
from protocols.messaging import Guarantees
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "BrokerConfig"]

PROTOCOL = ProtocolSpec(
    "broker",
    BrokerConfig,
    StompCodec,
    connected=True,
    framing=StompFraming,
    ordered=True,
    periodic=("beat",),
    roles={
        "broker": Role(Broker, single=True),
        "publisher": Role(BrokerPublisher, needs=("broker",)),
        "subscriber": Role(BrokerSubscriber, needs=("broker",)),
        "sender": Role(BrokerSender, needs=("broker",)),
        "receiver": Role(BrokerReceiver, needs=("broker",)),
    },
    check_message=check_message,
    guarantees=Guarantees(
        promised=True,
        once=True,
        fifo=True,
        survives_publisher=True,
        matches=matches,
        has_selectors=True,
        check=check_subscription,
    ),
)
