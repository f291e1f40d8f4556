"""The roles of a protocol: what a node is, and what its machine is told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from protocols.machine import Address, Group, Machine, Ports

__all__ = ["MakeMachine", "Role", "RoleContext"]


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What the machine of a role is told.

    `node` is its 32-bit id within the protocol, `instance` tells one start of it from the next, `options` is of the role's
    class of options (None: the role has none).
    """

    config: Any
    node: int
    group: Group
    instance: int = 1
    options: Any = None
    addresses: Mapping[str, Sequence[Address]] = field(default_factory=dict)
    """The addresses of all machines of each role that this one needs, in the order of the nodes."""
    networks: Sequence[str] = ()
    """The networks of a router that runs the machine (`Group.network`); none on other hosts."""


MakeMachine: TypeAlias = Callable[[Ports, RoleContext], Machine]


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a protocol.

    `needs` names the roles whose addresses its machine is told; each must be taken by a node, a `single` one by one only.
    `options` is a frozen dataclass of settings (`protocols.settings`) that a scenario gives beside `role:`; one of the unit
    `network` names a network of the router that takes the role.
    """

    make: MakeMachine
    needs: tuple[str, ...] = ()
    options: type | None = None
    single: bool = False
