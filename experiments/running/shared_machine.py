"""A publisher and a subscriber of one host that are one machine (role `both`): programs that share it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from experiments.running.composite import CompositeProgram, Role
from experiments.running.publishing import PublisherProgram
from experiments.running.role_node import RoleNode
from experiments.running.subscribing import SubscriberProgram
from protocols.hosting import PortsHost
from protocols.machine import Event, Machine

__all__ = ["SharedMachineNode", "SharedMachineProgram"]

T = TypeVar("T")


class _Shared:
    """A host with one machine for several programs, each of which receives all of its events."""

    def __init__(self, host: PortsHost) -> None:
        self.host = host
        self.machine: Machine | None = None
        self.listeners: dict[_Part, Callable[[Event], None]] = {}

    def tell(self, event: Event) -> None:
        """Give an event to all programs."""
        for on_event in list(self.listeners.values()):
            on_event(event)


class _Part:
    """The host as one of the programs sees it."""

    def __init__(self, shared: _Shared) -> None:
        self.shared = shared

    @property
    def now(self) -> float:
        return self.shared.host.now

    @property
    def epoch(self) -> float:
        return self.shared.host.epoch

    def run(self, machine: Machine, on_event: Callable[[Event], None]) -> None:
        """Receive the events of the machine; the first program starts it."""
        is_first = not self.shared.listeners
        self.shared.listeners[self] = on_event
        if is_first:
            self.shared.host.run(machine, self.shared.tell)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        return self.shared.host.call(verb, *args)

    def later(self, when: float, action: Callable[[], None]) -> None:
        self.shared.host.later(when, action)

    def stop(self) -> None:
        """Receive no more events; the machine goes on for the other programs."""
        del self.shared.listeners[self]


@dataclass(frozen=True, slots=True)
class SharedMachineNode(RoleNode):
    """The parameters of a machine that several programs of a `SharedMachineProgram` use."""

    def make(self, host: PortsHost, restarts: int) -> Machine:
        """Return the machine, which is made when the first program asks for it."""
        shared = cast(_Part, host).shared
        if shared.machine is None:
            shared.machine = RoleNode.make(self, shared.host, restarts)
        return shared.machine


class SharedMachineProgram(CompositeProgram):
    """The programs of one host that share a machine."""

    def __init__(self, roles: Sequence[Role]) -> None:
        super().__init__(roles)
        self._host: PortsHost | None = None
        """The host while the machine runs."""
        self._left: PortsHost | None = None
        """The host after the programs left."""

    def start(self, host: PortsHost) -> None:
        """Start all programs, in order."""
        self._left = None
        self._host = host
        shared = _Shared(host)
        for role in self._roles:
            role.program.start(cast(PortsHost, _Part(shared)))

    def leave(self) -> None:
        """Let both programs leave, and the machine with them."""
        host, self._host = self._host, None
        for role in self._roles if host is not None else ():
            if isinstance(role.program, (PublisherProgram, SubscriberProgram)):
                role.program.leave()
        if host is not None:
            host.stop()
            self._left = host

    def come(self) -> None:
        """Start the programs again, with another machine, unless the host crashed meanwhile."""
        if self._left is not None:
            self.start(self._left)

    def crash(self) -> None:
        """Handle a crash of the host."""
        self._host = self._left = None
        super().crash()
