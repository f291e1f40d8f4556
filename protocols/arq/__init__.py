"""Classic ARQ over multicast: the protocols A, N1 and N2 of Towsley, Kurose and Pingali (1997), as a baseline."""

from protocols.arq.acked_sender import AckedSender
from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.arq.nacked_sender import GatheringSender
from protocols.arq.receiver import acking_receiver, nacking_receiver, suppressing_receiver
from protocols.arq.tx_object import check_content
from protocols.arq.wire import ArqCodec
from protocols.spec import ProtocolSpec

__all__ = ["A", "N1", "N2", "ArqCodec"]

A = ProtocolSpec("a", AConfig, ArqCodec, AckedSender, acking_receiver, fast="protocols.arq.fast.a", check_content=check_content)
N1 = ProtocolSpec(
    "n1", N1Config, ArqCodec, GatheringSender, nacking_receiver, fast="protocols.arq.fast.n1", check_content=check_content
)
N2 = ProtocolSpec(
    "n2", N2Config, ArqCodec, GatheringSender, suppressing_receiver, fast="protocols.arq.fast.n2", check_content=check_content
)
