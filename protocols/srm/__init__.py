"""An SRM-like protocol (Floyd, Jacobson, Liu, McCanne, Zhang 1997): any member that has a packet repairs it.

It speaks the messages and the wire format of `protocols.arq`; what it adds is who repairs, and when. Distances between members
are a parameter here: the session messages by which SRM estimates them are left out.
"""

from protocols.arq.wire import ArqCodec
from protocols.spec import ProtocolSpec
from protocols.srm.config import SrmConfig
from protocols.srm.receiver import SrmReceiver
from protocols.srm.sender import SrmSender

__all__ = ["PROTOCOL", "SrmConfig"]

PROTOCOL = ProtocolSpec("srm", SrmConfig, ArqCodec, SrmSender, SrmReceiver)
