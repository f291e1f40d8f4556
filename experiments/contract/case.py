"""A protocol with the parameters the contract suite runs it with."""

from dataclasses import dataclass
from typing import Any

from protocols.machine import Codec, Group, Machine, Ports, Sender
from protocols.spec import ProtocolSpec

__all__ = ["SETTINGS", "Case"]

SETTINGS: dict[str, dict[str, Any]] = {
    "norm": {"rate": 1e6, "segment": 500, "block": 8, "parity": 4, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "fjm2": {"rate": 1e6, "segment": 500, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "bus": {"rate": 1e6, "segment": 500, "holdoff": 0.02, "heartbeat": 0.02, "cost": 0.0001},
    "fjm": {
        "rate": 1e6,
        "rate_min": 2e5,
        "segment": 500,
        "holdoff": 0.02,
        "history": 5.0,
        "heartbeat": 0.02,
        "election": 0.02,
        "ask": 0.05,
        "beacon": 100.0,
        "silence": 300.0,
    },
    "a": {"rate": 1e6, "segment": 500, "timeout": 0.05, "robust": 10},
    "n1": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.005, "hold": 0.01, "robust": 8},
    "n2": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.0, "hold": 0.01, "window": 0.02, "robust": 8},
    "srm": {"rate": 1e6, "segment": 500, "timeout": 0.05, "distance": 0.005, "robust": 10},
}
"""Config values of mcastlab's own protocols for the suite; an external module gives them in its `CONTRACT`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A protocol and values for its config. The sender is node 1, receivers are nodes 2, 3, ...

    The suite expects `settings` with segments of 500 bytes and timers of some 10 ms.
    """

    protocol: ProtocolSpec
    settings: dict[str, Any]
    fast: bool = False
    """Whether to run the protocol's fast machines instead of the plain ones."""

    def __str__(self) -> str:
        return f"{self.protocol.name}-fast" if self.fast else self.protocol.name

    def codec(self) -> Codec:
        """Make a codec."""
        return self.protocol.codec()

    def sender(self, ports: Ports, group: Group) -> Sender:
        """Make the sender of the session."""
        return self.protocol.makers(self.fast).make_sender(ports, self.protocol.config(**self.settings), 1, group, 7)

    def receiver(self, ports: Ports, group: Group, number: int) -> Machine:
        """Make receiver `number`, counted from 1."""
        return self.protocol.makers(self.fast).make_receiver(ports, self.protocol.config(**self.settings), 1 + number, group)
