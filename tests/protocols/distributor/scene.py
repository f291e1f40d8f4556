"""A connection on a bench: nodes that publish and subscribe, and a link that loses what a predicate selects."""

from collections.abc import Sequence
from typing import Any, TypeVar

from experiments.contract.bench import Bench
from experiments.contract.losses import Drop, nothing
from protocols.distributor import DistributorConfig
from protocols.distributor.events import UpdatesReceived
from protocols.distributor.identity import Identity
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.distributor.wire import DistributorCodec
from protocols.events import Event
from protocols.machine import Group
from protocols.messaging import Subscription

E = TypeVar("E", bound=Event)

GROUP = Group("239.0.0.1:5656")


class Scene:
    """Publishers p, q, ... and subscribers r1, r2, ... of one group, with the events of each; packets take 1 ms."""

    def __init__(
        self,
        subscribers: int = 1,
        publishers: str = "p",
        drop: Drop = nothing,
        to: str = "/...",
        late: float = 0.0,
        **settings: Any,
    ) -> None:
        names = [f"r{n}" for n in range(1, subscribers + 1)]
        self.config = DistributorConfig(**settings)
        self.bench = Bench((*publishers, *names), delay=0.001, drop=drop, codec=DistributorCodec(), seed=1, late=late)
        self.events: dict[str, list[Event]] = {name: [] for name in self.bench.hosts}
        self.subscribers: dict[str, DistributorSubscriber] = {}
        self.publishers: dict[str, DistributorPublisher] = {}
        for number, name in enumerate(names, 11):
            machine = self.subscribers[name] = DistributorSubscriber(
                self.bench[name], self.config, self.identity(number), GROUP
            )
            self.bench[name].run(machine, self.events[name].append)
            self.bench[name].call(machine.subscribe, Subscription(0, to))
        for number, name in enumerate(publishers, 1):
            self.start(name, number)

    @staticmethod
    def identity(number: int) -> Identity:
        return Identity(number, number, number, f"node-{number}")

    def start(self, name: str, number: int) -> None:
        """Run a publisher."""
        machine = self.publishers[name] = DistributorPublisher(self.bench[name], self.config, self.identity(number), GROUP)
        self.bench[name].run(machine, self.events[name].append)

    def publish(self, *contents: bytes, to: str = "/s", by: str = "p") -> bool:
        return self.bench[by].call(self.publishers[by].publish_many, to, contents)

    def each(self, contents: Sequence[bytes], gap: float = 0.0, by: str = "p") -> None:
        """Publish updates one by one, `gap` seconds apart."""
        for content in contents:
            self.publish(content, by=by)
            if gap:
                self.bench.run(self.bench.now + gap)

    def run(self, seconds: float) -> None:
        self.bench.run(self.bench.now + seconds)

    def received(self, name: str = "r1", by: int | None = None) -> list[bytes]:
        """Return what was delivered, of one publisher or of all."""
        found = [event for event in self.kinds(name, UpdatesReceived) if by in (None, event.source.host)]
        return [bytes(content) for event in found for content in event.contents]

    def kinds(self, name: str, kind: type[E]) -> list[E]:
        return [event for event in self.events[name] if isinstance(event, kind)]

    def sent(self, kind: str) -> int:
        """Return how many packets of a kind all hosts have sent."""
        return self.bench.kinds()[kind]
