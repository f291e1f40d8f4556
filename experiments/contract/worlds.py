"""The worlds the contract suite runs a protocol in, with one interface: fake hosts, the simulator, UDP on loopback."""

import os
import secrets
import socket
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from emu.disk import disk_opener
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp_options import UdpOptions
from experiments.contract.bench import Bench
from experiments.contract.losses import nothing, randomly
from protocols.errors import WireError
from protocols.hosting import SeveralPortsHost
from protocols.machine import Codec, Group, Message
from protocols.rng import Rng, key_of
from sim.network import Network
from topologies.disk_model import DiskModel
from topologies.generators import Star

__all__ = [
    "WORLDS",
    "BenchWorld",
    "Coded",
    "LossyCodec",
    "SimWorld",
    "UdpWorld",
    "WireBenchWorld",
    "WireSimWorld",
    "ContractWorld",
    "free_port",
    "new_group",
]

_PORTS: Final = range(10_000 + os.getpid() % 8 * 8, 32_768, 64)
"""Below those that Linux gives to sockets without a port, which could take one before it is used. In steps, because a host uses
the ports above its first one, too, and UDP sockets may share a port without an error. By process id, because two
processes could choose one port before either has opened a socket."""
_returned: deque[int] = deque(maxlen=200)
"""Ports that may be intended for a socket that is not open yet."""


class Coded(Protocol):
    """The parts of a protocol that a world needs."""

    def codec(self) -> Codec:
        """Make a codec."""


class ContractWorld(Protocol):
    """Hosts on one network; host 0 runs the sender."""

    hosts: Sequence[SeveralPortsHost]
    names: Sequence[str]
    """The names of the hosts, for `Host.address_of`."""
    group: Group

    @property
    def now(self) -> float:
        """Seconds since the beginning."""

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Run until `over()` is true or the clock reaches `until` seconds."""

    def close(self) -> None:
        """Release sockets and event loop, if there are any."""


class BenchWorld:
    """Fake hosts on a `Bench`; each packet is lost with probability `loss` at each receiver."""

    group = Group("239.1.1.1:5001")

    def __init__(self, case: Coded, count: int, loss: float, *, wire: bool = False) -> None:
        drop = randomly(loss) if loss else nothing
        self.bench = Bench((f"n{i}" for i in range(count)), drop=drop, codec=case.codec() if wire else None)
        self.names: Sequence[str] = list(self.bench.hosts)
        self.hosts: Sequence[SeveralPortsHost] = list(self.bench.hosts.values())

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.bench.now

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Run until `over()` is true or the clock reaches `until` seconds."""
        self.bench.run(until, over)

    def close(self) -> None:
        """Do nothing: this world holds no resources."""


class WireBenchWorld(BenchWorld):
    """Fake hosts whose link encodes and decodes every message."""

    def __init__(self, case: Coded, count: int, loss: float) -> None:
        super().__init__(case, count, loss, wire=True)


class SimWorld:
    """The simulator with a star topology; each receiver's link loses a packet with probability `loss`."""

    group = Group("239.1.1.1:5001")

    def __init__(self, case: Coded, count: int, loss: float, *, wire: bool = False) -> None:
        link = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": loss}}
        star = Star.model_validate({"kind": "star", "receivers": count - 1, "link": link})
        self.network = Network(star.build(), seed=1, codec=case.codec if wire else None)
        self.names: Sequence[str] = ["sender", *(f"r{i}" for i in range(1, count))]
        self.hosts: Sequence[SeveralPortsHost] = [self.network.host(name) for name in self.names]

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.network.now

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Run until `over()` is true, which is checked every 5 ms and after events, or until `until` seconds."""
        network = self.network
        while not over() and network.now < until and network.next_at < inf:
            network.run(min(until, network.next_at + 0.005), over)

    def close(self) -> None:
        """Do nothing: this world holds no resources."""


class WireSimWorld(SimWorld):
    """The simulator with `wire: bytes`: links encode and decode every message."""

    def __init__(self, case: Coded, count: int, loss: float) -> None:
        super().__init__(case, count, loss, wire=True)


class LossyCodec:
    """A codec whose `decode` raises WireError with probability `loss`, so that its host loses the message.

    Each host has one, with its own `key` of the random stream.
    """

    def __init__(self, codec: Codec, loss: float, key: int) -> None:
        self._codec, self._loss, self._rng = codec, loss, Rng(key)
        self.encode = codec.encode

    def decode(self, data: bytes) -> Message:
        """Decode a message. WireError for one that is lost."""
        if self._rng.uniform() < self._loss:
            raise WireError("lost on purpose")
        return self._codec.decode(data)


class UdpWorld:
    """UDP sockets on 127.0.0.1 in one event loop; every host has its own port."""

    def __init__(self, case: Coded, count: int, loss: float) -> None:
        self.loop: Loop = new_loop()
        self.group = Group(new_group())
        self.names: Sequence[str] = [f"n{i}" for i in range(count)]
        self._folder = TemporaryDirectory()
        self._addresses = {name: ("127.0.0.1", free_port()) for name in self.names}
        self._hosts = [self._host(case, loss, i) for i in range(count)]
        self.hosts: Sequence[SeveralPortsHost] = self._hosts

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._hosts[0].now

    def _host(self, case: Coded, loss: float, i: int) -> UdpHost:
        codec = LossyCodec(case.codec(), loss, key_of(1, "loss", i))
        rng = Rng(key_of(1, "node", i))
        port = self._addresses[self.names[i]][1]
        disk = disk_opener(Path(self._folder.name) / self.names[i] / "store.sqlite", self.names[i], DiskModel())
        names = self._addresses
        return UdpHost(
            self.loop, codec, interface="127.0.0.1", port=port, options=UdpOptions(ttl=0), rng=rng, names=names, open_disk=disk
        )

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Run until `over()` is true, which is checked every 5 ms, or until `until` seconds."""

        def look() -> None:
            if over():
                self.loop.stop()
            else:
                self.loop.call_later(0.005, look)

        self.loop.call_soon(look)
        self.loop.run(max(until - self.now, 0.0))

    def close(self) -> None:
        """Close sockets and loop, and remove the disks."""
        for host in self._hosts:
            host.close()
        self.loop.close()
        self._folder.cleanup()


def free_port() -> int:
    """Return a port of 127.0.0.1 that neither TCP nor UDP uses, and that is none of the last 200 returned."""
    while True:
        place = "127.0.0.1", secrets.choice(_PORTS)
        if place[1] in _returned:
            continue
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(place)
                udp.bind(place)
            except OSError:
                continue
        _returned.append(place[1])
        return place[1]


def new_group() -> str:
    """Return a multicast group and port that no other session on this machine is likely to use."""
    return f"239.255.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}:{free_port()}"


WORLDS: dict[str, Callable[[Coded, int, float], ContractWorld]] = {
    "fake": BenchWorld,
    "fake-bytes": WireBenchWorld,
    "simpy": SimWorld,
    "simpy-bytes": WireSimWorld,
    "udp": UdpWorld,
}
