"""The Distributor with one defect of the Java program at a time.

`protocol: {name: distributor, mutant: stuck-gap}` in a scenario switches one on, and `mcastlab zoo` shows which rule of a run
finds it. Each is a subclass that replaces one part of a publisher or of a subscriber; nothing else refers to it.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from protocols.distributor import PROTOCOL
from protocols.distributor.mutants.publishing import InvertedNakPublisher, UnmergedPublisher
from protocols.distributor.mutants.reception import (
    HighestGoesBackSubscriber,
    ReassemblyOffsetSubscriber,
    StuckGapSubscriber,
)
from protocols.distributor.mutants.subscribing import (
    CrosstalkSubscriber,
    DeadMonitorSubscriber,
    IdentitySumSubscriber,
    UnsuppressedSubscriber,
)
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.roles import MessagePublisher, MessageSubscriber
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.mutant import Mutant
from protocols.roles import Role

__all__ = ["MUTANTS"]


def _mutant(
    about: str,
    publisher: type[DistributorPublisher] = DistributorPublisher,
    subscriber: type[DistributorSubscriber] = DistributorSubscriber,
) -> Mutant:
    """Return the protocol with these machines."""
    roles = {
        "publisher": Role(partial(MessagePublisher, machine=publisher)),
        "subscriber": Role(partial(MessageSubscriber, machine=subscriber)),
    }
    return Mutant(replace(PROTOCOL, roles=roles, mutants=None), about)


MUTANTS: Mapping[str, Mutant] = {
    "no-suppression": _mutant("requests what another subscriber has just requested", subscriber=UnsuppressedSubscriber),
    "no-merging": _mutant("retransmits once for every request", publisher=UnmergedPublisher),
    "highest-goes-back": _mutant(
        "takes the latest datagram for the highest, also when it is a late one", subscriber=HighestGoesBackSubscriber
    ),
    "reassembly-offset": _mutant(
        "puts each part of a large update where the one before it was as long", subscriber=ReassemblyOffsetSubscriber
    ),
    "inverted-nak": _mutant("states what has left the cache only while the cache is empty", publisher=InvertedNakPublisher),
    "stuck-gap": _mutant("waits for ever for what it has given up", subscriber=StuckGapSubscriber),
    "nagging-dead": _mutant("never counts its requests for the nagging monitor", subscriber=DeadMonitorSubscriber),
    "crosstalk": _mutant(
        "takes a retransmission or a NAK of one publisher for that of every other", subscriber=CrosstalkSubscriber
    ),
    "identity-sum": _mutant(
        "tells publishers apart by the sum of id and start time, without the address", subscriber=IdentitySumSubscriber
    ),
}
"""The mutants by name."""
