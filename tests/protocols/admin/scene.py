"""A registry and the clients of tunnels on a bench."""

from collections.abc import Sequence

from experiments.contract.bench import Bench
from protocols.admin.client import RegistryClient
from protocols.admin.config import AdminOptions
from protocols.admin.node import Node
from protocols.admin.registration import Registration
from protocols.admin.registry import Registry
from protocols.admin.wire import AdminCodec
from protocols.events import Event

__all__ = ["Scene"]


class Scene:
    """Tunnels by name, at one registry on the host `a`; each notes when it gets the others."""

    def __init__(self, names: Sequence[str], *, delay: float = 0.01, room: float = float("inf"), **options: float) -> None:
        self.bench = Bench(["a", *names], delay=delay, codec=AdminCodec(), room=room)
        self.options = AdminOptions(**options)  # type: ignore[arg-type]
        self.told: dict[str, list[tuple[float, tuple[Node, ...]]]] = {name: [] for name in names}
        self.clients: dict[str, RegistryClient] = {}
        self.events: list[Event] = []
        self.starts = 0
        self.serve()

    def kill(self, name: str) -> None:
        """Crash a host, and cut it off, since a link of a bench fails where no machine runs."""
        self.bench.crash(name)
        self.bench.silent.add(name)

    def serve(self) -> None:
        """Start the registry, the first time or again."""
        self.starts += 1
        self.bench.silent.discard("a")
        self.registry = Registry(self.bench["a"], self.options, self.starts)
        self.bench["a"].run(self.registry, self.events.append)

    def join(self, name: str, **values: object) -> RegistryClient:
        """Start the client of a tunnel."""
        told = self.told[name]
        self.bench.silent.discard(name)

        def update_peers(nodes: Sequence[Node]) -> None:
            told.append((self.bench.now, tuple(nodes)))

        known: dict[str, object] = {"name": name, "site": len(self.clients) + 1, "port": 0, "group": "all", "address": name}
        registration = Registration(**{**known, **values})  # type: ignore[arg-type]
        client = RegistryClient(self.bench[name], "a", registration, update_peers, lambda: {"carried": 10 * self.bench.now})
        self.bench[name].run(client, self.events.append)
        self.clients[name] = client
        return client

    def peers(self, name: str) -> list[str]:
        """Return the names of the tunnels that one got last."""
        return [node.name for node in self.told[name][-1][1]] if self.told[name] else []

    def knows(self, name: str, other: str) -> float:
        """Return when a tunnel first got another one."""
        return next(at for at, nodes in self.told[name] if any(node.name == other for node in nodes))
