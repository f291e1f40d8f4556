"""FJM2: publish and subscribe in the manner of JMS on NORM, without a server."""

from collections.abc import Callable, Mapping

from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.roles import roles_on
from protocols.jms.subscriptions import check_subscription, matches
from protocols.machine import Codec
from protocols.messaging import Guarantees
from protocols.norm import NormCodec, NormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.snapshot import MEASURES
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.spec import ProtocolSpec

__all__ = ["PROTOCOL", "Fjm2Config"]


def _authenticated(keys: Mapping[int, bytes], clock: Callable[[], float], shared: bool) -> Codec:
    return AuthenticatedCodec(NormCodec(), keys, clock, shared=shared)


PROTOCOL = ProtocolSpec(
    "fjm2",
    Fjm2Config,
    NormCodec,
    authenticated=_authenticated,
    measures=MEASURES,
    roles=roles_on(NormSender, NormBatchReceiver),
    fast_roles="protocols.fjm2.fast",
    guarantees=Guarantees(once=True, fifo_by_priority=True, matches=matches, has_selectors=True, check=check_subscription),
)
