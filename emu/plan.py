"""Plan the emulation of a Topology; refuse what can't be emulated before anything is started."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from emu.hub_shaping import FEATURES as HUB_FEATURES
from emu.hub_shaping import HubShape, hub_shape
from emu.netem_qdisc import NetemKind, NetemLink, unsupported_by_netem
from emu.router_shaping import RouterShape, router_shape
from emu.routing import Routing
from emu.shaping import LinkShape, UserSpaceLink, kernel_shape, netem_shape, unsupported_by_kernel
from emu.trunk import TrunkKind
from protocols.errors import UnsupportedError
from topologies.addressing import host_address
from topologies.keys import line_key
from topologies.node_models import RouterModel
from topologies.spec import LinkSpec, Topology
from topologies.trees import looped_switches

__all__ = ["EmulationPlan", "Cable", "plan_emulation"]

_MAX_HOSTS = 1000
"""Most hosts of an emulation: a Linux bridge has at most 1024 ports, and each host takes a process."""
_MAX_TTL = 255


@dataclass(frozen=True, slots=True)
class Cable:
    """An undirected link between two nodes, with the shape of each direction: `down` from `near` to `far`, `up` back."""

    near: str
    far: str
    down: LinkShape
    up: LinkShape


@dataclass(frozen=True, slots=True)
class EmulationPlan:
    """Plan of an emulated network: hosts with their addresses, switches, routers and cables.

    `groups` are group addresses with the hosts that take part, `ttls` the multicast TTLs of hosts below 255.
    """

    topology: Topology
    addresses: dict[str, str]
    switches: tuple[str, ...]
    routers: tuple[RouterShape, ...]
    hubs: tuple[HubShape, ...]
    cables: tuple[Cable, ...]
    routing: Routing
    groups: Mapping[str, Sequence[str]]
    ttls: Mapping[str, int]

    def ttl(self, host: str) -> int:
        """Return the TTL of a host's multicast packets."""
        return self.ttls.get(host, _MAX_TTL)

    @property
    def has_entries(self) -> bool:
        """Whether switches forward multicasts by forwarding entries for each group, instead of flooding them."""
        return self.routing.has_loops or (bool(self.groups) and self.topology.multicast.pruning)

    @property
    def shapes(self) -> list[LinkShape]:
        """Both directions of every cable."""
        return [shape for cable in self.cables for shape in (cable.down, cable.up)]

    @property
    def features(self) -> list[str]:
        """Names of the kernel features needed (`emu.requirements`)."""
        needed = ["veth", "bridge"]
        needed += ["rate"] if any(shape.rate < inf for shape in self.shapes) else []
        needed += ["loss"] if any(shape.threshold for shape in self.shapes) else []
        needed += HUB_FEATURES if self.hubs else []
        return list(dict.fromkeys(needed + [feature for router in self.routers for feature in router.features]))

    @property
    def machines(self) -> dict[str, str]:
        """The hosts that are machines of routers, with their routers; they have no namespace and no link of their own."""
        return {host: router for router, host in self.topology.router_machines.items()}

    def shaped(self, host: str) -> bool:
        """Return whether batches are not allowed, as the host's own link limits its rate or must see packets one by one."""
        return host in self.machines or any(
            host in (cable.near, cable.far) and (cable.down.needs_single_packets or cable.up.needs_single_packets)
            for cable in self.cables
        )

    @property
    def unsupported_by_kernel(self) -> str:
        """The first link that needs user space, and the attribute that requires it; "" if the kernel can emulate all."""
        for shape in self.shapes:
            if shape.user is not None and shape.user.reason:
                return f"link {shape.link}: {shape.user.reason}"
        return ""

    def report(self) -> list[dict[str, Any]]:
        """Return what impairs each link, then each router and each hub, in a form for results."""
        rows = [*(shape.report() for shape in self.shapes), *(router.report() for router in self.routers)]
        rows += [hub.report() for hub in self.hubs]
        return [row for row in rows if len(row) > 1]


def plan_emulation(
    topology: Topology,
    groups: Mapping[str, Sequence[str]] | None = None,
    ttls: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
    keyed: bool = False,
    exact: bool = False,
    netem: NetemKind = "none",
    trunk: TrunkKind = "ifb",
) -> EmulationPlan:
    """Plan an emulation. Raises UnsupportedError naming link or node and the attribute that can't be emulated.

    `seed` is that of losses in user space; with `keyed` all losses are there, with `exact` all rates of links. `netem` is the
    kernel's netem, `trunk` the encapsulation for routers with `mac: single`.
    """
    if len(topology.hosts) > _MAX_HOSTS:
        raise UnsupportedError(
            f"topology: {len(topology.hosts)} hosts can't be emulated; {_MAX_HOSTS} at most, or the simulator"
        )
    _check_supported(topology)
    cables = []
    machines = topology.router_machines.values()
    for near, far in topology.graph.to_undirected().edges:
        if near in machines or far in machines:
            # It runs in the router's own namespace.
            continue
        shape = partial(_shapes, topology, near, far, _Impairers(seed, keyed, exact, netem))
        # One end is a single node: members of host groups are attached to switches.
        for i, a in enumerate(_members(topology, near)):
            for j, b in enumerate(_members(topology, far)):
                cables.append(Cable(a, b, *shape(a, b, max(i, j))))
    kinds = {name: topology.node(name).kind for name in topology.switches}
    routers = [name for name, kind in kinds.items() if kind == "router"]
    routing = Routing(topology, [(cable.near, cable.far) for cable in cables], groups or {})
    return EmulationPlan(
        topology,
        {host: host_address(topology, host) for host in topology.hosts},
        tuple(name for name, kind in kinds.items() if kind == "switch"),
        tuple(router_shape(name, _router_model(topology, name), trunk) for name in routers),
        tuple(
            hub_shape(topology, name, [*routing.addresses_at(name).values()]) for name in kinds if topology.node(name).is_hub
        ),
        tuple(cables),
        routing,
        groups or {},
        ttls or {},
    )


@dataclass(frozen=True, slots=True)
class _Impairers:
    """Available impairments: whether losses are keyed and rates exact, the kernel's netem, and the seed of random numbers."""

    seed: int
    keyed: bool
    exact: bool
    netem: NetemKind

    def uses_netem(self, specs: Sequence[LinkSpec]) -> bool:
        """Return whether netem is used for these directions of a link; it has neither keyed losses nor exact rates."""
        exact = self.exact and any(spec.rate < inf for spec in specs)
        return self.netem != "none" and not self.keyed and not exact and not any(map(unsupported_by_netem, specs))

    def netem_link(self, spec: LinkSpec, key: int) -> NetemLink:
        """Return a direction of a link by netem; `key` gives its seed where netem takes one."""
        return NetemLink(spec, key >> 32 if self.netem == "seeded" else None)


def _shapes(
    topology: Topology, near: str, far: str, impairers: _Impairers, a: str, b: str, place: int
) -> tuple[LinkShape, LinkShape]:
    """Return both directions of the link between node `a` of `near` and node `b` of `far`; user space carries both or none."""
    directions = ((near, far, f"{a}-{b}"), (far, near, f"{b}-{a}"))
    specs = [topology.link(source, target) for source, target, _ in directions]
    reasons = [unsupported_by_kernel(spec, impairers.keyed, impairers.exact) for spec in specs]
    keys = [line_key(topology, impairers.seed, source, target, place) for source, target, _ in directions]
    shapes = []
    for (_, _, link), spec, key, reason in zip(directions, specs, keys, reasons, strict=True):
        if not any(reasons) or (impairers.uses_netem(specs) and not reason):
            shapes.append(kernel_shape(link, spec))
        elif impairers.uses_netem(specs):
            shapes.append(netem_shape(link, impairers.netem_link(spec, key)))
        else:
            shapes.append(LinkShape(link, user=UserSpaceLink(spec, key, place, reason)))
    return shapes[0], shapes[1]


def _router_model(topology: Topology, name: str) -> RouterModel | None:
    model = topology.node(name).model
    assert model is None or isinstance(model, RouterModel)
    return model


def _check_supported(topology: Topology) -> None:
    """Raise UnsupportedError naming node or attribute for what only the simulator supports."""
    undirected = topology.graph.to_undirected()
    for name in sorted(looped_switches(topology)):
        if topology.node(name).is_hub:
            raise UnsupportedError(f"node {name}: a hub in a loop can't be emulated, since it would repeat packets for ever")
    for name in topology.host_nodes:
        if undirected.degree(name) > 1:
            raise UnsupportedError(f"node {name}: a host with several links can't be emulated yet")
    for name in topology.graph:
        spec = topology.node(name)
        emulated = spec.model is None or spec.kind == "router" or spec.is_hub
        written = set() if emulated or spec.model is None else spec.model.model_fields_set - {"quota", "hub"}
        if written:
            key = min(written)
            raise UnsupportedError(f"node {name}: {key} can't be emulated yet; leave it out or use the simulator")


def _members(topology: Topology, node: str) -> Iterable[str]:
    if topology.node(node).kind == "switch":
        return [node]
    return [topology.member_name(node, place) for place in range(topology.size(node))]
