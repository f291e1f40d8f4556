"""What runs machines: hosts, which are also the ports of their machine."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from protocols.connection import Connection
from protocols.events import Event
from protocols.machine import Address, Codec, Group, Machine, Offer, Packet, Ports, Sink
from protocols.storage import Change

__all__ = ["Host", "PortsHost", "Program", "SeveralPortsHost"]

T = TypeVar("T")


class Host(Protocol):
    """What runs a machine: `sim.host.SimHost`, `emu.host.UdpHost`, the fake host of the tests."""

    @property
    def now(self) -> float:
        """Seconds since the run began."""

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; its events go to `on_event`, which may use `call`.

        `accept` chooses the sinks of offered objects; None accepts none.
        """

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)`, a method of the machine, and do what it caused."""

    def machine_time(self) -> float:
        """Return the present time by the clock of the machine, in seconds; in the simulator, faults may shift it."""

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds since the run began (an application's own timer)."""

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of the host `name`; port 0 is that of a host's first machine."""


class PortsHost(Host, Ports, Protocol):
    """A host that is also the ports of its machine: `host.run(NormReceiver(host, ...), on_event)`."""

    def stop(self) -> None:
        """Remove the machine: it leaves its groups, its connections are reset, and it gets no further inputs."""


class SeveralPortsHost(PortsHost, Protocol):
    """A host whose machine consists of several, each with a port of its own (`protocols.composite`): what a real host is.

    Port 0 is that of the host's first machine, and every `port` below is 0 unless it is given. A multicast of one port reaches
    the other ports of the host that joined the group. `Connection.port` says where a connection belongs.
    """

    def open_port(self, port: int, codec: Callable[[], Codec] | None = None) -> None:
        """Use a port from now on. `codec` makes the codec of its messages; None: as at port 0."""

    def close_port(self, port: int) -> None:
        """Stop using a port: its groups are left, its connections reset, and what arrives for it is dropped."""

    def port_of(self, address: Address) -> int | None:
        """Return which port of this host has an address (`to` or `source` of a datagram), None for those of other hosts."""

    def send(self, packet: Packet, port: int = 0) -> object:
        """See `Ports.send`."""

    def join(self, group: Group, port: int = 0) -> None:
        """See `Ports.join`."""

    def leave(self, group: Group, port: int = 0) -> None:
        """See `Ports.leave`."""

    def keep(self, octets: int, port: int = 0) -> None:
        """See `Ports.keep`; what the machines of several ports keep adds up."""

    def listen(self, port: int = 0) -> None:
        """See `ConnectionPorts.listen`."""

    def connect(self, peer: object, port: int = 0) -> Connection:
        """See `ConnectionPorts.connect`."""

    def store(self, changes: Sequence[Change], port: int = 0) -> int:
        """See `StoragePorts.store`; every port has records of its own."""

    def fetch(self, first: bytes = b"", last: bytes | None = None, most: int | None = None, port: int = 0) -> int:
        """See `StoragePorts.fetch`."""


class Program(Protocol):
    """The program of a node; the same object runs in every world."""

    def start(self, host: PortsHost) -> None:
        """Make the machine on the host's ports and run it."""

    def finished(self) -> bool:
        """Return whether all workloads of this node have finished; it continues to send repairs until the run ends."""

    def result(self) -> dict[str, Any]:
        """Return the result as values that JSON has; called once, at the end of the run."""
