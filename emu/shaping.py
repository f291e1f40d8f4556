"""The shape of a link in the kernel: a token bucket (tc-tbf(8)) for the rate, a BPF filter for random loss.

Shapes are planned before anything is started; after they are applied, everything is read back. Loss is at the ingress of the
far end, after segmentation, so each packet is lost on its own. A link that needs more uses netem where the kernel has it
(`emu.netem_qdisc`); else, and for keyed losses, user space carries both directions (`emu.userspace_link`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from emu.netem_qdisc import NetemLink, apply_netem
from emu.requirements import LOSS, run
from emu.size_tables import check_sizes, size_table
from protocols.errors import UnsupportedError
from topologies.channels import Bernoulli, Channel, Perfect
from topologies.impairments import impairment
from topologies.spec import LinkSpec
from topologies.units import format_duration, format_fraction, format_rate

__all__ = [
    "CLASS_BURSTS",
    "LinkShape",
    "UserSpaceLink",
    "apply_loss",
    "apply_rate",
    "kernel_queue",
    "kernel_rate",
    "kernel_shape",
    "netem_shape",
    "redirect",
    "unsupported_by_kernel",
]

_UNLIMITED = 1_000_000
_LONGEST_QUEUE = 2**31 - 1
_RATES = 8.0, 1.25e12
"""Least and most bytes per second of a token bucket: a class of half of a rate has whole bytes, a burst of 1 ms has 32 bits."""
_AFTER_LOSS = 65_000
"""Preference of filters that redirect packets: after the loss of a link, so that lost packets go no further."""
CLASS_BURSTS = "burst 3100 cburst 3100 quantum 1600"
"""Arguments of `tc` for classes that share a rate: two packets at once, and about one packet in each round."""
_CHANCES = ("duplicate", "corrupt", "bit_errors")
_MIN_LOSS = 2**-33
"""Half the resolution of the kernel's random word; lower probabilities round to 0."""
_TWO_PACKETS, _EIGHT_PACKETS = 3100, 12_500


@dataclass(frozen=True, slots=True)
class UserSpaceLink:
    """One direction of a link in user space; `key` and `member` are those of its `Line`."""

    spec: LinkSpec
    key: int
    member: int
    reason: str
    """The attribute that the kernel can't emulate; "" if only the other direction needs user space."""


@dataclass(frozen=True, slots=True)
class LinkShape:
    """One direction of a link: `rate` in bytes per second (inf: no limit), `queue` in packets, `threshold` is loss * 2**32.

    `sizes` is the bucket's size table (`emu.size_tables.size_table`), `least_burst` two packets in its count. With `user` the
    kernel does nothing of it; with `netem` netem does all but the rate.
    """

    link: str
    rate: float = inf
    queue: int = _UNLIMITED
    threshold: int = 0
    sizes: str = ""
    user: UserSpaceLink | None = None
    netem: NetemLink | None = None
    least_burst: int = _TWO_PACKETS

    @property
    def burst(self) -> int:
        """Burst of the token bucket in bytes: at least two packets, 4 ms of a slow rate or 1 ms of a fast one."""
        return round(max(self.least_burst, min(self.rate * 0.004, _EIGHT_PACKETS), self.rate * 0.001))

    @property
    def queue_limit(self) -> int | None:
        """The packets that may wait, for results; None: no limit."""
        return None if self.queue == _UNLIMITED else self.queue

    @property
    def needs_single_packets(self) -> bool:
        """Whether hosts must send packets one by one on this link, not in batches."""
        return self.netem is not None or (self.rate if self.user is None else self.user.spec.rate) < inf

    @property
    def bucket(self) -> str:
        """Arguments of `tc` for the token bucket; "" for no limit."""
        return "" if self.rate == inf else f"tbf rate {round(self.rate * 8)}bit burst {self.burst} limit {2**31 - 1}"

    def report(self) -> dict[str, Any]:
        """Return what was set, in a form for results; only `link` if nothing was."""
        if self.user is not None:
            return impairment(self.link, self.user.spec, "user-space link")
        if self.netem is not None:
            return impairment(self.link, self.netem.spec, "netem") | ({"rate_by": "tbf + pfifo"} if self.rate < inf else {})
        report: dict[str, Any] = {"link": self.link}
        if self.rate < inf:
            report |= {"rate": self.rate, "queue": self.queue_limit, "rate_by": "tbf + pfifo"}
        if self.threshold:
            report |= {"loss": self.threshold / 2**32, "loss_by": "cbpf"}
        return report


def unsupported_by_kernel(spec: LinkSpec, keyed: bool, exact: bool) -> str:
    """Return the first attribute that no token bucket and no filter can emulate, as a user writes it; "" if there is none.

    With `keyed` that includes every loss, because the kernel's random numbers can't be repeated. With `exact` it includes every
    rate, because a packet leaves a token bucket before its transmission time, and not after it.
    """
    if spec.delay or spec.jitter is not None:
        return f"delay {format_duration(spec.delay) if spec.jitter is None else spec.jitter.model}"
    if spec.discipline is not None:
        return f"queue {spec.discipline.model}"
    if spec.without_queue:
        return "queue 0"
    if spec.mtu is not None:
        return f"mtu {spec.mtu}"
    for key in _CHANCES:
        if value := getattr(spec, key):
            return f"{key} {format_fraction(value)}"
    return _loss_unsupported_by_kernel(spec.loss, keyed) or ("exact rate" if exact and spec.rate < inf else "")


def kernel_queue(where: str, queue: int | None) -> int:
    """Return the length in packets of a queue in the kernel; UnsupportedError for one without room, or with too much.

    `where` names the link, router or hub.
    """
    if queue is not None and not 1 <= queue <= _LONGEST_QUEUE:
        raise UnsupportedError(f"{where}: queue {queue} can't be emulated; 1 to {_LONGEST_QUEUE}, or use the simulator")
    return _UNLIMITED if queue is None else queue


def kernel_rate(where: str, rate: float, key: str = "rate") -> float:
    """Return the rate of a token bucket (bytes per second); UnsupportedError for one that no bucket has.

    `where` names the link, router or hub, `key` is the attribute it comes from.
    """
    if not _RATES[0] <= rate <= _RATES[1] and rate != inf:
        least, most = map(format_rate, _RATES)
        raise UnsupportedError(
            f"{where}: {key} can't be emulated, since it makes a token bucket of {format_rate(rate)}; "
            f"the kernel has {least} to {most}, or use the simulator"
        )
    return rate


def _loss_unsupported_by_kernel(loss: Channel, keyed: bool) -> str:
    if isinstance(loss, Perfect) or (isinstance(loss, Bernoulli) and not loss.p):
        return ""
    if not isinstance(loss, Bernoulli):
        return f"loss {loss.model}"
    if keyed:
        return "keyed losses"
    return f"loss {loss.p:g}" if loss.p < _MIN_LOSS else ""


def kernel_shape(link: str, spec: LinkSpec) -> LinkShape:
    """Return the shape of a direction that the kernel can emulate without netem."""
    p = spec.loss.p if isinstance(spec.loss, Bernoulli) else 0.0
    # The threshold has 32 bits, so a loss of 1 passes one packet in 2**32.
    threshold = min(round(p * 2**32), 2**32 - 1)
    where = f"link {link}"
    return LinkShape(link, kernel_rate(where, spec.rate), kernel_queue(where, spec.queue), threshold, size_table(spec.overhead))


def netem_shape(link: str, impaired: NetemLink) -> LinkShape:
    """Return the shape of a direction that netem impairs."""
    return replace(kernel_shape(link, impaired.spec), threshold=0, netem=impaired)


def apply_rate(shape: LinkShape, device: str, pid: int | None) -> None:
    """Limit the rate of `device` or set up netem, and verify that the kernel applied it. Raises UnsupportedError.

    `pid` is a process in the device's network namespace; None is this process's.
    """
    if shape.netem is not None:
        apply_netem(shape.link, shape.netem, shape.bucket, shape.queue, device, pid)
    if shape.rate == inf or shape.netem is not None:
        return
    run(
        f"tc qdisc add dev {device} root handle 1: {shape.sizes} {shape.bucket} && "
        f"tc qdisc add dev {device} parent 1:1 handle 10: pfifo limit {shape.queue}",
        pid=pid,
    )
    reported = {item["kind"]: item["options"] for item in json.loads(run(f"tc -j qdisc show dev {device}", pid=pid))}
    applied, queue = reported.get("tbf", {}), reported.get("pfifo", {})
    if abs(applied.get("rate", 0) - shape.rate) > 0.001 * shape.rate + 1 or queue.get("limit") != shape.queue:
        raise UnsupportedError(f"link {shape.link}: rate {shape.rate:g} B/s was not applied by the kernel: {reported}")
    if shape.sizes:
        check_sizes(shape.link, shape.sizes, device, pid)


def apply_loss(shape: LinkShape, device: str, pid: int | None) -> None:
    """Lose packets that arrive at `device`, and verify that the kernel applied it. Raises UnsupportedError.

    `pid` is a process in the device's network namespace; None is this process's.
    """
    if not shape.threshold:
        return
    run(
        f"tc qdisc add dev {device} clsact && "
        f"tc filter add dev {device} ingress protocol ip bpf da bytecode '{LOSS.format(threshold=shape.threshold)}'",
        pid=pid,
    )
    reported = run(f"tc filter show dev {device} ingress", pid=pid)
    if LOSS.format(threshold=shape.threshold) not in reported or "direct-action" not in reported:
        raise UnsupportedError(f"link {shape.link}: loss was not applied by the kernel: {reported.strip() or 'no filter'}")


def redirect(node: str, ports: Sequence[str], hook: str, device: str, pid: int | None, source: str = "") -> None:
    """Redirect what passes `ports`, at `hook` (ingress or egress), through `device`, and verify it.

    `source` limits it to packets of an IPv4 address. `pid` is a process in the network namespace of the devices; None is this
    process's. Raises UnsupportedError naming `node`.
    """
    protocol, match = ("ip", f"ip src {source}/32") if source else ("all", "u32 0 0")
    rule = f"protocol {protocol} pref {_AFTER_LOSS} u32 match {match} action mirred egress redirect dev {device}"
    for port in ports:
        run(f"tc qdisc replace dev {port} clsact && tc filter add dev {port} {hook} {rule}", pid=pid)
        found = run(f"tc filter show dev {port} {hook}", pid=pid)
        if f"Egress Redirect to device {device})" not in found:
            raise UnsupportedError(f"node {node}: {hook} by {device} was not applied by the kernel: {found.strip()}")
