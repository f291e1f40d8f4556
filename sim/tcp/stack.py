"""TCP of a network as hosts see it, and as the ends of connections do."""

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
    undecodable: int
    """Connections reset because what arrived is no message."""
    frame_costs: dict[int, float]
    """Seconds of processor time that a segment takes which a host sends, by place, of hosts that need any."""
    told: "TcpEnd | None"
    """See `Stack`."""

    def listen(self, host: Any, port: int = 0) -> None:
        """Accept connections at a port of a host; UsageError when another machine does."""

    def connect(self, host: Any, peer: object, port: int = 0) -> Connection:
        """Begin a connection of the machine at a port of a host; UsageError when there is no such peer."""

    def stop(self, host: Any, port: int | None = None) -> None:
        """Reset the connections of a port of a host, because its machine has ended; None: of all ports."""

    def crash(self, host: Any, power: bool = False) -> None:
        """End all connections of a host because its process is gone: peers are reset; with `power` they hear nothing."""

    def restart(self, host: Any) -> None:
        """Answer segments again, after a loss of power."""

    def arrive(self, host: Any, flight: Flight, now: float) -> None:
        """Take a segment that arrived at a host."""


class Stack(Protocol):
    """What an end needs of the TCP of its network (`sim.tcp_stack.TcpStack`); hosts are `sim.host.SimHost`."""

    options: TcpOptions
    told: "TcpEnd | None"
    """The end whose machine is being told something, so that what it writes there is sent afterwards."""
    retransmissions: int
    undecodable: int
    first_control: Control
    """The congestion control of all ends whose window has not changed yet; never modified."""
    idle_timers: IdleTimers
    """Call `expire_idle` of ends."""

    def place(self, end: "TcpEnd") -> None:
        """Enter a new end: give it its name, its order, its random keys, its route and the key of the other end."""

    def streams(self, host: Any, port: int) -> tuple[Writer, Reader]:
        """Return what the messages of an end are written to, and what joins the segments that arrive to messages."""

    def send(self, host: Any, name: str, route: Route, hops: Sequence[Hop], segment: Segment, now: float) -> None:
        """Put a segment on the first links of a route; `name` is that of the host."""

    def reset(self, host: Any, to: Key, number: int, ack: int, now: float) -> None:
        """Send an RST with these numbers to an end."""

    def post(self, end: "TcpEnd", when: float) -> None:
        """Call `expire` of an end at `when` (seconds)."""

    def forget(self, end: "TcpEnd", keep: bool) -> None:
        """Remove an end that is gone; with `keep` only after a while, in which it answers late segments."""

    def opened(self, end: "TcpEnd", now: float) -> None:
        """Tell the machine that a connection is established."""

    def drained(self, end: "TcpEnd", now: float) -> None:
        """Tell the machine that it may send again."""

    def closed(self, end: "TcpEnd", reason: Reason, now: float) -> None:
        """Tell the machine that a connection is closed."""

    def tell_later(self, end: "TcpEnd", now: float) -> None:
        """Call `tell_closed` of an end when the present input is over."""

    def deliver(self, end: "TcpEnd", messages: Messages, now: float) -> None:
        """Give messages to the machine while it reads; those that it reads later are held (`TcpEnd.hold`)."""
