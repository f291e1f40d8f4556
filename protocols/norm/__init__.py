"""NORM: NACK-oriented reliable multicast (RFC 5740), wire-compatible with NRL NORM 1.5.9."""

from collections.abc import Callable, Mapping

from protocols.machine import Codec
from protocols.norm.config import NormConfig
from protocols.norm.receiver import NormReceiver
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender
from protocols.norm.snapshot import MEASURES
from protocols.norm.tx_object import check_content
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.norm.wire.codec import NormCodec
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "NormCodec", "NormConfig", "NormReceiver", "NormSender"]


def _authenticated(keys: Mapping[int, bytes], clock: Callable[[], float], shared: bool) -> Codec:
    return AuthenticatedCodec(NormCodec(), keys, clock, shared=shared)


def _uses_ecn(config: NormConfig) -> bool:
    return config.congestion == "ecn"


PROTOCOL = ProtocolSpec(
    "norm",
    NormConfig,
    NormCodec,
    NormSender,
    NormBatchReceiver,
    fast="protocols.norm.fast",
    authenticated=_authenticated,
    check_content=check_content,
    uses_ecn=_uses_ecn,
    measures=MEASURES,
)
