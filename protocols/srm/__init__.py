"""SRM (Floyd, Jacobson, Liu, McCanne, Zhang 1997): any member that has a packet repairs it, after a wait by its distance.

Content is sent with the messages of `protocols.arq`; requests, repairs and session messages are its own, and so is the repair
policy.
"""

from protocols.arq.tx_object import check_content
from protocols.spec import ProtocolSpec
from protocols.srm.config import SrmConfig
from protocols.srm.receiver import srm_receiver
from protocols.srm.sender import SrmSender
from protocols.srm.wire import SrmCodec

__all__ = ["PROTOCOL", "SrmConfig"]

PROTOCOL = ProtocolSpec(
    "srm", SrmConfig, SrmCodec, SrmSender, srm_receiver, fast="protocols.srm.fast", check_content=check_content
)
