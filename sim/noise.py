"""Packets of no protocol: they load links and queues, and no machine receives them."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Group, Message

__all__ = ["NOISE_GROUP", "Noise"]

NOISE_GROUP = Group("noise")
"""Every host is a member, with an idle machine."""


@dataclass(slots=True)
class Noise(Message):
    """A packet of no protocol."""

    kind: ClassVar[str] = "noise"
