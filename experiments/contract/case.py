"""A protocol with the parameters the contract suite runs it with."""

from dataclasses import dataclass
from typing import Any

from protocols.machine import Codec, Group, Machine, Ports, Sender
from protocols.spec import ProtocolSpec

__all__ = ["Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """A protocol and values for its config. The sender is node 1, receivers are nodes 2, 3, ...

    `settings` should make a session short: the suite expects segments of 500 bytes and times of some 10 ms.
    """

    protocol: ProtocolSpec
    settings: dict[str, Any]

    def __str__(self) -> str:
        return self.protocol.name

    def codec(self) -> Codec:
        """A new codec."""
        return self.protocol.codec()

    def sender(self, ports: Ports, group: Group) -> Sender:
        """The sender of the session."""
        return self.protocol.make_sender(ports, self.protocol.config(**self.settings), 1, group, 7)

    def receiver(self, ports: Ports, group: Group, number: int) -> Machine:
        """Receiver `number`, counted from 1."""
        return self.protocol.make_receiver(ports, self.protocol.config(**self.settings), 1 + number, group)
