"""Hubs in the kernel: a bridge whose ports all pass one `ifb` device with the rate of the medium.

What enters the bridge by any port is redirected through the device, which serves the stations in turn (tc-htb(8)), and then
forwarded. So a packet takes its time on the medium once, and a multicast leaves by all ports.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emu.requirements import run
from emu.shaping import CLASS_BURSTS, LinkShape, kernel_queue, kernel_rate, redirect
from emu.size_tables import check_sizes, size_table
from protocols.errors import UnsupportedError
from topologies.node_models import SwitchModel
from topologies.spec import Topology

__all__ = ["FEATURES", "HubShape", "apply_hub", "hub_shape"]

FEATURES = ["ifb", "redirect", "classes"]
"""Names of the kernel features that a hub needs (`emu.requirements`)."""

_MOST_STATIONS = 1000
"""Most stations, since a classic BPF program has 4096 steps."""
_FIRST = 2
"""Class of the first station; 1 is the medium, and the last is for packets of which the source address is not known."""


@dataclass(frozen=True, slots=True)
class HubShape:
    """A hub: the rate and the queues of its medium, and for each station the MAC addresses that send from there."""

    name: str
    medium: LinkShape
    stations: tuple[tuple[str, ...], ...]

    def report(self) -> dict[str, Any]:
        """Return what was set, in a form for results."""
        queue = self.medium.queue_limit
        return {"node": self.name, "hub": True, "rate": self.medium.rate, "queue": queue, "rate_by": "ifb + htb"}


def hub_shape(topology: Topology, name: str, stations: Sequence[Sequence[str]]) -> HubShape:
    """Plan a hub. Raises UnsupportedError naming node and attribute for what can't be emulated."""
    model = topology.node(name).model
    assert isinstance(model, SwitchModel)
    assert model.rate is not None
    if len(stations) > _MOST_STATIONS:
        raise UnsupportedError(f"node {name}: a hub of {len(stations)} links can't be emulated; {_MOST_STATIONS} at most")
    overheads = {topology.link(near, name).overhead for near in topology.graph.predecessors(name)}
    if len(overheads) > 1:
        found = ", ".join(sorted(map(str, overheads)))
        raise UnsupportedError(f"node {name}: links of different overhead into a hub can't be emulated: {found}")
    queue, rate = kernel_queue(f"node {name}", model.queue), kernel_rate(f"node {name}", model.rate)
    return HubShape(name, LinkShape(name, rate, queue, 0, size_table(overheads.pop())), tuple(map(tuple, stations)))


def apply_hub(hub: HubShape, ports: Sequence[str], device: str) -> None:
    """Redirect what enters the `ports` of a bridge in this namespace through the new `device`, and verify it.

    Raises UnsupportedError naming the hub.
    """
    run(f"ip link add {device} type ifb && ip link set {device} up")
    _share_medium(hub, device)
    redirect(hub.name, ports, "ingress", device, None)


def _share_medium(hub: HubShape, device: str) -> None:
    """Give each station a queue: those that wait share the rate equally, and one alone has all of it."""
    medium = hub.medium
    classes = range(_FIRST, _FIRST + len(hub.stations) + 1)
    rate, share = round(medium.rate * 8), max(8, round(medium.rate * 8 / len(classes)))
    medium_burst = f"burst {medium.burst} cburst {medium.burst}"
    lines = [
        f"qdisc add dev {device} root handle 1: {medium.sizes} htb default {classes[-1]:x}",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit {medium_burst}",
    ]
    for number in classes:
        lines.append(
            f"class add dev {device} parent 1:1 classid 1:{number:x} htb rate {share}bit ceil {rate}bit {CLASS_BURSTS}"
        )
        lines.append(f"qdisc add dev {device} parent 1:{number:x} handle {number + 1:x}: pfifo limit {medium.queue}")
    code = _classifier(hub.stations)
    lines.append(f'filter add dev {device} parent 1: protocol all bpf bytecode "{code}"')
    run("tc -batch -", stdin="\n".join(lines))
    check_sizes(medium.link, medium.sizes, device, None)
    rows = json.loads(run(f"tc -j qdisc show dev {device}"))
    queues = [row["options"]["limit"] for row in rows if row["kind"] == "pfifo"]
    found = run(f"tc class show dev {device}").count("class htb 1:")
    filters = run(f"tc filter show dev {device} parent 1:")
    if queues != [medium.queue] * len(classes) or found != len(classes) + 1 or code not in filters:
        raise UnsupportedError(f"node {hub.name}: rate {medium.rate:g} B/s was not applied by the kernel: {rows}")


def _classifier(stations: Sequence[Sequence[str]]) -> str:
    """Return classic BPF that finds the class of a packet by the last four bytes of its source MAC address."""
    steps = ["32 0 0 8"]
    for number, addresses in enumerate(stations):
        for address in addresses:
            steps += [f"21 0 1 {int(address.replace(':', '')[4:], 16)}", f"6 0 0 {0x10000 + _FIRST + number}"]
    steps.append("6 0 0 4294967295")
    return f"{len(steps)},{','.join(steps)}"
