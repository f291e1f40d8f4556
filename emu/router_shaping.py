"""Router models in the kernel: one Ethernet adapter for all networks of a router (`mac: single`), and processing time.

What passes the adapter is redirected through an `ifb` device with the adapter's rate. With half duplex both directions share
one device and are served in turn; with full duplex each has its own. The adapter is the end of a trunk (`emu.trunk`), or all
ports together on kernels that support none. `mac: dual` needs nothing here: its links have rates.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emu.queue_counts import QueueCounts, count_queues
from emu.requirements import run
from emu.shaping import CLASS_BURSTS, LinkShape, apply_rate, kernel_queue, kernel_rate, redirect
from emu.size_tables import check_sizes, cost_table, size_table
from emu.trunk import FEATURES, WRAPPING, TrunkKind
from protocols.errors import UnsupportedError
from topologies.node_models import RouterModel
from topologies.units import format_duration

__all__ = ["RouterShape", "apply_router", "count_router", "router_shape"]

_LARGEST_PAYLOAD = 1472
_KERNEL_COST = 10e-6
"""Seconds: about what the kernel needs to forward a packet, so lower costs can't be told from 0."""
_CLASSES = "6,32 0 0 6,21 0 3 {first},40 0 0 10,21 0 1 {last},6 0 0 65568,6 0 0 65552"
"""Classic BPF: class 1:20 for packets whose source MAC is the router's (compared as 4 and 2 bytes), else 1:10."""
_INWARD, _OUTWARD = 10, 20
"""The classes of an adapter with half duplex."""


@dataclass(frozen=True, slots=True)
class RouterShape:
    """Processing time and adapter of a router; `cpu` and `cpu_byte` are seconds per packet and per byte of payload.

    `processor` is their token bucket, None if the cost is negligible. With one MAC, `adapter` is its rate and queue, and
    `trunk` the encapsulation of its networks on one cable.
    """

    name: str
    cpu: float = 0.0
    cpu_byte: float = 0.0
    processor: LinkShape | None = None
    duplex: str | None = None
    adapter: LinkShape | None = None
    trunk: TrunkKind = "ifb"

    @property
    def features(self) -> list[str]:
        """Names of the kernel features needed (`emu.requirements`)."""
        if self.processor is None and self.adapter is None:
            return []
        return ["ifb", "redirect", "classes" if self.duplex == "half" else "rate", *FEATURES[self.trunk]]

    def report(self) -> dict[str, Any]:
        """Return what impairs the router, in a form for results; only its name if nothing does."""
        report: dict[str, Any] = {"node": self.name}
        if self.cpu or self.cpu_byte:
            by = "the kernel's own forwarding" if self.processor is None else "ifb + tbf"
            report |= {"cpu": self.cpu, "cpu_byte": self.cpu_byte, "cpu_by": by}
        if self.adapter is not None:
            by = "ifb + htb" if self.duplex == "half" else "ifb + tbf"
            report |= {"duplex": self.duplex, "rate": self.adapter.rate, "rate_by": by, "trunk": self.trunk}
        shape = self.adapter or self.processor
        if shape is not None:
            report["queue"] = shape.queue_limit
        return report


def router_shape(name: str, model: RouterModel | None, trunk: TrunkKind = "ifb") -> RouterShape:
    """Plan a router, with this kind of trunk if it has one MAC.

    Raises UnsupportedError naming node and attribute for what can't be emulated.
    """
    if model is None:
        return RouterShape(name)
    queue = kernel_queue(f"node {name}", model.queue)
    cost = model.cpu + model.cpu_byte * _LARGEST_PAYLOAD
    if model.mac == "dual":
        processor = _processor_shape(name, model.cpu, model.cpu_byte, queue) if cost > _KERNEL_COST else None
        return RouterShape(name, model.cpu, model.cpu_byte, processor)
    if cost > _KERNEL_COST:
        raise UnsupportedError(
            f"node {name}: cpu can't be emulated for a router of mac single when a packet takes {format_duration(cost)}; "
            f"{format_duration(_KERNEL_COST)} at most, which the kernel's forwarding takes, or use the simulator"
        )
    assert model.rate is not None
    adapter = LinkShape(name, kernel_rate(f"node {name}", model.rate), queue, 0, size_table("ethernet-802.1q", WRAPPING[trunk]))
    return RouterShape(name, model.cpu, model.cpu_byte, None, model.duplex, adapter, trunk)


def _processor_shape(name: str, per_packet: float, per_byte: float, queue: int) -> LinkShape:
    sizes, rate, largest = cost_table(per_packet, per_byte)
    key = "cpu_byte" if per_byte else "cpu"
    return LinkShape(name, kernel_rate(f"node {name}", rate, key), queue, 0, sizes, least_burst=2 * largest)


def apply_router(router: RouterShape, ports: Sequence[str], mac: str, pid: int, machine: str = "") -> None:
    """Redirect what passes the `ports` (in the network namespace of process `pid`) through the router's buckets, and verify it.

    `mac` is the address of its adapter, if it has only one, `machine` the IPv4 address of its own machine (empty: none), whose
    packets do not come in by a port. Raises UnsupportedError naming the router.
    """
    if router.processor is not None:
        _add_bucket(router.processor, "cpu", pid)
        redirect(router.name, ports, "ingress", "cpu", pid)
        if machine:
            redirect(router.name, ports, "egress", "cpu", pid, machine)
    elif router.adapter is not None and router.duplex == "half":
        _add_device("mac", pid)
        _share_rate(router.adapter, "mac", mac, pid)
        redirect(router.name, ports, "ingress", "mac", pid)
        redirect(router.name, ports, "egress", "mac", pid)
    elif router.adapter is not None:
        for hook, device in (("ingress", "macin"), ("egress", "macout")):
            _add_bucket(router.adapter, device, pid)
            redirect(router.name, ports, hook, device, pid)


def count_router(router: RouterShape, pid: int, sent: int) -> QueueCounts | None:
    """Return the packets offered to a router and those dropped, also on the way out; None without a bucket.

    `sent` is how many of them its own machine sent.
    """
    if router.processor is not None:
        # What its machine sends passes the processor.
        return count_queues("cpu", pid)
    if router.adapter is None:
        return None
    if router.duplex == "half":
        inward, outward = (count_queues("mac", pid, f"{number}:") for number in (_INWARD, _OUTWARD))
    else:
        inward, outward = count_queues("macin", pid), count_queues("macout", pid)
    return inward[0] + sent, inward[1] + outward[1]


def _add_device(device: str, pid: int) -> None:
    # Packets wait in the root qdisc of the device.
    run(f"ip link add {device} type ifb && ip link set {device} up", pid=pid)


def _add_bucket(shape: LinkShape, device: str, pid: int) -> None:
    _add_device(device, pid)
    apply_rate(shape, device, pid)


def _share_rate(adapter: LinkShape, device: str, mac: str, pid: int) -> None:
    """Give each direction a queue of its own: while both wait each has half the rate, else one has all of it (tc-htb(8))."""
    rate, half = round(adapter.rate * 8), round(adapter.rate * 4)
    digits = mac.replace(":", "")
    code = _CLASSES.format(first=int(digits[:8], 16), last=int(digits[8:], 16))
    add = f"tc class add dev {device} parent"
    commands = [
        f"tc qdisc add dev {device} root handle 1: {adapter.sizes} htb default 10",
        f"{add} 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {adapter.burst} cburst {adapter.burst}",
    ]
    for place in (_INWARD, _OUTWARD):
        commands.append(f"{add} 1:1 classid 1:{place} htb rate {half}bit ceil {rate}bit {CLASS_BURSTS}")
        commands.append(f"tc qdisc add dev {device} parent 1:{place} handle {place}: pfifo limit {adapter.queue}")
    commands.append(f"tc filter add dev {device} parent 1: protocol all bpf bytecode '{code}'")
    run(" && ".join(commands), pid=pid)
    check_sizes(adapter.link, adapter.sizes, device, pid)
    rows = json.loads(run(f"tc -j qdisc show dev {device}", pid=pid))
    queues = [row["options"]["limit"] for row in rows if row["kind"] == "pfifo"]
    classes = run(f"tc class show dev {device}", pid=pid).count("class htb 1:")
    if queues != [adapter.queue] * 2 or classes != 3 or code not in run(f"tc filter show dev {device} parent 1:", pid=pid):
        raise UnsupportedError(f"node {adapter.link}: rate {adapter.rate:g} B/s was not applied by the kernel: {rows}")
