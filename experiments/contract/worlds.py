"""The three places a protocol runs in, behind one small face: a fake host, SimPy, real UDP on the loopback device."""

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from emu.host import Loop, UdpHost, new_loop
from experiments.contract.bench import Bench
from experiments.contract.case import Case
from experiments.contract.losses import nothing, randomly
from protocols.errors import WireError
from protocols.hosting import PortsHost
from protocols.machine import Codec, Group, Message
from protocols.rng import Rng, key_of
from sim.network import Network
from topologies.generators import Star

__all__ = [
    "WORLDS",
    "BenchWorld",
    "LossyCodec",
    "SimWorld",
    "UdpWorld",
    "WireBenchWorld",
    "WireSimWorld",
    "ContractWorld",
    "free_port",
]


class ContractWorld(Protocol):
    """Some hosts that hear each other; host 0 is for the sender."""

    hosts: Sequence[PortsHost]
    group: Group

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Until `over()`, or `until` seconds."""

    def close(self) -> None:
        """Give back what the world holds."""


class BenchWorld:
    """Fake hosts."""

    group = Group("239.1.1.1:5001")

    def __init__(self, case: Case, count: int, loss: float, *, wire: bool = False) -> None:
        drop = randomly(loss) if loss else nothing
        self.bench = Bench((f"n{i}" for i in range(count)), drop=drop, codec=case.codec() if wire else None)
        self.hosts: Sequence[PortsHost] = list(self.bench.hosts.values())

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Until `over()`, or `until` seconds."""
        self.bench.run(until, over)

    def close(self) -> None:
        """Nothing to give back."""


class WireBenchWorld(BenchWorld):
    """Fake hosts that see only what went through the codec."""

    def __init__(self, case: Case, count: int, loss: float) -> None:
        super().__init__(case, count, loss, wire=True)


class SimWorld:
    """The simulator: a star."""

    group = Group("239.1.1.1:5001")

    def __init__(self, case: Case, count: int, loss: float, *, wire: bool = False) -> None:
        link = {"rate": "100Mbit", "delay": "5ms", "down": {"loss": loss}}
        star = Star.model_validate({"kind": "star", "receivers": count - 1, "link": link})
        self.network = Network(star.build(), seed=1, codec=case.codec if wire else None)
        names = ["sender", *(f"r{i}" for i in range(1, count))]
        self.hosts: Sequence[PortsHost] = [self.network.host(name) for name in names]

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Until `over()`, or `until` seconds."""
        self.network.run(until, over)

    def close(self) -> None:
        """Nothing to give back."""


class WireSimWorld(SimWorld):
    """The simulator in its mode `wire: bytes`."""

    def __init__(self, case: Case, count: int, loss: float) -> None:
        super().__init__(case, count, loss, wire=True)


class LossyCodec:
    """A codec whose `decode` refuses some messages, which is how a host loses them: one for each host."""

    def __init__(self, codec: Codec, loss: float, key: int) -> None:
        self._codec, self._loss, self._rng = codec, loss, Rng(key)
        self.encode = codec.encode

    def decode(self, data: bytes) -> Message:
        """WireError for what is lost."""
        if self._rng.uniform() < self._loss:
            raise WireError("lost on purpose")
        return self._codec.decode(data)


class UdpWorld:
    """Real sockets on 127.0.0.1, all in one event loop; every host has a port of its own."""

    def __init__(self, case: Case, count: int, loss: float) -> None:
        self.loop: Loop = new_loop()
        self.group = Group(f"239.255.77.1:{free_port()}")
        self._hosts = [self._host(case, loss, i) for i in range(count)]
        self.hosts: Sequence[PortsHost] = self._hosts

    def _host(self, case: Case, loss: float, i: int) -> UdpHost:
        codec = LossyCodec(case.codec(), loss, key_of(1, "loss", i))
        rng = Rng(key_of(1, "node", i))
        return UdpHost(self.loop, codec, interface="127.0.0.1", port=free_port(), ttl=0, rng=rng)

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Looks every few milliseconds whether it is `over()`."""

        def look() -> None:
            if over():
                self.loop.stop()
            else:
                self.loop.call_later(0.005, look)

        self.loop.call_soon(look)
        self.loop.run(until)

    def close(self) -> None:
        """Close sockets and loop."""
        for host in self._hosts:
            host.close()
        self.loop.close()


def free_port() -> int:
    """A UDP port of 127.0.0.1 that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


WORLDS: dict[str, Callable[[Case, int, float], ContractWorld]] = {
    "fake": BenchWorld,
    "fake-bytes": WireBenchWorld,
    "simpy": SimWorld,
    "simpy-bytes": WireSimWorld,
    "udp": UdpWorld,
}
