"""Several fake hosts on one scripted link, for sessions of a few milliseconds without simulator or network."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from math import inf

from experiments.contract.fake_connections import FakeConnections
from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import Crossing, Drop, nothing
from protocols.connection import Connection
from protocols.machine import Address, Codec, Group, Message, Packet
from sim.addresses import name_and_port

__all__ = ["Bench"]

STEPS = 100_000
"""Arrivals and wake-ups after which `Bench.run` fails."""


class Bench:
    """Fake hosts by name, a clock, and a link that delays every packet by `delay` seconds and drops those that `drop` selects.

    A packet to a `Group` reaches every machine that joined it but the one that sent it; a packet to a name reaches the host of
    that name, and one on a connection its other end, in order and without loss. With a `codec` the link encodes and decodes
    every message and checks `Packet.size`. Wake-ups come up to `late` seconds late. A connection is full when `room` messages
    are on the way, and ends when its other end does not answer for `timeout` seconds.
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
        room: float = inf,
        timeout: float = 1.0,
    ) -> None:
        self.now = 0.0
        self.delay = delay
        self.drop = drop
        self.codec = codec
        self.dropped: list[Crossing] = []
        self.strangers: set[str] = set()
        """Addresses of no host: packets sent there are discarded. A packet to any other unknown address fails the test."""
        self.silent: set[str] = set()
        """Hosts that are cut off: nothing reaches them, and nothing leaves them."""
        self.hosts = {name: FakeHost(name, seed=seed, late=late) for name in names}
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._posted = 0
        for host in self.hosts.values():
            host.on_send = partial(self._send, host)
        self.use(FakeConnections(self, room, timeout))

    def use(self, connections: FakeConnections) -> None:
        """Use these connections from now on."""
        self.connections = connections
        for host in self.hosts.values():
            connections.attach(host)

    def __getitem__(self, name: str) -> FakeHost:
        return self.hosts[name]

    def run(self, until: float = inf, over: Callable[[], bool] = lambda: False) -> None:
        """Process events until `over()` is true, the clock reaches `until` seconds, or no event is left.

        AssertionError after STEPS events: some machine never comes to rest.
        """
        for _ in range(STEPS):
            if over():
                self._set_clocks(self.now)
                return
            now = self._next()
            if now > until or now == inf:
                self._set_clocks(max(self.now, until) if until < inf else self.now)
                return
            # An alarm in the past is processed at the current time.
            self.now = max(now, self.now)
            self._step()
        raise AssertionError(f"still busy after {STEPS} steps, at {self.now} s")

    def post(self, when: float, action: Callable[[], None]) -> None:
        """Call `action()` at `when` seconds; in order of the calls where times are equal."""
        self._posted += 1
        heappush(self._events, (when, self._posted, action))

    def crash(self, name: str, *, power: bool = False, keep: int = 0) -> None:
        """Remove the machine of a host; its peers hear "reset", or with `power` nothing, so that they time out.

        Of the batches that are not durable the first `keep` become so. `silent` has the host without power until it is removed.
        """
        if power:
            self.silent.add(name)
        self.hosts[name].crash(keep)

    def kinds(self) -> Counter[str]:
        """Return the number of packets that all hosts sent, by kind of message."""
        return sum((host.kinds() for host in self.hosts.values()), Counter[str]())

    def _set_clocks(self, now: float) -> None:
        """Set the time; a call from outside is an input at this time."""
        self.now = now
        for host in self.hosts.values():
            host.now = max(host.now, now)

    def _next(self) -> float:
        arrival = self._events[0][0] if self._events else inf
        return min(arrival, *(host.due for host in self.hosts.values()))

    def _step(self) -> None:
        if self._events and self._events[0][0] <= self.now:
            heappop(self._events)[2]()
            return
        for host in self.hosts.values():
            if host.due <= self.now:
                host.turn(self.now)
                return

    def _send(self, host: FakeHost, packet: Packet, port: int) -> bool:
        message = self._transcode(host, packet, port)
        if isinstance(packet.to, Connection):
            return self.connections.send(packet.to, message)
        for name in self._targets(host, packet.to, port):
            self._cross(host, name, message, packet.to, port)
        return False

    def _transcode(self, host: FakeHost, packet: Packet, port: int) -> Message:
        if self.codec is None:
            return packet.message
        codec = host.codecs.get(port, self.codec)
        data = codec.encode(packet.message)
        assert len(data) == packet.size, f"{packet.message} says {packet.size} bytes and has {len(data)}"
        return codec.decode(data)

    def _targets(self, source: FakeHost, to: Address, port: int) -> list[str]:
        if isinstance(to, Group):
            return [name for name, host in self.hosts.items() if self._listens(host, to, source, port)]
        if to in self.strangers:
            return []
        name = name_and_port(to)[0]
        assert name in self.hosts, f"{source.name} sends to {to!r}, an unknown address"
        assert to != source.address_of(source.name, port), f"{source.name} sends to itself"
        return [name]

    @staticmethod
    def _listens(host: FakeHost, group: Group, source: FakeHost, port: int) -> bool:
        return any(host is not source or at != port for at in host.members.get(group, ()))

    def _cross(self, host: FakeHost, name: str, message: Message, to: Address, port: int) -> None:
        key = (host.name, name, message.kind)
        self._numbers[key] += 1
        crossing = Crossing(host.name, name, message, self._numbers[key], host.now)
        if self.drop(crossing) or not self.silent.isdisjoint((host.name, name)):
            self.dropped.append(crossing)
            return
        self.post(host.now + self.delay, partial(self._arrive, name, message, host.address_of(host.name, port), to))

    def _arrive(self, name: str, message: Message, source: Address, to: Address) -> None:
        self.hosts[name].deliver(message, source, to, self.now)
