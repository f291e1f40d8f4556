"""Hold an emulation before and after its session, by orders of the process that started it.

That process has `Controls`, the emulation inside its namespaces `HeldSession`. They exchange lines of text: orders (`start`,
`end`) and states of the emulation (`up`, `running`, `over`).
"""

import select
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass

from emu.attachment import RunningEmulation
from protocols.errors import McastlabError

__all__ = ["Controls", "HeldSession", "Hold", "NotStartedError", "make_hold"]

GONE = "gone"
"""State after the emulation has ended or failed."""


class NotStartedError(McastlabError):
    """The emulation was ended before its session was started, so it has no result."""


class Controls:
    """The end of the process that started the emulation. `state` is "building", "up", "running", "over" or "gone"."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self._name = name
        self._buffer = b""
        self.state = "building"

    def fileno(self) -> int:
        """Return the descriptor that is readable when the state changes."""
        return self._connection.fileno()

    def emulation(self) -> RunningEmulation:
        """Return the emulation with its nodes; OSError when it has ended."""
        return RunningEmulation.find(self._name)

    def start(self) -> None:
        """Start the session."""
        self._send(b"start\n")

    def end(self) -> None:
        """End the session if it runs, and the emulation."""
        self._send(b"end\n")

    def update(self) -> None:
        """Read the changes of the state that have arrived."""
        while select.select([self._connection], [], [], 0)[0] and self.state != GONE:
            self._read()

    def wait(self, states: Collection[str]) -> str:
        """Wait for one of these states, or the end of the emulation; returns the state."""
        while self.state not in states and self.state != GONE:
            self._read()
        return self.state

    def _read(self) -> None:
        data = self._connection.recv(4096)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self.state = line.decode()
        if not data:
            self.state = GONE

    def _send(self, order: bytes) -> None:
        try:
            self._connection.sendall(order)
        except (BrokenPipeError, ConnectionResetError):
            self.state = GONE


@dataclass(frozen=True, slots=True)
class Hold:
    """Options for holding an emulation: `talk` runs in the starting process, and the network ends when it returns.

    `waits`: whether the session waits for `Controls.start`; if not, it starts when the network is up.
    """

    talk: Callable[[Controls], None]
    waits: bool


class HeldSession:
    """The end inside the emulation."""

    def __init__(self, connection: socket.socket, started: bool) -> None:
        self.connection = connection
        self.started = started
        self.ended = False

    def report(self, state: str) -> None:
        """Send a state of the emulation to the other end."""
        self.connection.sendall(state.encode() + b"\n")

    def read(self) -> None:
        """Read orders. If the other end has ended, so does the emulation."""
        orders = self.connection.recv(4096).split()
        self.started |= b"start" in orders
        self.ended |= b"end" in orders or not orders


def make_hold(hold: Hold, name: str) -> tuple[HeldSession, Callable[[], None]]:
    """Return the end for the emulation, and the function that runs `Hold.talk` in this process; `name` names its socket."""
    local, remote = socket.socketpair()

    def talk() -> None:
        # The other copies are those of the emulation, so that its end is noticed here.
        remote.close()
        with local:
            hold.talk(Controls(local, name))

    return HeldSession(remote, not hold.waits), talk
