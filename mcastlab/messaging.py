"""Messages of JMS on a real network, for programs that use asyncio.

>>> from mcastlab.messaging import connect
>>> async with connect("239.7.7.61:6010", "eth0") as bus:
...     await bus.publish("prices", "12.5", priority=7, ttl=5, properties={"symbol": "ABB"})
"""

from typing import Any

from emu.udp_options import LARGEST_TTL, UdpOptions
from experiments.scenario.plain_values import mapping_of
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.session.membership import Membership
from experiments.session.message_bus import MOST_WAITING, MessageBus
from experiments.session.message_stream import MessageStream
from experiments.session.subscription_stream import CallbackFailed, DeliveryOverflowed
from mcastlab._arguments import a_flag, a_place, a_whole
from protocols.errors import UsageError
from protocols.jms import ConversionError, JmsMessage, Properties, Typed
from protocols.messaging import MessageDropped, MessageExpired, MessagesLost
from protocols.roles import BOTH

__all__ = [
    "CallbackFailed",
    "ConversionError",
    "DeliveryOverflowed",
    "JmsMessage",
    "MessageBus",
    "MessageDropped",
    "MessageExpired",
    "MessageStream",
    "MessagesLost",
    "Properties",
    "Typed",
    "connect",
]


def connect(
    group: str,
    iface: str | None = None,
    *,
    publish: bool = True,
    subscribe: bool = True,
    ttl: int = 1,
    waiting: int = MOST_WAITING,
    **parameters: Any,
) -> MessageBus:
    """Return a bus: `async with connect("239.7.7.61:6010", "eth0") as bus`.

    `group` is a multicast address and a port, `iface` a device or its address (default: the system's multicast route), `ttl`
    that of IP packets, `waiting` how many messages of a subscription may wait for the program. A bus that will not `publish`,
    or not `subscribe`, does not do the work for it. `parameters` are those of FJM2
    (docs/fjm2.md), as numbers in seconds, bytes and bits per second or with units: `rate="50Mbit", order="fifo"`. UsageError
    names the argument or the parameter that is wrong.
    """
    publishes, subscribes = a_flag("publish", publish), a_flag("subscribe", subscribe)
    if not publishes and not subscribes:
        raise UsageError("publish, subscribe: False is not allowed for both; a bus does one of them")
    choice = ProtocolChoice.parse({"name": "fjm2", **mapping_of(parameters, "protocol")})
    role = BOTH if publishes and subscribes else "publisher" if publishes else "subscriber"
    network = UdpOptions(a_whole("ttl", ttl, 0, LARGEST_TTL))
    place = Membership(choice.spec, choice.config, *a_place(group, iface), None, network)
    return MessageBus(place, waiting, role)
