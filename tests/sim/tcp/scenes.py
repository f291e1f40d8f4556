"""Small networks with talkers on two or more hosts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from protocols.machine import Codec
from protocols.tcp import TcpOptions
from sim.network import Network
from sim.watch import WatchedNetwork, Watcher
from tests.support.talkers import NumberedCodec, Talker
from topologies.generators import Star
from topologies.spec import Topology

__all__ = ["BYTES", "ENGINES", "Scene", "star"]

ENGINES = ("strict", "fast", "bytes")
"""The strict engine, the fast one, and the fast one with real bytes."""
BYTES = "bytes"


def star(receivers: int = 1, **link: Any) -> Topology:
    """Return a star whose links to receivers have these attributes; those to the sender have neither rate nor delay."""
    return Star.model_validate({"kind": "star", "receivers": receivers, "link": link}).build()


def _codec() -> Codec:
    return NumberedCodec()


class Scene:
    """A network and its talkers by name."""

    def __init__(
        self,
        topology: Topology | None = None,
        engine: str = "fast",
        seed: int = 1,
        watchers: Sequence[Watcher] = (),
        **options: Any,
    ) -> None:
        wire = engine == BYTES
        make = partial(WatchedNetwork, watchers=watchers) if watchers else Network
        self.network: Network = make(
            star(rate="10Mbit", delay="10ms") if topology is None else topology,
            seed=seed,
            engine="fast" if wire else engine,
            codec=_codec if wire else None,
            connections=TcpOptions(**options),
        )
        self.talkers: dict[str, Talker] = {}

    @property
    def tcp(self) -> Any:
        """The connections of the network."""
        return self.network.fabric.tcp

    def listener(self, name: str, lines: Sequence[int] = (), *, hangs_up: bool = False) -> Talker:
        """Start a talker that listens."""
        return self.caller(name, None, lines, hangs_up=hangs_up)

    def caller(self, name: str, peer: str | None, lines: Sequence[int] = (), *, hangs_up: bool = False) -> Talker:
        """Start a talker that connects to a host."""
        host = self.network.host(name)
        talker = self.talkers[name] = Talker(host, peer, lines, hangs_up=hangs_up)
        host.run(talker, _ignore)
        return talker

    def during(self, begin: float, end: float, verb: Any) -> None:
        """Do something for a while: `verb()` returns what undoes it."""
        undo: list[Any] = []
        self.at(begin, lambda: undo.append(verb()))
        self.at(end, lambda: [back() for back in undo])

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do something at a time."""
        self.network.later(when, cast("Callable[[], None]", action))


def _ignore(event: object) -> None:
    del event
