"""What runs machines: hosts, which are also the ports of their machine."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from protocols.events import Event
from protocols.machine import Address, Machine, Offer, Ports, Sink

__all__ = ["Host", "PortsHost"]

T = TypeVar("T")


class Host(Protocol):
    """What runs a machine: `sim.host.SimHost`, `emu.host.UdpHost`, the fake host of the tests."""

    @property
    def now(self) -> float:
        """Seconds since the run began."""

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; its events go to `on_event`, which may use `call`. `accept` answers offers; None wants nothing."""

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)`, a method of the machine, and do what it caused."""

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds since the run began (an application's own timer)."""

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of the host `name`; port 0 is that of a host's first machine."""


class PortsHost(Host, Ports, Protocol):
    """A host that is also the ports of its machine: `host.run(NormReceiver(host, ...), on_event)`."""

    def stop(self) -> None:
        """Remove the machine: it leaves its groups and gets no further inputs."""
