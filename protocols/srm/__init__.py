"""An SRM-like protocol (Floyd, Jacobson, Liu, McCanne, Zhang 1997): any member that has a packet repairs it.

It uses the messages and the wire format of `protocols.arq`, with a repair policy of its own. The distance between members is a
parameter; the session messages by which SRM estimates it are left out.
"""

from protocols.arq.wire import ArqCodec
from protocols.spec import ProtocolSpec
from protocols.srm.config import SrmConfig
from protocols.srm.receiver import srm_receiver
from protocols.srm.sender import SrmSender

__all__ = ["PROTOCOL", "SrmConfig"]

PROTOCOL = ProtocolSpec("srm", SrmConfig, ArqCodec, SrmSender, srm_receiver)
