"""Fault injection in a simulated network: partition, hold, cut, change, crash, restart, slow, drift, step, storm.

Each method acts now, during a run or between runs; `Network.later` makes it act at a time. What it returns undoes the fault.
Partition, hold and crash apply where a packet arrives, so they affect packets in flight too.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from protocols.errors import UsageError
from protocols.machine import Machine, Packet
from sim.changing import change
from sim.fault_shim import FaultShim, Rule
from sim.group_members import GroupMembers
from sim.host import SimHost
from sim.idle import IDLE
from sim.network import Network
from sim.noise import NOISE_GROUP, Noise
from topologies.spec import Topology

__all__ = ["REST", "Faults", "Side", "Undo", "sides_of"]

REST = "rest"
Side = Sequence[str] | str
"""Names of hosts and counted groups, or `REST`: all hosts that no other side names."""
Undo = Callable[[], None]


class Faults:
    """The faults of one network. `counts` are the numbers of faults injected so far, by verb."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.counts: Counter[str] = Counter()
        self._crashed: dict[int, Machine] = {}
        self._storms: list[list[bool]] = []
        self._forwarding = network.make_faulty()

    @property
    def dropped(self) -> int:
        """Packets lost by partitions, links that are down and full buffers of slow readers."""
        return self._forwarding.dropped + sum(shim.dropped for shim in self.network.fabric.fault_shims.values())

    # Reachability

    def partition(self, sides: Sequence[Side], *, oneway: bool = False) -> Undo:
        """Drop packets between hosts of different sides; with `oneway` only those of the first side to the others.

        A host that is on no side is not affected.
        """
        self.counts["partition"] += 1
        return self._divide(sides, oneway, parks=False)

    def hold(self, sides: Sequence[Side], *, oneway: bool = False) -> Undo:
        """As `partition`, but packets are kept instead of dropped, and received in order when the hold is undone."""
        self.counts["hold"] += 1
        return self._divide(sides, oneway, parks=True)

    def cut(self, near: str, far: str) -> Undo:
        """Take the link between two nodes down, in both directions; `far` may be a counted group or one of its members."""
        self.counts["flap"] += 1
        topology = self.network.topology
        for name, other in ((near, far), (far, near)):
            node = name if name in topology.graph else topology.member(name).node
            if topology.node(node).count is not None and topology.graph.has_edge(node, other):
                return self._isolate(topology.hosts_of(name))
        if not topology.graph.has_edge(near, far):
            raise UsageError(f"{near!r} and {far!r} have no link")
        return self._cut_both(near, far)

    def change(self, near: str, far: str, rate: float | None = None, loss: float | None = None) -> Undo:
        """Change rate or loss of the link from `near` to `far`; `sim.changing.make_changeable` is called before the run."""
        self.counts["change"] += 1
        return _once(change(self.network, near, far, rate, loss))

    def _divide(self, sides: Sequence[Side], oneway: bool, parks: bool) -> Undo:
        rules: list[tuple[Rule, Sequence[str]]] = []
        first, *others = sides_of(self.network.topology, sides)
        if oneway:
            shut = Rule(frozenset(first), parks=parks)
            rules = [(shut, side) for side in others]
        else:
            everyone = frozenset(name for side in (first, *others) for name in side)
            rules = [(Rule(everyone.difference(side), parks=parks), side) for side in (first, *others)]
        return self._impose(rules)

    def _isolate(self, names: Sequence[str]) -> Undo:
        """Separate each of these hosts from all others."""
        apart = frozenset(names)
        rest = [name for name in self.network.topology.hosts if name not in apart]
        return self._impose([(Rule(frozenset(), others=True), names), (Rule(apart), rest)])

    def _impose(self, rules: Sequence[tuple[Rule, Sequence[str]]]) -> Undo:
        imposed = [(rule, self._shim(name)) for rule, names in rules for name in names]
        for rule, shim in imposed:
            shim.rules.append(rule)

        def lift() -> None:
            now = self.network.env.now
            for rule, shim in imposed:
                shim.release(rule, now)
            self._settle()

        return _once(lift)

    def _cut_both(self, near: str, far: str) -> Undo:
        pair = [self.network.plain_link(near, far), self.network.plain_link(far, near)]
        down = self._forwarding.down
        down += pair

        def mend() -> None:
            for link in pair:
                down.remove(link)

        return _once(mend)

    # Hosts

    def crash(self, name: str, power: bool = False, loses_disk: bool = False) -> None:
        """Remove the machine with its state, if there is one; packets to the host are lost. No effect on a host that is down.

        Connections are reset by the host's kernel; with `power` the whole host is off, and peers get no segment.
        `loses_disk`: nothing of what was stored is left.
        """
        host, shim = self.network.host(name), self._shim(name)
        if host.place in self._crashed:
            return
        self.counts["crash"] += 1
        self._crashed[host.place] = shim.inner
        shim.empty()
        self.network.fabric.tcp.crash(host, power)
        host.leave_all()
        self.network.fabric.ports.close(host.place)
        host.machine = IDLE
        self.network.fabric.kernel.with_events.pop(host, None)
        processors = host.endpoint.processors
        if processors is not None and host.place in processors:
            processors[host.place].crash()
        disk = self.network.fabric.disks.get(host.place)
        if disk is not None:
            disk.crash()
            if loses_disk:
                disk.lose()

    def halt(self, name: str) -> None:
        """Let nothing that the host's machine does have an effect until `crash`, which follows at this instant."""
        host = self.network.host(name)
        host.processor.halt()
        host.disk.halt()

    def restart(self, name: str, start: Callable[[SimHost], object]) -> None:
        """Bring a crashed host up: `start(host)` runs a new machine on it. No effect on a host that is up."""
        host = self.network.host(name)
        if host.machine is not IDLE or self._crashed.pop(host.place, None) is None:
            return
        self.counts["restart"] += 1
        self.network.fabric.tcp.restart(host)
        start(host)
        self._settle()

    def slow(self, name: str, takes: float, room: int) -> Undo:
        """Let the application take `takes` seconds for each packet; `room` packets may wait, and others are lost."""
        self.counts["slow"] += 1
        shim = self._shim(name)
        shim.read_at(takes, room, self.network.env.now)

        def hasten() -> None:
            shim.read_at(0.0, 0, self.network.env.now)
            self._settle()

        return _once(hasten)

    def drift(self, name: str, factor: float) -> Undo:
        """Let the host's clock run `factor` times as fast as simulated time; undoing keeps the offset gained or lost."""
        self.counts["drift"] += 1
        shim = self._shim(name)
        shim.clock.drift(self.network.env.now, factor)
        shim.rearm()
        self._settle()

        def right() -> None:
            shim.clock.drift(self.network.env.now, 1.0)
            shim.rearm()
            self._settle()

        return _once(right)

    def step(self, name: str, forward: float) -> None:
        """Set the host's clock forward by so many seconds."""
        self.counts["step"] += 1
        shim = self._shim(name)
        shim.clock.step(self.network.env.now, forward)
        shim.rearm()
        self._settle()

    # Noise

    def storm(self, name: str, rate: float, size: int) -> Undo:
        """Let the host send noise to all others: packets of `size` bytes, `rate` bytes per second in all."""
        self.counts["storm"] += 1
        network, host = self.network, self.network.host(name)
        self._join_noise()
        message, going, began = Noise(), [True], network.env.now
        self._storms.append(going)

        def blow(number: int = 0) -> None:
            if going:
                host.send(Packet(message, size, NOISE_GROUP))
                network.later(began + (number + 1) * size / rate, lambda: blow(number + 1))

        blow()
        return _once(going.clear)

    def end_noise(self) -> None:
        """End all noise."""
        for going in self._storms:
            going.clear()

    def _join_noise(self) -> None:
        """Join all hosts to the noise group, with idle machines, so that noise is carried over every link."""
        network = self.network
        for endpoint in network.endpoints:
            if NOISE_GROUP not in endpoint.groups:
                members = endpoint.groups[NOISE_GROUP] = GroupMembers(endpoint.count)
                for member in range(endpoint.count):
                    members.put(member, IDLE)
        network.fabric.routes.forget(NOISE_GROUP)

    def _shim(self, name: str) -> FaultShim:
        """Return the fault shim of a host, put before its machine if there is none yet."""
        return self.network.host(name).put_fault_shim()

    def _settle(self) -> None:
        kernel = self.network.fabric.kernel
        if not kernel.busy:
            kernel.settle()


def _once(action: Undo) -> Undo:
    """Return an action that has an effect only the first time."""
    left = [action]

    def undo() -> None:
        if left:
            left.pop()()

    return undo


def sides_of(topology: Topology, sides: Sequence[Side]) -> list[list[str]]:
    """Return every side as names of hosts. UsageError for an unknown host, one on two sides, and fewer than two sides."""
    found = [None if side == REST else _names(topology, side) for side in sides]
    named = [name for side in found if side is not None for name in side]
    twice = next((name for name, count in Counter(named).items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"{twice!r} is named twice")
    if len(sides) < 2 or found.count(None) > 1:
        raise UsageError(f"there are two sides or more, and one of them may be {REST!r}")
    known = set(named)
    rest = [name for name in topology.hosts if name not in known]
    return [rest if side is None else side for side in found]


def _names(topology: Topology, side: Side) -> list[str]:
    return [host for name in ([side] if isinstance(side, str) else side) for host in topology.hosts_of(name)]
