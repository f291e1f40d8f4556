"""What a link of a Topology becomes: in the kernel a token bucket for the rate and a BPF filter for random loss.

Plans are made before anything is started; after setting, everything is read back. In the kernel, loss sits at the ingress of
the far end, behind the place where super-packets are cut, so each packet is lost on its own. A link that asks for more is left
to netem where the kernel has it (`emu.netem_qdisc`); else, and for losses that repeat, it is carried in user space
(`emu.userspace_link`), both
directions together.
"""

import json
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
from topologies.units import format_duration, format_fraction

__all__ = ["LinkShape", "UserSpaceLink", "apply_loss", "apply_rate", "unsupported_by_kernel", "kernel_shape", "netem_shape"]

_UNLIMITED = 1_000_000
_CHANCES = ("duplicate", "corrupt", "bit_errors")
_MIN_LOSS = 2**-33
"""Half the resolution of the kernel's random word: less would be none."""
_TWO_PACKETS, _EIGHT_PACKETS = 3100, 12_500


@dataclass(frozen=True, slots=True)
class UserSpaceLink:
    """One direction of a link that user space carries: its `Line` has this key and this place in a counted group."""

    spec: LinkSpec
    key: int
    member: int
    reason: str
    """The attribute that the kernel can't bring about."""


@dataclass(frozen=True, slots=True)
class LinkShape:
    """One direction of one link. `rate` in bytes per second (inf: untouched), `queue` in packets, `threshold` p * 2**32.

    `sizes` is how the bucket counts bytes, as `emu.size_tables.size_table` writes it; `least_burst` is two packets, counted so.
    With `user` the kernel does nothing of it; with `netem` netem does all but the rate.
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
        """Bytes the bucket may save up to make up for late timers: 4 ms of a slow rate, 1 ms of a fast one, two packets."""
        return round(max(self.least_burst, min(self.rate * 0.004, _EIGHT_PACKETS), self.rate * 0.001))

    @property
    def needs_single_packets(self) -> bool:
        """Has the link to see packets one by one as they leave a host?"""
        return self.netem is not None or (self.rate if self.user is None else self.user.spec.rate) < inf

    @property
    def bucket(self) -> str:
        """Words for `tc` by which the kernel limits the rate; "" for no limit."""
        return "" if self.rate == inf else f"tbf rate {round(self.rate * 8)}bit burst {self.burst} limit {2**31 - 1}"

    def report(self) -> dict[str, Any]:
        """What was set, in a form for results; only `link` where nothing was."""
        if self.user is not None:
            return impairment(self.link, self.user.spec, "user-space link")
        if self.netem is not None:
            return impairment(self.link, self.netem.spec, "netem") | ({"rate_by": "tbf + pfifo"} if self.rate < inf else {})
        report: dict[str, Any] = {"link": self.link}
        if self.rate < inf:
            queue = None if self.queue == _UNLIMITED else self.queue
            report |= {"rate": self.rate, "queue": queue, "rate_by": "tbf + pfifo"}
        if self.threshold:
            report |= {"loss": self.threshold / 2**32, "loss_by": "cbpf"}
        return report


def unsupported_by_kernel(spec: LinkSpec, keyed: bool) -> str:
    """The first attribute that no bucket and no filter can bring about, as a user wrote it; "" if there is none.

    With `keyed` losses these are never the kernel's, whose random numbers can't be repeated.
    """
    if spec.delay or spec.jitter is not None:
        return f"delay {format_duration(spec.delay) if spec.jitter is None else spec.jitter.model}"
    if spec.discipline is not None:
        return f"queue {spec.discipline.model}"
    if spec.mtu is not None:
        return f"mtu {spec.mtu}"
    for key in _CHANCES:
        if value := getattr(spec, key):
            return f"{key} {format_fraction(value)}"
    return _loss_unsupported_by_kernel(spec.loss, keyed)


def _loss_unsupported_by_kernel(loss: Channel, keyed: bool) -> str:
    if isinstance(loss, Perfect) or (isinstance(loss, Bernoulli) and not loss.p):
        return ""
    if not isinstance(loss, Bernoulli):
        return f"loss {loss.model}"
    if keyed:
        return "keyed losses"
    return f"loss {loss.p:g}" if loss.p < _MIN_LOSS else ""


def kernel_shape(link: str, spec: LinkSpec) -> LinkShape:
    """One direction of a link that the kernel can do alone."""
    p = spec.loss.p if isinstance(spec.loss, Bernoulli) else 0.0
    # A random word is at most 2**32 - 1: "always" is one in four milliards short of always.
    threshold = min(round(p * 2**32), 2**32 - 1)
    return LinkShape(link, spec.rate, _UNLIMITED if spec.queue is None else spec.queue, threshold, size_table(spec.overhead))


def netem_shape(link: str, impaired: NetemLink) -> LinkShape:
    """One direction of a link that the kernel can do with netem."""
    return replace(kernel_shape(link, impaired.spec), threshold=0, netem=impaired)


def apply_rate(shape: LinkShape, device: str, pid: int | None) -> None:
    """Limit what leaves by `device` (in the namespace of process `pid`), and make sure that the kernel took it; netem too."""
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
        raise UnsupportedError(f"link {shape.link}: rate {shape.rate:g} B/s was asked of the kernel and not taken: {reported}")
    if shape.sizes:
        check_sizes(shape.link, shape.sizes, device, pid)


def apply_loss(shape: LinkShape, device: str, pid: int | None) -> None:
    """Lose what arrives at `device` (in the namespace of process `pid`), and make sure that the kernel took it."""
    if not shape.threshold:
        return
    run(
        f"tc qdisc add dev {device} clsact && "
        f"tc filter add dev {device} ingress protocol ip bpf da bytecode '{LOSS.format(threshold=shape.threshold)}'",
        pid=pid,
    )
    reported = run(f"tc filter show dev {device} ingress", pid=pid)
    if LOSS.format(threshold=shape.threshold) not in reported or "direct-action" not in reported:
        raise UnsupportedError(
            f"link {shape.link}: loss was asked of the kernel and not taken: {reported.strip() or 'no filter'}"
        )
