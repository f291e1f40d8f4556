"""What a link of a Topology becomes in the kernel: a token bucket for the rate, a BPF filter for random loss.

Plans are made before anything is started, so what can't be done is refused first; after setting, everything is read back.
Loss sits at the ingress of the far end, behind the place where super-packets are cut, so each packet is lost on its own.
"""

import json
from dataclasses import dataclass
from math import inf
from typing import Any

from emu.doctor import LOSS, run
from emu.framing import check_sizes, size_table
from protocols.errors import UnsupportedError
from topologies.channels import Bernoulli, Perfect
from topologies.spec import LinkSpec
from topologies.units import format_duration, format_fraction

__all__ = ["Shape", "apply_loss", "apply_rate", "shape_of"]

_UNLIMITED = 1_000_000
_CHANCES = ("duplicate", "corrupt", "bit_errors")
_TWO_PACKETS, _EIGHT_PACKETS = 3100, 12_500


@dataclass(frozen=True, slots=True)
class Shape:
    """One direction of one link. `rate` in bytes per second (inf: untouched), `queue` in packets, `threshold` p * 2**32.

    `sizes` is how the bucket counts bytes, as `emu.framing.size_table` writes it.
    """

    link: str
    rate: float
    queue: int
    threshold: int
    sizes: str = ""

    @property
    def burst(self) -> int:
        """Bytes the bucket may save up to make up for late timers: 4 ms of a slow rate, 1 ms of a fast one, two packets."""
        return round(max(_TWO_PACKETS, min(self.rate * 0.004, _EIGHT_PACKETS), self.rate * 0.001))

    def report(self) -> dict[str, Any]:
        """What was set, in a form for results."""
        report: dict[str, Any] = {"link": self.link}
        if self.rate < inf:
            queue = None if self.queue == _UNLIMITED else self.queue
            report |= {"rate": self.rate, "queue": queue, "rate_by": "tbf + pfifo"}
        if self.threshold:
            report |= {"loss": self.threshold / 2**32, "loss_by": "cbpf"}
        return report


def shape_of(source: str, target: str, spec: LinkSpec) -> Shape:
    """Plan one direction; UnsupportedError naming link and key for what can't be emulated yet."""
    link = f"{source}-{target}"
    for key, value in _beyond(spec).items():
        raise UnsupportedError(
            f"link {link}: {key} {value} can't be emulated yet (it needs netem or a user-space link); "
            f"leave {key} out or run it in the simulator"
        )
    queue = _UNLIMITED if spec.queue is None else spec.queue
    return Shape(link, spec.rate, queue, _threshold(link, spec.loss), size_table(spec.overhead))


def _beyond(spec: LinkSpec) -> dict[str, str]:
    """Attributes that no bucket and no filter can bring about, as a user wrote them."""
    found = {}
    if spec.delay or spec.jitter is not None:
        found["delay"] = format_duration(spec.delay) if spec.jitter is None else spec.jitter.model
    if spec.discipline is not None:
        found["queue"] = spec.discipline.model
    if spec.mtu is not None:
        found["mtu"] = str(spec.mtu)
    return found | {key: format_fraction(value) for key in _CHANCES if (value := getattr(spec, key))}


def _threshold(link: str, loss: object) -> int:
    if isinstance(loss, Perfect):
        return 0
    if not isinstance(loss, Bernoulli):
        model = getattr(loss, "model", type(loss).__name__)
        raise UnsupportedError(
            f"link {link}: loss model {model} can't be emulated yet; bernoulli can, or run it in the simulator"
        )
    threshold = round(loss.p * 2**32)
    if loss.p and not threshold:
        raise UnsupportedError(f"link {link}: loss {loss.p:g} is below the kernel's resolution of {2**-32:g}")
    # A random word is at most 2**32 - 1: "always" is one in four milliards short of always.
    return min(threshold, 2**32 - 1)


def apply_rate(shape: Shape, device: str, pid: int | None) -> None:
    """Limit what leaves by `device` (in the namespace of process `pid`), and make sure that the kernel took it."""
    if shape.rate == inf:
        return
    bucket = f"tbf rate {round(shape.rate * 8)}bit burst {shape.burst} limit {2**31 - 1}"
    run(
        f"tc qdisc add dev {device} root handle 1: {shape.sizes} {bucket} && "
        f"tc qdisc add dev {device} parent 1:1 handle 10: pfifo limit {shape.queue}",
        pid=pid,
    )
    found = {item["kind"]: item["options"] for item in json.loads(run(f"tc -j qdisc show dev {device}", pid=pid))}
    taken, queue = found.get("tbf", {}), found.get("pfifo", {})
    if abs(taken.get("rate", 0) - shape.rate) > 0.001 * shape.rate + 1 or queue.get("limit") != shape.queue:
        raise UnsupportedError(f"link {shape.link}: rate {shape.rate:g} B/s was asked of the kernel and not taken: {found}")
    if shape.sizes:
        check_sizes(shape.link, shape.sizes, device, pid)


def apply_loss(shape: Shape, device: str, pid: int | None) -> None:
    """Lose what arrives at `device` (in the namespace of process `pid`), and make sure that the kernel took it."""
    if not shape.threshold:
        return
    run(
        f"tc qdisc add dev {device} clsact && "
        f"tc filter add dev {device} ingress protocol ip bpf da bytecode '{LOSS.format(threshold=shape.threshold)}'",
        pid=pid,
    )
    found = run(f"tc filter show dev {device} ingress", pid=pid)
    if LOSS.format(threshold=shape.threshold) not in found or "direct-action" not in found:
        raise UnsupportedError(f"link {shape.link}: loss was asked of the kernel and not taken: {found.strip() or 'no filter'}")
