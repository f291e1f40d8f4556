"""A stream from one sender to receivers on fake hosts."""

import random
from collections.abc import Sequence
from typing import Any

from experiments.contract.bench import Bench
from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import Crossing, Drop, nothing
from protocols.events import Event
from protocols.norm.messages import Data
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.sender import NormSender
from protocols.norm.wire.codec import NormCodec
from protocols.stream import StreamSettings
from protocols.stream_writer import StreamWriter
from tests.protocols.norm.scenes import GROUP, quick
from tests.support.streams import Collected

__all__ = ["StreamScene", "dropping", "messages"]


def messages(count: int, longest: int = 300, seed: int = 1) -> list[bytes]:
    """Return random messages."""
    rng = random.Random(seed)
    return [rng.randbytes(rng.randint(1, longest)) for _ in range(count)]


def dropping(*lost: tuple[int, int], receiver: str | None = None, again: bool = False) -> Drop:
    """Return a pattern that drops the segments (block, symbol); the first transmission only, unless `again`."""

    def drop(crossing: Crossing) -> bool:
        message = crossing.message
        if not isinstance(message, Data) or (message.block, message.symbol) not in lost:
            return False
        return (again or not message.repair) and receiver in (None, crossing.receiver)

    return drop


class StreamScene:
    """A sender with one stream, and receivers r1, r2 and so on, whose sinks are in `sinks`."""

    def __init__(
        self,
        *,
        receivers: int = 1,
        drop: Drop = nothing,
        settings: StreamSettings | None = None,
        sinks: Sequence[Collected] | None = None,
        encodes: bool = True,
        delay: float = 0.002,
        **parameters: Any,
    ) -> None:
        names = [f"r{number}" for number in range(1, receivers + 1)]
        self.bench = Bench(["sender", *names], delay=delay, drop=drop, codec=NormCodec() if encodes else None)
        self.config = quick(**{"flow": 6.0, **parameters})
        self.sinks = list(sinks) if sinks is not None else [Collected() for _ in names]
        self.offers: list[Any] = []
        self.receivers = [NormBatchReceiver(self.bench[name], self.config, 10 + i, GROUP) for i, name in enumerate(names)]
        for name, receiver, sink in zip(names, self.receivers, self.sinks, strict=True):
            receiver.accept_streams(lambda offer, sink=sink: self._accept(offer, sink))  # type: ignore[misc]
            self.bench[name].run(receiver)
        self.sender = NormSender(self.host, self.config, 1, GROUP)
        self.writers: list[StreamWriter] = []
        self.host.run(self.sender, self._on_event)
        self.writer = self.open(settings or StreamSettings(buffer=1 << 16))

    def open(self, settings: StreamSettings) -> StreamWriter:
        """Open another stream."""
        self.writers.append(StreamWriter(self.host, self.sender, settings))
        return self.writers[-1]

    def _accept(self, offer: Any, sink: Collected) -> Collected:
        self.offers.append(offer)
        return sink

    def _on_event(self, event: Event) -> None:
        for writer in self.writers:
            writer.on_event(event)

    @property
    def host(self) -> FakeHost:
        """The sender's host."""
        return self.bench["sender"]

    def write(self, *content: bytes, flush: Any = None) -> None:
        """Write messages, and flush each."""
        for message in content:
            self.writer.write(message)
            if flush is not None:
                self.writer.flush(flush)

    def run(self, seconds: float = 20.0) -> None:
        """Let time pass."""
        self.bench.run(self.bench.now + seconds)

    def send(self, *content: bytes, flush: Any = None) -> None:
        """Write messages, close the stream, and wait for its end."""
        self.write(*content, flush=flush)
        self.writer.close()
        self.run()
