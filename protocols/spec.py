"""The description of a protocol for hosts and experiments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from protocols.framing import Framing, LengthPrefixed
from protocols.machine import Codec, Group, Machine, Ports, Sender

__all__ = ["MakeAuthenticated", "Makers", "ProtocolSpec"]

MakeSender: TypeAlias = Callable[[Ports, Any, int, Group, int], Sender]
MakeReceiver: TypeAlias = Callable[[Ports, Any, int, Group], Machine]
MakeAuthenticated: TypeAlias = Callable[[Mapping[int, bytes], Callable[[], float], bool], Codec]
"""Makes a codec from keys by their id, a clock (seconds since 1970), and whether several nodes share the codec."""


class Makers(NamedTuple):
    """The two constructors of a protocol's machines."""

    make_sender: MakeSender
    make_receiver: MakeReceiver


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    """What hosts and experiments need to run a protocol.

    `config` is a frozen dataclass whose fields carry `metadata` (see `protocols.settings`). The constructors take (ports,
    config, node, group) and a sender's also `instance`: `node` is the 32-bit id of the node within the protocol, `instance`
    tells one start of a sender from the next. All machines of a run share `group`.
    """

    name: str
    config: type
    codec: Callable[[], Codec]
    make_sender: MakeSender
    make_receiver: MakeReceiver
    ordered: bool = False
    """Whether the objects of a sender are received in the order of their ids."""
    fast: str | None = None
    """Module with a `make_sender` and a `make_receiver` of equal machines for a simulator, e.g. "protocols.norm.fast".

    It is imported only when `makers` is asked for it. None: there is none.
    """

    framing: Callable[[], Framing] = LengthPrefixed
    """Makes what joins messages to the stream of a connection; each end of each connection has its own."""

    authenticated: MakeAuthenticated | None = None
    """Makes the codec of a node that authenticates messages. None: the protocol can't; its config has no `key_file`."""

    def makers(self, fast: bool = False) -> Makers:
        """Return the constructors of the plain machines, or with `fast` of the fast ones where the protocol has any."""
        if not fast or self.fast is None:
            return Makers(self.make_sender, self.make_receiver)
        module = import_module(self.fast)
        return Makers(module.make_sender, module.make_receiver)
