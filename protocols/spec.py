"""What a protocol is to those who run it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocols.machine import Codec, Group, Machine, Ports, Sender

__all__ = ["ProtocolSpec"]


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    """What hosts and experiments need to run a protocol.

    `config` is a frozen dataclass whose fields carry `metadata` (see `protocols.settings`). `node` is the 32-bit id of the
    node within the protocol; `instance` tells one start of a sender from the next. All machines of a run share `group`.
    """

    name: str
    config: type
    codec: Callable[[], Codec]
    make_sender: Callable[[Ports, Any, int, Group, int], Sender]
    make_receiver: Callable[[Ports, Any, int, Group], Machine]
    ordered: bool = False
    """Does it promise that the objects of a sender are received in the order of their ids?"""
