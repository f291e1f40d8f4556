"""Random fault schedules: plain entries of a scenario file, which follow from a random stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx

from experiments.scenario.scenario import Scenario
from protocols.rng import Rng
from topologies.spec import Topology

__all__ = ["Plan", "Targets", "random_plan", "targets_of"]

Plan = list[dict[str, Any]]
MOST_FAULTS = 4


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets of random faults besides hosts and links: servers, sites, members; none in a scenario of files.

    `members` are the hosts that publish or subscribe, `servers` those with another role, such as tunnels, and `sites` the hosts
    of each site, where tunnels connect several.
    """

    members: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    sites: tuple[tuple[str, ...], ...] = ()


NO_TARGETS = Targets()


def targets_of(scenario: Scenario, topology: Topology) -> Targets:
    """Return the targets of a scenario."""
    named = [*(work.hosts for work in scenario.publications), *(work.hosts for work in scenario.subscriptions)]
    members = dict.fromkeys(host for hosts in named for name in hosts for host in topology.hosts_of(name))
    serving = [name for name, choice in scenario.nodes.items() if choice.taken_role is not None and not choice.foreign]
    servers = dict.fromkeys(host for name in serving for host in topology.hosts_of(name) if host not in members)
    return Targets(tuple(members), tuple(servers), tuple(_sites(topology)) if scenario.is_divided else ())


def _sites(topology: Topology) -> list[tuple[str, ...]]:
    """Return the hosts of each network between routers that has hosts of its own. The machines of routers belong to no site."""
    routers = {name for name in topology.switches if topology.node(name).kind == "router"}
    machines = set(topology.router_machines.values())
    rest = topology.graph.to_undirected()
    rest.remove_nodes_from([*routers, *machines])
    found = []
    for component in nx.connected_components(rest):
        hosts = [host for host in topology.hosts if topology.member(host).node in component]
        if hosts:
            found.append(tuple(hosts))
    return found if len(found) > 1 else []


def random_plan(rng: Rng, topology: Topology, span: float, targets: Targets = NO_TARGETS) -> Plan:
    """Draw one to four faults within `span` seconds; durations are distributed log-uniformly."""
    return [_random_fault(rng, topology, span, targets) for _ in range(1 + _below(rng, MOST_FAULTS))]


def _random_fault(rng: Rng, topology: Topology, span: float, targets: Targets) -> dict[str, Any]:
    draws = _draws(targets)
    verb = list(draws)[_below(rng, len(draws))]
    fault: dict[str, Any] = {"at": round(rng.uniform() * span, 6)}
    fault |= draws[verb](rng, topology)
    if "step" not in fault:
        longest = 0.02 if "storm" in fault else 0.5
        fault["for"] = round(span * longest * 10 ** (-3 * rng.uniform()), 9)
    return fault


def _draws(targets: Targets) -> dict[str, Callable[[Rng, Topology], dict[str, Any]]]:
    """Return what draws each kind of fault."""
    draws = dict(_DRAW)
    if targets.members:
        members = list(targets.members)
        draws["churn"] = lambda rng, _: {"churn": [_pick(rng, members)], "times": 1 + _below(rng, 3)}
    if targets.servers:
        servers = list(targets.servers)
        draws["crash of a server"] = lambda rng, _: {"crash": _pick(rng, servers)}
        if len(servers) > 1:
            draws["partition of two servers"] = lambda rng, _: {"partition": [[name] for name in _two(rng, servers)]}
    if targets.sites:
        sites = [list(site) for site in targets.sites]
        draws["partition of a site"] = lambda rng, _: {"partition": [_pick(rng, sites), "rest"], "oneway": rng.uniform() < 0.5}
    return draws


def _below(rng: Rng, count: int) -> int:
    return int(rng.uniform() * count)


def _host(rng: Rng, topology: Topology) -> str:
    return topology.hosts[_below(rng, len(topology.hosts))]


def _some(rng: Rng, topology: Topology) -> list[str]:
    """Draw one to three distinct hosts, never all."""
    most = min(3, len(topology.hosts) - 1)
    return list(dict.fromkeys(_host(rng, topology) for _ in range(1 + _below(rng, most))))


def _divided(verb: str, rng: Rng, topology: Topology) -> dict[str, Any]:
    return {verb: [_some(rng, topology), "rest"], "oneway": rng.uniform() < 0.5}


def _flap(rng: Rng, topology: Topology) -> dict[str, Any]:
    ends = list(topology.graph.edges)[_below(rng, topology.graph.number_of_edges())]
    pair = [topology.member_name(end, _below(rng, topology.size(end))) if end in topology.host_nodes else end for end in ends]
    return {"flap": pair, "times": 1 + _below(rng, 3)}


def _pick(rng: Rng, values: list[Any]) -> Any:
    return values[_below(rng, len(values))]


def _two(rng: Rng, values: list[Any]) -> list[Any]:
    """Draw two different values."""
    first = _below(rng, len(values))
    return [values[first], values[(first + 1 + _below(rng, len(values) - 1)) % len(values)]]


_DRAW: dict[str, Callable[[Rng, Topology], dict[str, Any]]] = {
    "partition": lambda rng, topology: _divided("partition", rng, topology),
    "hold": lambda rng, topology: _divided("hold", rng, topology),
    "flap": _flap,
    "crash": lambda rng, topology: {"crash": _host(rng, topology)},
    "slow": lambda rng, topology: {
        "slow": _host(rng, topology),
        "takes": _pick(rng, ["100us", "1ms", "10ms"]),
        "room": _pick(rng, [1, 8, 64]),
    },
    "drift": lambda rng, topology: {"drift": _host(rng, topology), "factor": _pick(rng, [0.5, 0.99, 1.01, 2.0])},
    "step": lambda rng, topology: {"step": _host(rng, topology), "forward": _pick(rng, ["10ms", "1s", "100s"])},
    "storm": lambda rng, topology: {"storm": _host(rng, topology), "rate": _pick(rng, ["1Mbit", "10Mbit", "100Mbit"])},
}
