"""FJM2: publish and subscribe in the manner of JMS on NORM, without a server."""

from collections.abc import Callable, Mapping

from protocols.admin import MEASURES as ADMIN_MEASURES
from protocols.admin import PERIODIC as ADMIN_PERIODIC
from protocols.admin import HttpFraming
from protocols.fjm2.codec import Fjm2Codec, guarded
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.limits import check_message
from protocols.fjm2.repairs import Fjm2Repairs
from protocols.fjm2.roles import makers_on, roles_on
from protocols.fjm2.snapshot import MEASURES
from protocols.jms.subscriptions import check_subscription, matches
from protocols.machine import Codec
from protocols.messaging import Guarantees
from protocols.norm import NormSender
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.snapshot import MEASURES as NORM_MEASURES
from protocols.norm.wire.authentication import AuthenticatedCodec
from protocols.spec import ProtocolSpec
from protocols.tunnel import MEASURES as TUNNEL_MEASURES
from protocols.tunnel import PERIODIC

__all__ = ["PROTOCOL", "Fjm2Config"]


def _authenticated(keys: Mapping[int, bytes], clock: Callable[[], float], shared: bool) -> Codec:
    return AuthenticatedCodec(Fjm2Codec(), keys, clock, shared=shared)


PROTOCOL = ProtocolSpec(
    "fjm2",
    Fjm2Config,
    Fjm2Codec,
    *makers_on(NormSender, NormBatchReceiver),
    fast="protocols.fjm2.fast",
    authenticated=_authenticated,
    guarded=guarded,
    framing=HttpFraming,
    measures=(*NORM_MEASURES, *MEASURES, *TUNNEL_MEASURES, *ADMIN_MEASURES),
    periodic=(*PERIODIC, *ADMIN_PERIODIC),
    roles=roles_on(NormSender, NormBatchReceiver),
    orders=lambda config: bool(config.order == "fifo"),
    fast_roles="protocols.fjm2.fast",
    check_message=check_message,
    guarantees=Guarantees(
        once=True, fifo_by_priority=True, tells="counts", matches=matches, has_selectors=True, check=check_subscription
    ),
    repairs=Fjm2Repairs(),
)
