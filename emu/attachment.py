"""Let other processes of the same user into the nodes of a running emulation.

While its network is up, an emulation listens at an abstract Unix socket (unix(7)) outside of its namespaces, named
`@mcastlab/USER/PROCESS/TOKEN`. The kernel removes such a name with the process, so nothing is left behind. A client asks for a
node and gets open descriptors of its namespaces; no other user gets an answer.
"""

import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from protocols.errors import UsageError

__all__ = ["Attendant", "NamespaceServer", "RunningEmulation", "peer_user", "running_emulations"]

_KINDS = ("user", "mnt", "net", "pid")
"""Kinds of namespaces, in the order in which to enter them: the first gives the rights for the others."""
_ANSWER_TIME, _WAIT = 0.5, 10.0
"""Seconds that the server waits for a question, and a client for the answer of a busy server."""
_LIMIT = 1 << 20
_CREDENTIALS = struct.Struct("3i")


def peer_user(connection: socket.socket) -> int:
    """Return the user id of the other end, as this user namespace sees it."""
    user: int = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
    return user


class Attendant(Protocol):
    """Answers others while an emulation runs, at a socket that was made outside of its namespaces."""

    @property
    def socket(self) -> socket.socket:
        """The socket at which clients connect."""

    def answer(self) -> None:
        """Serve one client that has connected."""


class NamespaceServer:
    """The server of one emulation: made outside of its namespaces, and used inside."""

    def __init__(self, title: str) -> None:
        self.name = f"mcastlab/{os.geteuid()}/{os.getpid()}/{os.urandom(4).hex()}"
        # A socket belongs to the network namespace it was made in.
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._title = title
        self._pids: Mapping[str, int] = {}
        self._addresses: Mapping[str, str] = {}

    def listen(self, pids: Mapping[str, int], addresses: Mapping[str, str]) -> None:
        """Start to listen. `pids` are processes in the namespaces of each node, `addresses` those of the hosts."""
        self._pids, self._addresses = pids, addresses
        self.socket.bind(f"\0{self.name}")
        self.socket.listen()

    def answer(self) -> None:
        """Answer one client: send a list of the nodes, or the namespaces of the node it names."""
        connection, _ = self.socket.accept()
        with connection, suppress(OSError, ValueError):
            connection.settimeout(_ANSWER_TIME)
            if peer_user(connection) != os.geteuid():
                return
            node = connection.recv(_LIMIT).decode()
            if node in self._pids:
                self._send_namespaces(connection, self._pids[node])
            else:
                nodes = {name: self._addresses.get(name, "") for name in self._pids}
                connection.sendall(json.dumps({"title": self._title, "nodes": nodes}).encode())

    @staticmethod
    def _send_namespaces(connection: socket.socket, pid: int) -> None:
        files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in _KINDS]
        try:
            socket.send_fds(connection, [b"{}"], files)
        finally:
            for file in files:
                os.close(file)


@dataclass(frozen=True, slots=True)
class RunningEmulation:
    """An emulation of this user whose network is up. `nodes` are its nodes with their addresses, empty for switches."""

    name: str
    title: str
    nodes: dict[str, str]

    @property
    def pid(self) -> int:
        """The process that started it."""
        return int(self.name.split("/")[2])

    @classmethod
    def find(cls, name: str) -> "RunningEmulation":
        """Ask the emulation at this socket. OSError if it has ended, does not answer or belongs to another user."""
        answer, _ = _ask(name, "")
        return cls(name, answer["title"], answer["nodes"])

    def namespaces(self, node: str) -> list[int]:
        """Return open descriptors of the namespaces of a node, in the order in which to enter them.

        UsageError for an unknown node, OSError if the emulation has ended.
        """
        if node not in self.nodes:
            raise UsageError(f"HOST: value {node!r} is not allowed; {self.title} has {', '.join(self.nodes)}")
        return _ask(self.name, node)[1]


def _ask(name: str, node: str) -> tuple[Any, list[int]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_WAIT)
        connection.connect(f"\0{name}")
        if peer_user(connection) != os.geteuid():
            raise PermissionError(f"{name} belongs to another user")
        connection.sendall(node.encode() or b"?")
        data, files, _, _ = socket.recv_fds(connection, _LIMIT, len(_KINDS))
        if not data:
            raise ConnectionResetError(f"{name} does not answer")
        return json.loads(data), files


def running_emulations() -> list[RunningEmulation]:
    """Return this user's emulations whose network is up, by the process that started them."""
    begin = f"@mcastlab/{os.geteuid()}/"
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()
    # Connections in progress are listed under the same name.
    names = {words[-1][1:] for line in lines if (words := line.split()) and words[-1].startswith(begin)}
    found = []
    for name in names:
        # It may end meanwhile.
        with suppress(OSError):
            found.append(RunningEmulation.find(name))
    return sorted(found, key=lambda emulation: emulation.pid)
