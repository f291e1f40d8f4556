"""The protocols under test, each with parameters that make a session short. A new protocol adds a line to SETTINGS."""

from dataclasses import dataclass
from typing import Any

from protocols.machine import Codec, Group, Machine, Ports, Sender
from protocols.registry import names, protocol
from protocols.spec import ProtocolSpec
from tests.support.toy import TOY

__all__ = ["CASES", "FAST_CASES", "TOY_CASE", "Case"]

SETTINGS: dict[str, dict[str, Any]] = {
    "toy": {"rate": 1e6, "segment": 500, "wait": 0.005, "robust": 8},
    "norm": {"rate": 1e6, "segment": 500, "block": 8, "parity": 4, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "a": {"rate": 1e6, "segment": 500, "timeout": 0.05, "robust": 10},
    "n1": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.005, "hold": 0.01, "robust": 8},
    "n2": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.0, "hold": 0.01, "window": 0.02, "robust": 8},
    "srm": {"rate": 1e6, "segment": 500, "timeout": 0.05, "distance": 0.005, "robust": 10},
}


@dataclass(frozen=True, slots=True)
class Case:
    """A protocol and the parameters to run it with. The sender is node 1, receivers are 2, 3, ... `fast`: its fast machines."""

    protocol: ProtocolSpec
    settings: dict[str, Any]
    fast: bool = False

    def __str__(self) -> str:
        return f"{self.protocol.name}-fast" if self.fast else self.protocol.name

    def codec(self) -> Codec:
        """A fresh codec."""
        return self.protocol.codec()

    def sender(self, ports: Ports, group: Group) -> Sender:
        """The sender of the session."""
        return self.protocol.makers(self.fast).make_sender(ports, self.protocol.config(**self.settings), 1, group, 7)

    def receiver(self, ports: Ports, group: Group, number: int) -> Machine:
        """Receiver `number`, counted from 1."""
        return self.protocol.makers(self.fast).make_receiver(ports, self.protocol.config(**self.settings), 1 + number, group)


TOY_CASE = Case(TOY, SETTINGS["toy"])
CASES = [TOY_CASE, *(Case(protocol(name), SETTINGS.get(name, {})) for name in names())]
FAST_CASES = [Case(case.protocol, case.settings, fast=True) for case in CASES if case.protocol.fast is not None]
