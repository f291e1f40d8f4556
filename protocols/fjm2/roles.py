"""The roles of FJM2, on machines of NORM."""

from collections.abc import Mapping
from functools import partial

from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.roles import Role
from protocols.spec import MakeReceiver, MakeSender

__all__ = ["roles_on"]


def roles_on(make_sender: MakeSender, make_receiver: MakeReceiver) -> Mapping[str, Role]:
    """Return the roles, with these machines of NORM under them."""
    return {
        "publisher": Role(partial(Fjm2Publisher, make_sender)),
        "subscriber": Role(partial(Fjm2Subscriber, make_receiver)),
    }
