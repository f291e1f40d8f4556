"""What the ends of connections need of the network that they are in."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from protocols.connection import Reason
from protocols.tcp.options import TcpOptions
from sim.flight import Hop, Route
from sim.tcp.segment import Key, Segment
from sim.tcp.streams import Messages, Reader, Writer

if TYPE_CHECKING:
    from sim.tcp.end import TcpEnd

__all__ = ["Stack"]


class Stack(Protocol):
    """TCP of a network, which connects ends with links and machines (`sim.tcp_stack.TcpStack`). Hosts are `sim.host.SimHost`."""

    options: TcpOptions
    retransmissions: int
    undecodable: int

    def place(self, end: "TcpEnd") -> None:
        """Enter a new end: give it its number, its random keys and its route."""

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
        """Give messages to the machine as long as it wants any; those that it reads later are held (`TcpEnd.hold`)."""
