"""The interfaces of a network's TCP to hosts and to the ends of connections."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from protocols.connection import Connection, Reason
from protocols.tcp.congestion import Control
from protocols.tcp.options import TcpOptions
from sim.flight import Flight, Hop, Route
from sim.tcp.idle_timers import IdleTimers
from sim.tcp.segment import Key, Segment
from sim.tcp.streams import Messages, Reader, Writer

if TYPE_CHECKING:
    from sim.tcp.end import TcpEnd

__all__ = ["Connections", "Stack"]


class Connections(Protocol):
    """The interface of a network's TCP to its hosts."""

    is_watched: bool
    """Whether hosts report their segments (`sim.watch`)."""
    retransmissions: int
    """Segments that were sent again."""
    frame_costs: dict[int, float]
    """By place, of hosts with such a cost, the seconds of processor time for each segment that the host sends."""
    told: "TcpEnd | None"
    """See `Stack`."""

    def listen(self, host: Any, port: int = 0) -> None:
        """Accept connections at a port of a host; UsageError when another machine does."""

    def connect(self, host: Any, peer: object, port: int = 0) -> Connection:
        """Begin a connection of the machine at a port of a host; UsageError when there is no such peer."""

    def stop(self, host: Any, port: int | None = None) -> None:
        """Reset the connections of a port of a host, because its machine has ended; None: of all ports."""

    def crash(self, host: Any, power: bool = False) -> None:
        """End all connections of a host because its process is gone: they are reset; with `power` peers get no segment."""

    def restart(self, host: Any) -> None:
        """Answer segments again, after a loss of power."""

    def arrive(self, host: Any, flight: Flight, now: float) -> None:
        """Take a segment that arrived at a host."""


class Stack(Protocol):
    """The interface of a network's TCP (`sim.tcp_stack.TcpStack`) to an end; hosts are `sim.host.SimHost`."""

    options: TcpOptions
    told: "TcpEnd | None"
    """The end by which the machine is getting an input: what the machine writes on it is sent after the input."""
    retransmissions: int
    first_control: Control
    """The congestion control of all ends whose window has not changed yet; never modified."""
    idle_timers: IdleTimers
    """Call `expire_idle` of ends."""

    def place(self, end: "TcpEnd") -> None:
        """Enter a new end, and set its name, order, identity, route, first links, and the key of the other end."""

    def streams(self, host: Any, port: int) -> tuple[Writer, Reader]:
        """Return the writer and the reader of the streams of an end."""

    def send(self, host: Any, name: str, route: Route, hops: Sequence[Hop], segment: Segment, now: float) -> None:
        """Put a segment on the first links of a route; `name` is that of the host."""

    def reset(self, host: Any, to: Key, number: int, ack: int, now: float) -> None:
        """Send an RST with these numbers to an end."""

    def post(self, end: "TcpEnd", when: float) -> None:
        """Call `expire` of an end at `when` (seconds)."""

    def forget(self, end: "TcpEnd", keep: bool) -> None:
        """Remove an end that is gone; with `keep` only after a while, in which it answers late segments."""

    def opened(self, end: "TcpEnd", now: float) -> None:
        """Call `opened` of the machine: a connection is established."""

    def drained(self, end: "TcpEnd", now: float) -> None:
        """Call `drained` of the machine: it may send again."""

    def closed(self, end: "TcpEnd", reason: Reason, now: float) -> None:
        """Call `closed` of the machine."""

    def tell_later(self, end: "TcpEnd", now: float) -> None:
        """Call `tell_closed` of an end when the present input is over."""

    def deliver(self, end: "TcpEnd", messages: Messages, now: float) -> None:
        """Give messages to the machine while it reads; those that it reads later are held (`TcpEnd.hold`)."""
