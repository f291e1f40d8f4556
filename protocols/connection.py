"""Connections between machines: reliable, ordered, of whole messages. TCP carries them in every world.

Rules, for machines and for hosts:

1. A connection is opened once at each end (`Machine.opened`) and closed once at each end (`Machine.closed`), with a reason of
   `Reason`. One that is never established is closed without having been opened.
2. Between the two, messages arrive whole, in the order they were sent, each once: `receive(message, connection, connection,
   now)`. What was sent before `hang_up` arrives before the other end gets "ended".
3. A machine sends only between `opened` and the earlier of its `hang_up` and `closed`. After `hang_up` it receives no more,
   and `closed` follows with "ended" when all it sent has arrived. To hang up before `opened` is to give up.
4. A true result of `send` means "full" for this connection alone: send nothing more on it before `drained`. Other connections
   and datagrams are not affected.
5. A machine may connect to its own host, and to itself when it listens; the two ends are two connections.
"""

from typing import Literal, Protocol, TypeAlias, get_args

__all__ = ["REASONS", "Connection", "ConnectionPorts", "Reason"]

Reason: TypeAlias = Literal["refused", "ended", "reset", "timeout"]
"""Why a connection was closed.

"refused": nobody listens there; "ended": one end hung up; "reset": the other end's host broke it off, e.g. its process crashed,
or it sent what can't be decoded; "timeout": the other end did not answer.
"""
REASONS: tuple[Reason, ...] = get_args(Reason)


class Connection:
    """One end of a connection: an opaque address, made by a host and compared by identity."""

    __slots__ = ("peer", "port")

    def __init__(self, peer: object, port: int = 0) -> None:
        self.peer = peer
        """Address of the other end, for people who look at a run."""
        self.port = port
        """Number of the port of this end's host, by which a host of several machines finds the one it belongs to."""

    def __repr__(self) -> str:
        return f"<connection with {self.peer}>"


class ConnectionPorts(Protocol):
    """The part of a machine's ports that concerns connections; messages are sent with `Ports.send`."""

    def listen(self) -> None:
        """Accept connections at this machine's own address from now on. UsageError if another machine listens there."""

    def connect(self, peer: object) -> Connection:
        """Begin a connection with the machine that listens at the address `peer`; `opened` or `closed` follows."""

    def hang_up(self, connection: Connection) -> None:
        """Close a connection in both directions when all that was sent has arrived; `closed` follows."""

    def hold(self, connection: Connection) -> None:
        """Deliver no more messages of a connection before `release`; meanwhile its other end gets "full"."""

    def release(self, connection: Connection) -> None:
        """Deliver the messages of a connection again, after the present input."""
