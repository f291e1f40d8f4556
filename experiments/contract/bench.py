"""Several fake hosts on one scripted link, for sessions of a few milliseconds without simulator or network."""

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf

from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import Crossing, Drop, nothing
from protocols.machine import Address, Codec, Group, Message, Packet

__all__ = ["Bench"]

STEPS = 100_000
"""Arrivals and wake-ups after which `Bench.run` fails."""


class Bench:
    """Fake hosts by name, a clock, and a link that delays every packet by `delay` seconds and drops those that `drop` selects.

    A packet to a `Group` reaches every other host that joined it; a packet to a name reaches the host of that name. With a
    `codec` the link encodes and decodes every message and checks `Packet.size`. Wake-ups come up to `late` seconds late.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        delay: float = 0.01,
        drop: Drop = nothing,
        codec: Codec | None = None,
        seed: int = 0,
        late: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.delay = delay
        self.drop = drop
        self.codec = codec
        self.dropped: list[Crossing] = []
        self.strangers: set[str] = set()
        """Addresses of no host: packets sent there are discarded. A packet to any other unknown address fails the test."""
        self.hosts = {name: FakeHost(name, seed=seed, late=late) for name in names}
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._in_flight: list[tuple[float, int, str, Message, str, Address]] = []
        self._sent = 0
        for host in self.hosts.values():
            host.on_send = self._sender(host)

    def __getitem__(self, name: str) -> FakeHost:
        return self.hosts[name]

    def run(self, until: float = inf, over: Callable[[], bool] = lambda: False) -> None:
        """Process events until `over()` is true, the clock reaches `until` seconds, or no event is left.

        AssertionError after STEPS events: some machine never comes to rest.
        """
        for _ in range(STEPS):
            if over():
                return
            now = self._next()
            if now > until or now == inf:
                self.now = max(self.now, until) if until < inf else self.now
                return
            # An alarm in the past is processed at the current time.
            self.now = max(now, self.now)
            self._step()
        raise AssertionError(f"still busy after {STEPS} steps, at {self.now} s")

    def kinds(self) -> Counter[str]:
        """Return the number of packets that all hosts sent, by kind of message."""
        return sum((host.kinds() for host in self.hosts.values()), Counter[str]())

    def _next(self) -> float:
        arrival = self._in_flight[0][0] if self._in_flight else inf
        return min(arrival, *(host.due for host in self.hosts.values()))

    def _step(self) -> None:
        if self._in_flight and self._in_flight[0][0] <= self.now:
            _, _, receiver, message, source, to = heappop(self._in_flight)
            self.hosts[receiver].deliver(message, source, to, self.now)
            return
        for host in self.hosts.values():
            if host.due <= self.now:
                host.turn(self.now)
                return

    def _sender(self, host: FakeHost) -> Callable[[Packet], None]:
        def send(packet: Packet) -> None:
            message = self._transcode(packet)
            for name in self._targets(host.name, packet.to):
                self._cross(host, name, message, packet.to)

        return send

    def _transcode(self, packet: Packet) -> Message:
        if self.codec is None:
            return packet.message
        data = self.codec.encode(packet.message)
        assert len(data) == packet.size, f"{packet.message} says {packet.size} bytes and has {len(data)}"
        return self.codec.decode(data)

    def _targets(self, source: str, to: Address) -> list[str]:
        if isinstance(to, Group):
            return [name for name, host in self.hosts.items() if name != source and to in host.groups]
        if to in self.strangers:
            return []
        names = [name for name in self.hosts if name == to]
        assert names, f"{source} sends to {to!r}, an unknown address"
        assert to != source, f"{source} sends to itself"
        return names

    def _cross(self, host: FakeHost, name: str, message: Message, to: Address) -> None:
        key = (host.name, name, message.kind)
        self._numbers[key] += 1
        crossing = Crossing(host.name, name, message, self._numbers[key], host.now)
        if self.drop(crossing):
            self.dropped.append(crossing)
            return
        self._sent += 1
        heappush(self._in_flight, (host.now + self.delay, self._sent, name, message, host.name, to))
