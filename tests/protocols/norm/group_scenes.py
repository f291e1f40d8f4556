"""A sender of objects and its receivers on fake hosts, whose messages are encoded."""

from collections.abc import Sequence
from typing import Any, TypeVar

from experiments.contract.bench import Bench
from experiments.contract.content import Bytes, pattern
from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import Crossing, Drop, nothing
from protocols.acknowledgement import AckRequest
from protocols.events import Event, ObjectReceived
from protocols.machine import Content
from protocols.norm.messages import Flush, NormMessage
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender
from protocols.norm.wire.codec import NormCodec
from tests.protocols.norm.scenes import GROUP, quick

__all__ = ["GroupScene"]

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=NormMessage)


class GroupScene:
    """Node 1 sends; nodes 10, 11 and so on receive, on the hosts r10, r11... A message may be lost on its way to each."""

    def __init__(self, receivers: int = 2, drop: Drop = nothing, delay: float = 0.002, **parameters: Any) -> None:
        self.nodes = list(range(10, 10 + receivers))
        self._lost = drop
        self.crossings: list[Crossing] = []
        """The messages on their way to each host."""
        names = [f"r{node}" for node in self.nodes]
        self.bench = Bench(["sender", *names], delay=delay, drop=self._drop, codec=NormCodec())
        self.config = quick(**parameters)
        self.receivers = {node: NormBatchReceiver(self.bench[f"r{node}"], self.config, node, GROUP) for node in self.nodes}
        for node, receiver in self.receivers.items():
            self.bench[f"r{node}"].run(receiver)
        self.sender = NormSender(self.host, self.config, 1, GROUP)
        self.host.run(self.sender)

    def _drop(self, crossing: Crossing) -> bool:
        self.crossings.append(crossing)
        return self._lost(crossing)

    @property
    def host(self) -> FakeHost:
        """The sender's host."""
        return self.bench["sender"]

    def submit(self, *sizes: int) -> list[int]:
        """Submit objects of these sizes and return their ids."""
        made = [Content(Bytes(pattern(size, seed=number + 1))) for number, size in enumerate(sizes)]
        return [self.host.call(self.sender.submit, content) for content in made]

    def ask(self, object_id: int, *nodes: int, **options: Any) -> None:
        """Require ACKs of nodes."""
        self.host.call(self.sender.require_acks, object_id, AckRequest(nodes, **options))

    def run(self, seconds: float = 20.0) -> None:
        """Let time pass."""
        self.bench.run(self.bench.now + seconds)

    def events_of(self, kind: type[E], node: int | None = None) -> list[E]:
        """Return the events of this kind at the sender, or at a receiver."""
        host = self.host if node is None else self.bench[f"r{node}"]
        return [event for event in host.events if isinstance(event, kind)]

    def received(self, node: int) -> list[int]:
        """Return the ids of the objects that a receiver completed."""
        return [event.object_id for event in self.events_of(ObjectReceived, node)]

    def messages_of(self, kind: type[M], source: str = "sender") -> list[M]:
        """Return the messages of this kind that a host sent, each once."""
        seen: dict[int, M] = {
            id(each.message): each.message
            for each in self.crossings
            if each.source == source and isinstance(each.message, kind)
        }
        return list(seen.values())

    def acking_flushes(self) -> Sequence[Flush]:
        """Return the FLUSH messages that ask for ACKs."""
        return [flush for flush in self.messages_of(Flush) if flush.acking]
