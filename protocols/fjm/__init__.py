"""FJM, the predecessor of FJM2: a guard among topic managers, registration, a multicast group for each topic, NACKs."""

from protocols.file_messages import file_makers
from protocols.fjm.config import FjmConfig
from protocols.fjm.files import FjmSender
from protocols.fjm.manager import FjmManager
from protocols.fjm.publisher import FjmPublisher
from protocols.fjm.subscriber import FjmSubscriber
from protocols.fjm.wire import FjmCodec
from protocols.message_wire import check_message
from protocols.messaging import Guarantees
from protocols.nacked.repairs import NackedRepairs
from protocols.roles import Role
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "FjmConfig"]

PROTOCOL = ProtocolSpec(
    "fjm",
    FjmConfig,
    FjmCodec,
    *file_makers(FjmSender, FjmSubscriber),
    ordered=True,
    can_fail=True,
    separates_roles=lambda config: bool(config.same_host_fault),
    # A manager that has lost several heartbeats of the guard begins an election, as long as it runs.
    periodic=("guard", "candidate"),
    roles={
        "manager": Role(FjmManager),
        "publisher": Role(FjmPublisher, needs=("manager",)),
        "subscriber": Role(FjmSubscriber, needs=("manager",)),
    },
    # Messages of one topic come in order; of several topics of one publisher nothing is promised.
    guarantees=Guarantees(once=True, tells="gaps"),
    check_message=check_message,
    repairs=NackedRepairs(),
)
