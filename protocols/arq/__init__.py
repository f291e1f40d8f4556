"""Classic ARQ over multicast, the yardsticks of Towsley, Kurose and Pingali (1997): `a`, `n1` and `n2`."""

from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.arq.receiver import AckingReceiver, NackingReceiver, SuppressingReceiver
from protocols.arq.sender import AckedSender, NackedSender
from protocols.arq.wire import ArqCodec
from protocols.spec import ProtocolSpec

__all__ = ["A", "N1", "N2", "ArqCodec"]

A = ProtocolSpec("a", AConfig, ArqCodec, AckedSender, AckingReceiver)
N1 = ProtocolSpec("n1", N1Config, ArqCodec, NackedSender, NackingReceiver)
N2 = ProtocolSpec("n2", N2Config, ArqCodec, NackedSender, SuppressingReceiver)
