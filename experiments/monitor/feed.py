"""Tell monitors of the same user about a running emulation, with the counters that its hosts report every second."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from emu.attachment import peer_user
from experiments.monitor.announcement import PREFIX, encoded
from protocols.snapshot import Measure, Snapshot

__all__ = ["EmulationFeed"]

SLOWEST = 0.5
"""Seconds that a monitor may take to read an answer."""
_OF_HOSTS = {"packets": "packets_sent", "octets": "bytes_sent"}
"""Counters of hosts in progress reports, and in statistics."""


class EmulationFeed:
    """Answers monitors from inside of the emulation, at a socket outside of it, which is made with the feed.

    `measures` say what the protocol's counters mean. The kernel removes the socket's name with the process.
    """

    def __init__(self, title: str, measures: tuple[Measure, ...] = ()) -> None:
        self._title = title
        self._about: dict[str, Any] = {
            "pid": os.getpid(),
            "command": "run",
            "measures": [[each.name, each.kind, each.unit, each.help] for each in measures],
        }
        # A socket belongs to the network namespace it was made in.
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(f"\0{PREFIX}{os.geteuid()}/{os.getpid()}/{os.urandom(4).hex()}")
        self._user = os.geteuid()
        self._answer = self._encoded(0.0, Snapshot("machine", title))
        self.socket.listen()

    def __enter__(self) -> "EmulationFeed":
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def take(self, now: float, census: Mapping[str, Mapping[str, float]]) -> None:
        """Keep the counters of all hosts at `now` seconds of the run for the next answer."""
        hosts = [_host(name, counts) for name, counts in census.items()]
        self._answer = self._encoded(now, Snapshot("machine", self._title, {}, {}, hosts))

    def answer(self) -> None:
        """Answer one monitor."""
        connection, _ = self.socket.accept()
        with connection, suppress(OSError):
            if peer_user(connection) in (0, os.geteuid(), self._user):
                connection.settimeout(SLOWEST)
                connection.sendall(self._answer)

    def _encoded(self, now: float, snapshot: Snapshot) -> bytes:
        return encoded(self._about, now, snapshot)


def _host(name: str, counts: Mapping[str, float]) -> Snapshot:
    own = {_OF_HOSTS[key]: value for key, value in counts.items() if key in _OF_HOSTS}
    session = {key: value for key, value in counts.items() if key not in _OF_HOSTS and key != "at"}
    parts = (Snapshot("session", "", session),)
    return Snapshot("host", name, {**own, "at": counts.get("at", 0.0)}, {}, parts)
