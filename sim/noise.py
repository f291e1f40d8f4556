"""Packets that are no protocol's: they load links and queues, and no machine ever sees them."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Group, Message

__all__ = ["NOISE_GROUP", "Noise"]

NOISE_GROUP = Group("noise")
"""Every host is a member, and nobody listens."""


@dataclass(slots=True)
class Noise(Message):
    """Bytes without meaning."""

    kind: ClassVar[str] = "noise"
