"""TCP: mean windows under periodic loss, the goodput of one flow, and the shares of several.

A greedy sender writes whenever there is room. Windows are averaged over whole periods of loss, after a few that are discarded.
The measurements are deterministic.
"""

from collections.abc import Mapping
from typing import Any

from experiments.validation.references import Families, Measured, Reference
from experiments.validation.testbed import ignore
from protocols.connection import Connection
from protocols.cross.messages import Load, load_of
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.tcp import TcpOptions
from sim.network import Network
from sim.tcp.end import TcpEnd
from topologies.generators import Star

__all__ = ["FAMILIES"]

MESSAGE = 14_476
"""Bytes of a message, which fills ten segments with its length."""
DISCARDED, PERIODS = 4, 12
SAMPLES = 5
"""Samples of the window for each round trip."""


class _Greedy(Machine):
    """Connects to peers and writes whenever there is room."""

    __slots__ = ("_peers", "connections")

    def __init__(self, ports: Ports, peers: list[Address]) -> None:
        super().__init__(ports)
        self._peers = peers
        self.connections: list[Connection] = []

    def start(self, now: float) -> None:
        """Connect."""
        for peer in self._peers:
            self.ports.connect(peer)

    def opened(self, connection: Connection, now: float) -> None:
        """Begin to write."""
        self.connections.append(connection)
        self.drained(connection, now)

    def drained(self, connection: Connection, now: float) -> None:
        """Write until the buffer is full."""
        while not self.ports.send(Packet(load_of(1, 0, MESSAGE), MESSAGE, connection)):
            pass

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Do nothing: nobody answers."""

    def wake(self, now: float) -> None:
        """Do nothing: there is no timer."""

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


class _Drain(Machine):
    """Listens, and counts the bytes it receives."""

    __slots__ = ("octets",)

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.octets = 0

    def start(self, now: float) -> None:
        """Listen."""
        self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count."""
        assert isinstance(message, Load)
        self.octets += MESSAGE + 4

    def wake(self, now: float) -> None:
        """Do nothing: there is no timer."""

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


def _flows(number: int, options: TcpOptions, **star: Any) -> tuple[Network, _Greedy, list[_Drain]]:
    """Return a network in which the sender of a star writes to `number` receivers."""
    topology = Star.model_validate({"kind": "star", "receivers": number, **star}).build()
    network = Network(topology, seed=1, connections=options)
    names = topology.hosts[1:]
    drains = [_Drain(network.host(name)) for name in names]
    for name, drain in zip(names, drains, strict=True):
        network.host(name).run(drain, ignore)
    host = network.host("sender")
    greedy = _Greedy(host, list(names))
    host.run(greedy, ignore)
    return network, greedy, drains


def _window(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the mean window when every n-th segment is lost and nothing else limits the flow."""
    every: int = round(1 / reference.params["p"])
    rtt: float = reference.params["rtt"]
    # The first loss ends slow start near the window to be expected, so that few periods have to be discarded.
    loss = {"model": "periodic", "every": every, "first": min(every, round(2 * reference.values["value"]))}
    options = TcpOptions(control=reference.params["control"], buffer=1 << 26)
    network, greedy, drains = _flows(1, options, link={"delay": rtt / 2, "down": {"loss": loss}})
    windows: list[float] = []

    def look() -> None:
        for end in greedy.connections:
            assert isinstance(end, TcpEnd)
            windows.append(end.window)
        network.later(network.now + rtt / SAMPLES, look)

    look()

    def carried(periods: float) -> bool:
        return drains[0].octets >= periods * (every * options.mss)

    network.run(over=lambda: carried(DISCARDED))
    windows.clear()
    network.run(over=lambda: carried(DISCARDED + max(1.0, PERIODS * effort)))
    return {"value": Measured(sum(windows) / len(windows))}


def _capacity(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the goodput of one flow over a link that frames exactly, when slow start is over."""
    link = {
        "rate": reference.params["rate_bps"],
        "delay": reference.params["rtt"] / 2,
        "queue": 100,
        "overhead": "ethernet",
    }
    network, _, (drain,) = _flows(1, TcpOptions(control=reference.params["control"], buffer=1 << 20), trunk=link)
    network.run(until=2.0)
    before, seconds = drain.octets, max(1.0, 10 * effort)
    network.run(until=2.0 + seconds)
    return {"value": Measured(8 * (drain.octets - before) / seconds)}


def _share(reference: Reference, effort: float) -> Mapping[str, Measured]:
    """Measure the least and the largest share that flows have of a link."""
    link = {"rate": reference.params["rate_bps"], "delay": reference.params["rtt"] / 2, "queue": reference.params["queue"]}
    options = TcpOptions(control=reference.params["control"], buffer=1 << 20)
    network, _, drains = _flows(reference.params["flows"], options, trunk=link)
    network.run(until=20.0)
    before = [drain.octets for drain in drains]
    network.run(until=20.0 + max(30.0, 180 * effort))
    carried = [drain.octets - old for drain, old in zip(drains, before, strict=True)]
    return {"least": Measured(min(carried) / sum(carried)), "most": Measured(max(carried) / sum(carried))}


FAMILIES: Families = {
    "tcp_reno": _window,
    "tcp_cubic": _window,
    "tcp_capacity": _capacity,
    "tcp_share": _share,
}
