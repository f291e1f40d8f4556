"""A watcher that records all its calls, and watched sessions."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

from protocols.machine import Event, Packet
from protocols.spec import ProtocolSpec
from sim.watch import Fate, Passage, WatchedNetwork, Watcher
from tests.sim import runs
from tests.sim.runs import Session
from topologies.spec import Topology

__all__ = ["Notes", "watched"]


class Notes(Watcher):
    """Records all calls."""

    def __init__(self) -> None:
        self.packets: list[tuple[float, str, Packet, int]] = []
        self.passages: list[Passage] = []
        self.late: list[tuple[Passage, Fate]] = []
        self.decisions: list[tuple[float, str, str, Any]] = []
        self.events: list[tuple[float, str, Event]] = []
        self.ended: list[float] = []

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Record it."""
        self.packets.append((now, host, packet, number))

    def passed(self, passage: Passage) -> None:
        """Record it."""
        self.passages.append(passage)

    def arrived(self, now: float, passage: Passage, fate: Fate) -> None:
        """Record it."""
        self.late.append((passage, fate))

    def decided(self, now: float, host: str, name: str, detail: object) -> None:
        """Record it."""
        self.decisions.append((now, host, name, detail))

    def notified(self, now: float, host: str, event: Event) -> None:
        """Record it."""
        self.events.append((now, host, event))

    def end(self, now: float) -> None:
        """Record it."""
        self.ended.append(now)


def watched(
    topology: Topology,
    protocol: ProtocolSpec,
    watchers: Sequence[Watcher],
    *,
    seed: int = 1,
    wire: bool = False,
    engine: str = "auto",
    size: int = 60_000,
) -> Session:
    """A whole session with watchers, ended."""
    with patch.object(runs, "Network", partial(WatchedNetwork, watchers=watchers)):
        session = Session(topology, protocol, protocol.config(), seed=seed, wire=wire, engine=engine)
    session.send(size)
    session.run()
    assert isinstance(session.network, WatchedNetwork)
    session.network.end()
    return session
