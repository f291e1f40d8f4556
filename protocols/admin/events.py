"""Events of a registry for its application."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from protocols.admin.node import Node
from protocols.events import Event

__all__ = ["NodeChanged", "NodeLeft", "NodeRegistered", "RegistryOpened", "Why"]

Why: TypeAlias = Literal["left", "silent"]
"""A node left by itself, or did not renew within its lease."""


@dataclass(frozen=True, slots=True)
class RegistryOpened(Event):
    """The registry has read its state from the disk, and serves."""

    nodes: int


@dataclass(frozen=True, slots=True)
class NodeRegistered(Event):
    """A node is new in the list, or came again with other values."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeChanged(Event):
    """A node was paused or resumed."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeLeft(Event):
    """A node is no longer in the list."""

    node: Node
    why: Why
