"""The rules of packets and events, and those of connections and storage as state: they assert that a call is allowed."""

from collections import deque
from typing import Literal, TypeAlias

from protocols.connection import REASONS, Connection, Reason
from protocols.events import Event
from protocols.machine import Message, Packet

__all__ = ["ConnectionRules", "StorageRules", "check_event", "check_packet"]

State: TypeAlias = Literal["unknown", "connecting", "open", "full", "hung up", "closed"]


def check_packet(who: str, packet: Packet) -> None:
    """Assert that a packet of the machine on `who` has a message with a kind and an identity, and a size."""
    message, size = packet.message, packet.size
    assert isinstance(message, Message), f"{who} sends {message!r}, which is no Message"
    assert isinstance(message.kind, str), f"{who} sends a message of kind {message.kind!r}, which is no text"
    is_size = isinstance(size, int) and size >= 0
    assert is_size, f"{who} sends {message.kind} of size {size!r}; whole numbers from 0 are allowed"
    identity = message.identity
    is_identity = identity is None or (isinstance(identity, int) and 0 <= identity < 1 << 64)
    assert is_identity, f"{who} sends {message.kind} with the identity {identity!r}; None and 0 to 2**64 - 1 are allowed"


def check_event(who: str, event: Event) -> None:
    """Assert that what the machine on `who` gives to its application is an event."""
    assert isinstance(event, Event), f"{who} notifies {event!r}, which is no Event"


class ConnectionRules:
    """How far each connection of one machine is; `who` names the host in messages. See protocols/connection.py."""

    def __init__(self, who: str) -> None:
        self._who = who
        self.states: dict[Connection, State] = {}
        """How far each connection is that is not closed."""
        self.reasons: dict[Connection, Reason] = {}
        """Why each of the others was closed."""
        self._established: set[Connection] = set()

    def state(self, connection: Connection) -> State:
        """Return how far a connection is."""
        return "closed" if connection in self.reasons else self.states.get(connection, "unknown")

    # What the machine does

    def connect(self, connection: Connection) -> None:
        """The machine begins a connection."""
        self._expect(connection, "is given another connection", "unknown")
        self.states[connection] = "connecting"

    def send(self, connection: Connection) -> None:
        """The machine sends a message."""
        self._expect(connection, "sends on", "open")

    def fill(self, connection: Connection) -> None:
        """The machine is told "full"."""
        self.states[connection] = "full"

    def hang_up(self, connection: Connection) -> None:
        """The machine hangs up."""
        self._expect(connection, "hangs up", "connecting", "open", "full")
        self.states[connection] = "hung up"

    # What the host does

    def open(self, connection: Connection) -> None:
        """The machine is told that a connection is established."""
        self._expect(connection, "is told that there is", "unknown", "connecting")
        self.states[connection] = "open"
        self._established.add(connection)

    def receive(self, connection: Connection) -> None:
        """The machine receives a message."""
        self._expect(connection, "receives on", "open", "full")

    def drain(self, connection: Connection) -> None:
        """The machine is told that a full connection takes messages again."""
        self._expect(connection, "is told to send again on", "full")
        self.states[connection] = "open"

    def close(self, connection: Connection, reason: Reason) -> None:
        """The machine is told that a connection is closed."""
        self._expect(connection, "is told of the end of", "connecting", "open", "full", "hung up")
        assert reason in REASONS, f"{self._who}: {connection} is closed with the reason {reason!r}"
        assert reason != "refused" or connection not in self._established, (
            f"{self._who}: {connection} is refused after `opened`"
        )
        self.forget(connection)
        self.reasons[connection] = reason

    def forget(self, connection: Connection) -> None:
        """The machine was removed."""
        del self.states[connection]

    def expect_all_closed(self) -> None:
        """Assert that `closed` followed for every connection that was hung up or never established."""
        waiting = {connection: state for connection, state in self.states.items() if state in ("connecting", "hung up")}
        assert not waiting, f"{self._who} was never told of the end of {waiting}"

    def _expect(self, connection: Connection, does: str, *allowed: State) -> None:
        state = self.state(connection)
        assert state in allowed, f"{self._who} {does} {connection}, which is {state}"


class StorageRules:
    """The tickets of one machine; see protocols/storage.py."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._latest: int | None = None
        self._batches: deque[int] = deque()
        self._reads: set[int] = set()

    def store(self, ticket: int) -> None:
        """The machine gave a batch and got a ticket."""
        self._give(ticket)
        self._batches.append(ticket)

    def fetch(self, ticket: int) -> None:
        """The machine asked for records and got a ticket."""
        self._give(ticket)
        self._reads.add(ticket)

    def stored(self, ticket: int) -> None:
        """The machine is told that a batch is durable."""
        first = self._batches[0] if self._batches else None
        assert ticket == first, f"{self._who} is told that {ticket} is durable, and the first that is not is {first}"
        self._batches.popleft()

    def fetched(self, ticket: int) -> None:
        """The machine gets records."""
        assert ticket in self._reads, f"{self._who} gets records for {ticket}, which it does not wait for"
        self._reads.remove(ticket)

    def expect_all_answered(self) -> None:
        """Assert that every ticket was answered."""
        assert not self._batches, f"{self._who} was never told that {list(self._batches)} are durable"
        assert not self._reads, f"{self._who} never got the records of {sorted(self._reads)}"

    def _give(self, ticket: int) -> None:
        assert self._latest is None or ticket > self._latest, f"{self._who} gets the ticket {ticket} after {self._latest}"
        self._latest = ticket
