"""NORM: NACK-oriented reliable multicast (RFC 5740), wire-compatible with NRL NORM 1.5.9."""

from protocols.norm.config import NormConfig
from protocols.norm.receiver import NormReceiver
from protocols.norm.sender import NormSender
from protocols.norm.wire.codec import NormCodec
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "NormCodec", "NormConfig", "NormReceiver", "NormSender"]

PROTOCOL = ProtocolSpec("norm", NormConfig, NormCodec, NormSender, NormReceiver, fast="protocols.norm.fast")
