"""The baseline: SimPy as in its tutorials, with a Store and a process for each link and a process for each packet.

It runs the plain machines of any protocol on any topology of plain links: switches forward along multicast trees and unicast
routes, which are computed once. Random numbers and losses have the keys of `sim`, so a run has the same packets, losses and
timers as one of `sim.network.Network`.
"""

from collections.abc import Callable, Generator
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeVar

import simpy

from protocols.events import Event
from protocols.machine import Address, Codec, Group, Machine, Offer, Packet, Sink
from protocols.rng import Rng
from protocols.traffic import Traffic
from sim.addresses import address_at, name_and_port
from topologies.keys import line_key, stream_key
from topologies.spec import LinkSpec, Topology
from topologies.trees import forwarding, group_tree, next_hops

__all__ = ["TextbookHost", "TextbookNetwork"]

T = TypeVar("T")
Steps = Generator[simpy.Event, Any, None]


class Item(NamedTuple):
    """A packet on its way, and the address it was sent from."""

    packet: Packet
    source: Address


Deliver = Callable[[Item], None]


class TextbookLink:
    """A Store as queue, one process that serialises, and one process for each packet in propagation."""

    def __init__(self, env: simpy.Environment, spec: LinkSpec, key: int, deliver: Deliver) -> None:
        assert spec.plain, "the textbook has plain links only"
        assert isinstance(spec.overhead, int), "the textbook has a fixed overhead per packet only"
        self.env, self.rate, self.delay, self.deliver = env, spec.rate, spec.delay, deliver
        self.overhead, self.limit = spec.overhead, inf if spec.queue is None else spec.queue
        self.sampler = spec.loss.link(key)
        self.queue: Any = simpy.Store(env)
        self.busy = False
        env.process(self.serialise())

    def put(self, item: Item) -> None:
        """Queue a packet; one more than may wait is dropped."""
        # Counted as offered, although it is dropped: losses are keyed by how often a link was offered a packet.
        lost = self.sampler is not None and self.sampler.lost(item.packet.message.identity)
        if len(self.queue.items) < self.limit or not self.busy:
            self.busy = True
            self.queue.put((item, lost))

    def serialise(self) -> Steps:
        """Send one packet after another."""
        while True:
            item, lost = yield self.queue.get()
            yield self.env.timeout((item.packet.size + self.overhead) / self.rate)
            self.busy = bool(self.queue.items)
            if not lost:
                self.env.process(self.propagate(item))

    def propagate(self, item: Item) -> Steps:
        """Deliver a packet after the delay."""
        yield self.env.timeout(self.delay)
        self.deliver(item)


class TextbookHost:
    """Runs one machine, and is its ports."""

    trace = None

    def __init__(self, network: "TextbookNetwork", name: str) -> None:
        self.network, self.name = network, name
        self.rng = Rng(stream_key(network.topology, network.seed, name))
        self.machine: Machine
        self.uplink: TextbookLink
        self.switch = ""
        """The switch it is linked to."""
        self.events: list[Event] = []
        self.groups: list[Group] = []
        self.armed = inf
        self.is_stopped = False
        self.on_event: Callable[[Event], None]
        self.accept: Callable[[Offer], Sink | None] = lambda offer: None

    @property
    def now(self) -> float:
        """Seconds since the run began."""
        return float(self.network.env.now)

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine."""
        self.machine, self.on_event = machine, on_event
        if accept is not None:
            self.accept = accept
        self.call(machine.start)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call a method of the machine and deliver the events it caused."""
        result = verb(*args, self.network.env.now)
        while self.events:
            self.network.notified = True
            self.on_event(self.events.pop(0))
        return result

    def receive(self, item: Item) -> None:
        """Deliver a packet of another host to the machine."""
        to = item.packet.to
        if self.is_stopped:
            return
        if to in self.groups or self.port_of(to) is not None:
            self.network.deliveries += 1
            self.call(self.machine.receive, item.packet.message, item.source, to)

    def wake(self, when: float) -> Steps:
        """Wake the machine at `when` if it is due, and wait for its next deadline."""
        yield self.network.env.timeout(max(0.0, when - self.network.env.now))
        if when != self.armed:
            return  # An earlier deadline was announced since.
        self.armed = inf
        if self.machine.deadline <= self.network.env.now:
            self.call(self.machine.wake)
        if self.machine.deadline < inf:
            self.alarm(self.machine.deadline)

    def act(self, when: float, action: Callable[[], None]) -> Steps:
        """Run an action of the application at `when`."""
        yield self.network.env.timeout(max(0.0, when - self.network.env.now))
        action()

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Start a process that runs an action at `when`."""
        self.network.env.process(self.act(when, action))

    def stop(self) -> None:
        """Receive nothing from now on, and never wake the machine again."""
        self.groups.clear()
        self.armed = inf
        self.is_stopped = True

    def open_port(self, port: int, codec: Callable[[], Codec] | None = None) -> None:
        """Use a port; nothing is encoded here."""
        del port, codec

    def port_of(self, address: Address) -> int | None:
        """Return which port of this host has an address, None for those of other hosts and for groups."""
        name, port = name_and_port(address)
        return port if name == self.name and not isinstance(address, Group) else None

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of a host."""
        return address_at(name, port)

    def send(self, packet: Packet, port: int = 0) -> None:
        """Queue a packet on the up-link."""
        self.network.traffic.count(packet.message, packet.size)
        self.uplink.put(Item(packet, address_at(self.name, port)))

    def notify(self, event: Event) -> None:
        """Queue an event for the application."""
        self.events.append(event)

    def alarm(self, when: float) -> None:
        """Start a timer process unless one expires before `when`."""
        if when < self.armed:
            self.armed = when
            self.network.env.process(self.wake(when))

    def join(self, group: Group, port: int = 0) -> None:
        """Receive what is sent to the group."""
        del port
        self.groups.append(group)
        self.network.forget_trees()

    def leave(self, group: Group, port: int = 0) -> None:
        """Stop receiving what is sent to the group."""
        del port
        self.groups.remove(group)
        self.network.forget_trees()


class TextbookNetwork:
    """A topology of plain links in textbook SimPy; `hosts` are in the order of `Topology.hosts`."""

    def __init__(self, topology: Topology, seed: int) -> None:
        self.env = simpy.Environment()
        self.topology, self.seed = topology, seed
        self.deliveries = self.events = 0
        self.traffic = Traffic()
        self.notified = True
        """Whether an application has received an event since the end condition of `run` was evaluated last."""
        self._by_name = {name: TextbookHost(self, name) for name in topology.hosts}
        self.hosts = list(self._by_name.values())
        self._forwarding = forwarding(topology)
        self._node = {name: topology.member(name).node for name in topology.hosts}
        self._members = {node: [self.host(name) for name in topology.hosts_of(node)] for node in topology.host_nodes}
        self._links: dict[tuple[str, str], TextbookLink] = {}
        """By the names of the near and the far end: a host or a switch."""
        for near, far, spec in topology.links:
            self._connect(near, far, spec)
        self._routes: dict[str, dict[str, str]] = {}
        """Next hops of unicasts by switch."""
        self._trees: dict[tuple[Group, str], dict[str, list[str]]] = {}
        """By group and first switch: the next hosts and switches of each switch."""

    def _connect(self, near: str, far: str, spec: LinkSpec) -> None:
        """Make the links between two nodes, one for each member of a counted group."""
        for place, host in enumerate(self._members.get(near) or self._members.get(far) or [None]):
            key = line_key(self.topology, self.seed, near, far, place)
            if host is None:
                self._links[near, far] = TextbookLink(self.env, spec, key, partial(self._forward, far))
            elif near in self._members:
                assert not host.switch, "the textbook links a host to one switch"
                assert far not in self._members, "the textbook links no hosts to each other"
                host.switch = far
                host.uplink = TextbookLink(self.env, spec, key, partial(self._forward, far))
            else:
                self._links[near, host.name] = TextbookLink(self.env, spec, key, host.receive)

    def host(self, name: str) -> TextbookHost:
        """Return the host of this name."""
        return self._by_name[name]

    def forget_trees(self) -> None:
        """Compute the trees anew: a host joined or left a group."""
        self._trees = {}

    def _forward(self, switch: str, item: Item) -> None:
        """Forward a packet from a switch, a multicast to all but its source."""
        to, source = item.packet.to, name_and_port(item.source)[0]
        if not isinstance(to, Group):
            self._links[switch, self._next_hop(switch, name_and_port(to)[0])].put(item)
            return
        root = self._by_name[source].switch
        tree = self._trees.get((to, root))
        if tree is None:
            tree = self._trees[to, root] = self._tree(to, root)
        for name in tree.get(switch, ()):
            if name != source:
                self._links[switch, name].put(item)

    def _next_hop(self, switch: str, to: str) -> str:
        """Return the next host or switch on the way to a host."""
        if switch not in self._routes:
            self._routes[switch] = next_hops(self.topology, switch, self._forwarding)
        node = self._node[to]
        hop = self._routes[switch][node]
        return to if hop == node else hop

    def _tree(self, group: Group, root: str) -> dict[str, list[str]]:
        """Return the tree from a switch to the members of a group, with the names of hosts."""
        nodes = [node for node, hosts in self._members.items() if any(group in host.groups for host in hosts)]
        return {
            near: [name for far in below for name in self._names(far)]
            for near, below in group_tree(self.topology, root, nodes, self._forwarding).items()
        }

    def _names(self, node: str) -> list[str]:
        return [host.name for host in self._members[node]] if node in self._members else [node]

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Run until `over()`, which is asked whenever an application received events, at most until `until` seconds."""
        env = self.env
        while env.peek() < until:
            if self.notified:
                self.notified = False
                if over():
                    return
            self.events += 1
            env.step()
