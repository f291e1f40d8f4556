"""State shared by all hosts, links and switches of one network."""

from collections.abc import Callable
from typing import TypeAlias

from protocols.machine import Codec, Message
from protocols.rng import Rng, key_of
from protocols.traffic import Traffic
from sim.acceleration import Accelerator
from sim.disk import Disk
from sim.failures import Failures
from sim.fault_shim import FaultShim
from sim.fingerprint import Fingerprint
from sim.flight import Forwarding
from sim.host_ports import HostPorts
from sim.kernel import Kernel
from sim.membership import Membership
from sim.routes import Routes
from sim.stats import Observer
from sim.tcp.stack import Connections
from sim.timers import KernelHost
from topologies.spec import Topology

__all__ = ["Fabric", "OnDelivery"]

OnDelivery: TypeAlias = Callable[[float, str, Message], None]
"""Called with the time (seconds), the receiving host and the message just before a machine receives it."""


class Fabric:
    """The parts of a network that its hosts, links and switches work with, and the counters they share."""

    def __init__(
        self, topology: Topology, seed: int, kernel: Kernel, forwarding: Forwarding, accelerator: Accelerator, routes: Routes
    ) -> None:
        self.topology = topology
        self.seed = seed
        self.kernel = kernel
        self.timers = kernel.timers
        self.forwarding = forwarding
        self.accelerator = accelerator
        self.routes = routes
        self.membership = Membership(topology, kernel, routes)
        self.hosts: list[KernelHost | None] = kernel.hosts
        """The hosts made so far, by place."""
        self.fault_shims: dict[int, FaultShim] = {}
        """The fault shims of hosts with faults, by place."""
        self.ports = HostPorts()
        """The ports of hosts that have several machines."""
        self.observers: list[Observer] = []
        """Called for every packet sent."""
        self.codec: Codec | None = None
        """Encodes and decodes every packet once, where one is set."""
        self.on_delivery: OnDelivery | None = None
        """Called for every delivery; only in the strict engine."""
        self.tcp: Connections
        """The connections of all hosts."""
        self.fingerprinter = Fingerprint()
        self.traffic = Traffic()
        self.packets, self.octets = self.traffic.packets, self.traffic.octets
        self.delivered = 0
        """Packets delivered to machines, as far as they are brought up to date (`Accelerator.catch_up`)."""
        self.serial = 0
        """Number of the packet sent last."""
        self.failures = Failures()
        """Hosts that end by what their own machines do."""
        self.disks: dict[int, Disk] = {}
        """The disks of hosts that used them, by place."""

    def disk(self, place: int, node: str, host: str) -> Disk:
        """Return the disk of the host at a place, which belongs to graph node `node`; it is made when first needed."""
        disk = self.disks.get(place)
        if disk is None:
            rng = Rng(key_of(self.seed, "disk", host))
            disk = self.disks[place] = Disk(self.kernel, host, self.topology.node(node).disk, rng)
        return disk
