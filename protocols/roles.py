"""The roles of a protocol, and the parameters of the machine of a role."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from protocols.machine import Address, Codec, Group, Machine, Ports

__all__ = ["BOTH", "CheckOptions", "MakeCodec", "MakeMachine", "Role", "RoleContext"]

BOTH: Final = "both"
"""The role of a publisher and a subscriber that are one machine."""


@dataclass(frozen=True, slots=True)
class RoleContext:
    """Parameters of the machine of a role.

    `node` is its 32-bit id within the protocol, `instance` differs between starts of it, `options` is of the role's
    class of options (None: the role has none).
    """

    config: Any
    node: int
    group: Group
    instance: int = 1
    options: Any = None
    addresses: Mapping[str, Sequence[Address]] = field(default_factory=dict)
    """The addresses of all machines of each role that this one needs, in the order of the nodes."""
    address: Address = None
    """The machine's own address, at which others reach it."""
    networks: Sequence[str] = ()
    """The networks of a router that runs the machine (`Group.network`); none on other hosts."""


MakeMachine: TypeAlias = Callable[[Ports, RoleContext], Machine]
MakeCodec: TypeAlias = Callable[[Codec | None, Mapping[int, bytes], Callable[[], float]], Codec]
"""Makes the codec of a role from that of the protocol (None: packets of the protocol stay bytes), from keys by their id (none:
the options name no file of keys), and from a clock (seconds since 1970)."""
CheckOptions: TypeAlias = Callable[[Any, Any, Sequence[str]], None]


def _any(options: Any, config: Any, networks: Sequence[str]) -> None:
    """Allow all options."""


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a protocol.

    `needs` names the roles whose addresses its machine gets; each must be taken by a node, a `single` one by one only.
    `options` is a frozen dataclass of settings (`protocols.settings`) that a scenario gives beside `role:`; one of the unit
    `network` names a network of the router that takes the role.
    """

    make: MakeMachine
    needs: tuple[str, ...] = ()
    options: type | None = None
    single: bool = False
    codec: MakeCodec | None = None
    """Makes the codec of its messages; None: that of the protocol."""
    check: CheckOptions = _any
    """Raises ConfigError, beginning with a key, for options that do not fit the config or the networks of the node's router."""
    divides: bool = False
    """Whether all hosts send multicasts with TTL 1 in a run with this role: routers drop them, and machines of the role forward
    them. A receiver may get the packets of one sender from several hosts then, so a simulator runs the plain classes."""
