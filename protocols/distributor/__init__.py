"""The Distributor: publish and subscribe by multicast, with the datagrams of the Java program of that name."""

from protocols.distributor.config import DistributorConfig
from protocols.distributor.limits import check_message, check_subscription
from protocols.distributor.messages import Configuration, Heartbeat
from protocols.distributor.repairs import DistributorRepairs
from protocols.distributor.roles import MessagePublisher, MessageSubscriber
from protocols.distributor.snapshot import MEASURES
from protocols.distributor.subjects import matches
from protocols.distributor.wire import DistributorCodec
from protocols.messaging import Guarantees, Subscription
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "DistributorConfig"]


def _is_match(subscription: Subscription, destination: str, properties: object) -> bool:
    """Return whether a subject matches the pattern of a subscription; there are no selectors."""
    del properties
    return matches(subscription.destination, destination)


PROTOCOL = ProtocolSpec(
    "distributor",
    DistributorConfig,
    DistributorCodec,
    measures=MEASURES,
    periodic=(Heartbeat.kind, Configuration.kind),
    roles={"publisher": Role(MessagePublisher), "subscriber": Role(MessageSubscriber)},
    guarantees=Guarantees(promised=True, once=True, fifo=True, matches=_is_match, check=check_subscription),
    check_message=check_message,
    repairs=DistributorRepairs(),
    mutants="protocols.distributor.mutants",
)
