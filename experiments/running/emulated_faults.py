"""Convert the faults of a scenario for Mininet, and refuse those that Mininet can't inject."""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf

import emu.fault_injection as real
from experiments.scenario.fault_schedule import Fault
from protocols.errors import UnsupportedError
from sim.faults import sides_of
from topologies.spec import Topology

__all__ = ["emulated"]


def emulated(faults: Sequence[Fault], topology: Topology, foreign: Collection[str]) -> list[real.InjectedFault]:
    """Convert the faults of a scenario to those of `emu.fault_injection`. `foreign` hosts run programs that are not mcastlab's.

    UnsupportedError names the fault that Mininet can't inject, by its index and verb.
    """
    found: list[real.InjectedFault] = []
    for number, fault in enumerate(faults):
        make = _MAKE.get(fault.verb)
        if make is None:
            can = ", ".join(_MAKE)
            raise UnsupportedError(
                f"faults.{number}: Mininet can't do {fault.verb!r}, only {can}; the simulator can (--on sim), or leave it out"
            )
        if fault.verb == "slow" and (unsupported := next((name for name in _names(fault, topology) if name in foreign), None)):
            raise UnsupportedError(
                f"faults.{number}: {unsupported} runs a foreign program, which can't be made slow; leave it out"
            )
        machines = set(_cut_off(fault, topology)) & set(topology.router_machines.values())
        if machines:
            router = topology.node(min(machines)).router
            raise UnsupportedError(
                f"faults.{number}: in Mininet the machine of router {router} shares its devices with what the router forwards, "
                f"so {'power' if fault.power else fault.verb} can't act on it alone; the simulator can, or leave it out"
            )
        found += make(fault, topology)
    return found


def _cut_off(fault: Fault, topology: Topology) -> list[str]:
    """Return the hosts that a fault cuts off from all others, at devices that nobody else may use."""
    if link := fault.flap or fault.change:
        return [host for pair in _pairs(topology, link) for host in pair]
    return _names(fault, topology) if fault.power else []


def _at(fault: Fault) -> float:
    """Return when a fault begins (seconds); inf for one that begins at a decision."""
    return inf if fault.at is None else fault.at


def _names(fault: Fault, topology: Topology) -> list[str]:
    return [host for name in fault.hosts for host in topology.hosts_of(name)]


def _partition(fault: Fault, topology: Topology) -> Iterator[real.InjectedFault]:
    first, *others = sides_of(topology, fault.sides)
    if fault.oneway:
        deaf = [(host, first) for side in others for host in side]
    else:
        sides = [first, *others]
        deaf = [(host, [name for other in sides if other is not side for name in other]) for side in sides for host in side]
    sides_text = (side if isinstance(side, str) else ",".join(side) for side in fault.sides)
    what = " | ".join(sides_text) + (" one way" if fault.oneway else "")
    yield real.NetworkPartition(what, _at(fault), fault.lasts, deaf)


def _pairs(topology: Topology, ends: Sequence[str]) -> list[tuple[str, str]]:
    """Return the links between two ends, each a switch or the members of a group of hosts."""
    near, far = ([name] if name in topology.switches else topology.hosts_of(name) for name in ends)
    return [(a, b) for a in near for b in far]


def _flap(fault: Fault, topology: Topology) -> Iterator[real.InjectedFault]:
    assert fault.flap is not None
    pairs = _pairs(topology, fault.flap)
    period = fault.every if fault.every is not None else 2 * (fault.lasts or 0.0)
    what, on_arrival = "-".join(fault.flap), any(_is_of_group(topology, name) for name in fault.flap)
    for number in range(fault.times):
        yield real.LinkOutage(what, _at(fault) + number * period, fault.lasts, pairs, on_arrival)


def _is_of_group(topology: Topology, name: str) -> bool:
    """Return whether a name is that of a counted group or of a member, whose packets the simulator loses where they arrive."""
    node = name if name in topology.graph else topology.member(name).node
    return topology.node(node).count is not None


def _change(fault: Fault, topology: Topology) -> Iterator[real.InjectedFault]:
    assert fault.change is not None
    yield real.LinkChange(
        "-".join(fault.change), _at(fault), fault.lasts, _pairs(topology, fault.change), fault.rate, fault.loss
    )


def _crash(fault: Fault, topology: Topology) -> Iterator[real.InjectedFault]:
    names = _names(fault, topology)
    links = [(name, _neighbour(topology, name)) for name in names] if fault.power else []
    decision = None if fault.when is None else (fault.when.decision, fault.when.count)
    yield real.HostCrash(",".join(fault.hosts), _at(fault), fault.lasts, names, links, fault.disk == "lose", decision)


def _neighbour(topology: Topology, host: str) -> str:
    """Return the node at the other end of a host's only link."""
    return next(iter(topology.graph.successors(topology.member(host).node)))


def _slow(fault: Fault, topology: Topology) -> Iterator[real.InjectedFault]:
    what, names = ",".join(fault.hosts), _names(fault, topology)
    yield real.SlowApplication(what, _at(fault), fault.lasts, names, fault.takes, fault.room)


_MAKE: dict[str, Callable[[Fault, Topology], Iterator[real.InjectedFault]]] = {
    "partition": _partition,
    "flap": _flap,
    "change": _change,
    "crash": _crash,
    "slow": _slow,
}
