"""The roles of FJM2 and its sender and receiver of files, on machines of NORM."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from protocols.admin import ROLE as ADMIN
from protocols.fjm2.both import Fjm2Both
from protocols.fjm2.files import Fjm2Receiver, Fjm2Sender
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.machine import Group, Ports
from protocols.roles import BOTH, Role, RoleContext
from protocols.spec import MakeReceiver, Makers, MakeSender
from protocols.tunnel import ROLE as TUNNEL

__all__ = ["makers_on", "roles_on"]


def roles_on(make_sender: MakeSender, make_receiver: MakeReceiver) -> Mapping[str, Role]:
    """Return the roles, with these machines of NORM under them."""
    return {
        "publisher": Role(partial(Fjm2Publisher, make_sender)),
        "subscriber": Role(partial(Fjm2Subscriber, make_receiver)),
        BOTH: Role(partial(Fjm2Both, make_sender, make_receiver)),
        "tunnel": TUNNEL,
        "admin": ADMIN,
    }


def makers_on(make_sender: MakeSender, make_receiver: MakeReceiver) -> Makers:
    """Return what makes the sender and the receiver of files, with these machines of NORM under them."""

    def sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Fjm2Sender:
        return Fjm2Sender(make_sender, ports, RoleContext(config, node, group, instance))

    def receiver(ports: Ports, config: Any, node: int, group: Group) -> Fjm2Receiver:
        return Fjm2Receiver(make_receiver, ports, RoleContext(config, node, group))

    return Makers(sender, receiver)
