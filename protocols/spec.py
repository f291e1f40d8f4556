"""The description of a protocol for hosts and experiments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from protocols.errors import UsageError
from protocols.framing import Framing, LengthPrefixed
from protocols.machine import Codec, Content, Group, Machine, Ports, Sender
from protocols.messaging import Guarantees, Publication
from protocols.mutant import Mutant
from protocols.repairs import Repairs
from protocols.roles import Role, RoleContext
from protocols.snapshot import Measure

__all__ = ["MakeAuthenticated", "MakeGuarded", "Makers", "ProtocolSpec"]

MakeSender: TypeAlias = Callable[[Ports, Any, int, Group, int], Sender]
MakeReceiver: TypeAlias = Callable[[Ports, Any, int, Group], Machine]
MakeAuthenticated: TypeAlias = Callable[[Mapping[int, bytes], Callable[[], float], bool], Codec]
"""Makes a codec from keys by their id, a clock (seconds since 1970), and whether several nodes share the codec."""

MakeGuarded: TypeAlias = Callable[[Codec, Mapping[int, bytes], Callable[[], float]], Codec]
"""Makes a codec from one that authenticates nothing of tunnels, keys by their id, and a clock (seconds since 1970)."""


class Makers(NamedTuple):
    """The two constructors of a protocol's machines."""

    make_sender: MakeSender
    make_receiver: MakeReceiver


def _no_sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
    """Raise UsageError, in place of the sender of a protocol that carries no files, or by a server only."""
    raise UsageError("the protocol carries no files without a server")


def _no_receiver(ports: Ports, config: Any, node: int, group: Group) -> Machine:
    """Raise UsageError, in place of the receiver of a protocol that carries no files, or by a server only."""
    raise UsageError("the protocol carries no files without a server")


def _sender_of(makers: Makers, ports: Ports, context: RoleContext) -> Machine:
    return makers.make_sender(ports, context.config, context.node, context.group, context.instance)


def _receiver_of(makers: Makers, ports: Ports, context: RoleContext) -> Machine:
    return makers.make_receiver(ports, context.config, context.node, context.group)


def _takes_no_marks(config: Any) -> bool:
    """Return False, for a protocol without ECN."""
    return False


def _takes_all(config: Any, content: object) -> object:
    """Raise nothing, for a protocol that takes every message, or all content."""
    return None


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    """What hosts and experiments need to run a protocol.

    `config` is a frozen dataclass whose fields carry `metadata` (see `protocols.settings`). A protocol of files has the roles
    `sender` and `receiver`, made by two constructors: they take (ports, config, node, group) and a sender's also `instance`:
    `node` is the 32-bit id of the node within the protocol, `instance` tells one start of a sender from the next. Where they
    need a server, both are in `roles` instead, as are all further roles; a messaging protocol has `publisher` and `subscriber`
    and `guarantees`. All machines of a run share `group`.
    """

    name: str
    config: type
    codec: Callable[[], Codec]
    make_sender: MakeSender = _no_sender
    make_receiver: MakeReceiver = _no_receiver
    ordered: bool = False
    """Whether the objects of a sender are received in the order of their ids."""
    fast: str | None = None
    """Module with a `make_sender` and a `make_receiver` of equal machines for a simulator, e.g. "protocols.norm.fast".

    It is imported only when `makers` is asked for it. None: there is none.
    """

    periodic: tuple[str, ...] = ()
    """Kinds of the messages that its machines send as long as they run, such as heartbeats."""

    can_fail: bool = False
    """Whether its machines may end their host by a fault of their own (`Ports.fail`)."""
    orders: Callable[[Any], bool] = lambda config: False
    """Whether, with a config, the messages of a publisher come in order, even if `guarantees` has no order."""
    separates_roles: Callable[[Any], bool] = lambda config: False
    """Whether, with a config, a host must not both publish and subscribe."""
    connected: bool = False
    """Whether its machines use connections."""
    framing: Callable[[], Framing] = LengthPrefixed
    """Makes what joins messages to the stream of a connection; each end of each connection has its own."""

    authenticated: MakeAuthenticated | None = None
    """Makes the codec of a node that authenticates messages. None: the protocol can't; its config has no `key_file`."""
    guarded: MakeGuarded | None = None
    """Makes the codec of a node that takes from tunnels only what is authentic. None: its config has no `tunnel_key_file`."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Roles by name: those beside `sender` and `receiver`, and these two where they need the address of another one."""
    fast_roles: str | None = None
    """Module with equal roles for a simulator as `ROLES`, imported only when they are asked for. None: there are none."""
    guarantees: Guarantees | None = None
    """Guarantees of a messaging protocol; None: it carries files only."""

    check_content: Callable[[Any, Content], object] = _takes_all
    """Raises UsageError for content that senders with a config refuse."""
    check_message: Callable[[Any, Publication], object] = _takes_all
    """Raises UsageError for a message that publishers with a config refuse. The bodies of messages have sizes only."""

    uses_ecn: Callable[[Any], bool] = _takes_no_marks
    """Return whether machines with these parameters take marks of queues for losses (ECN)."""

    measures: tuple[Measure, ...] = ()
    """What its machines' snapshots have beside the shared `protocols.snapshot.MEASURES`."""

    repairs: Repairs | None = None
    """Reads requests and repairs from its messages, for rules about requests; None: no such rule is checked."""

    mutants: str | None = None
    """Module with `MUTANTS`, which are variants with one defect each by name; imported when `mutated` is asked for one."""

    @property
    def mutant_table(self) -> Mapping[str, Mutant]:
        """The mutants by name."""
        found: Mapping[str, Mutant] = import_module(self.mutants).MUTANTS if self.mutants is not None else {}
        return found

    def mutated(self, name: str) -> "ProtocolSpec":
        """Return the mutant of this name, which must be one of `mutant_table`; the protocol itself for an empty name."""
        return self.mutant_table[name].spec if name else self

    def roles_for(self, fast: bool = False) -> Mapping[str, Role]:
        """Return `roles`, or with `fast` those of fast machines where the protocol has any."""
        if not fast or self.fast_roles is None:
            return self.roles
        found: Mapping[str, Role] = import_module(self.fast_roles).ROLES
        return found

    @property
    def carries_files(self) -> bool:
        """Whether it has the roles `sender` and `receiver`."""
        return self.needs_no_server or {"sender", "receiver"} <= self.roles.keys()

    @property
    def needs_no_server(self) -> bool:
        """Whether it carries files, and its senders and receivers need no machine of another role."""
        return self.make_sender is not _no_sender and self.make_receiver is not _no_receiver

    def file_role(self, name: str, fast: bool = False) -> Role:
        """Return the role `sender` or `receiver` of a protocol that carries files."""
        roles, makers = self.roles_for(fast), self.makers(fast)
        if name in roles:
            return roles[name]
        return Role(partial(_sender_of, makers) if name == "sender" else partial(_receiver_of, makers))

    def makers(self, fast: bool = False) -> Makers:
        """Return the constructors of the plain machines, or with `fast` of the fast ones where the protocol has any."""
        if not fast or self.fast is None:
            return Makers(self.make_sender, self.make_receiver)
        module = import_module(self.fast)
        return Makers(module.make_sender, module.make_receiver)
