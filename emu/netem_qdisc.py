"""Impair links by netem (tc-netem(8)) on kernels that have it: delay, jitter, random and bursty loss, duplication, corruption.

The rate is limited by a token bucket behind netem, which counts bytes as on any other link. A link whose model netem only
approximates is carried in user space instead.
"""

import json
from dataclasses import dataclass, replace
from math import inf
from subprocess import CalledProcessError
from typing import Any, Literal, TypeAlias

from emu.namespaces import run_isolated
from emu.requirements import run
from emu.size_tables import size_table
from protocols.errors import UnsupportedError
from topologies.channels import GilbertElliott
from topologies.delays import DelayModel, NormalDelay, ParetoDelay, UniformDelay
from topologies.netem import Netem, netem_of
from topologies.spec import LinkSpec

__all__ = ["NetemKind", "NetemLink", "apply_netem", "unsupported_by_netem", "examine_netem"]

NetemKind: TypeAlias = Literal["none", "unseeded", "seeded"]
"""No netem; netem with the kernel's own random numbers; netem whose random numbers are seeded."""
_LIMIT = 1_000_000
"""Most packets inside netem; the link's queue is that of the token bucket."""
_ROOT = "root handle 1: netem"


def examine_netem() -> NetemKind:
    """Return which netem this kernel and its `tc` have, tried in namespaces of their own."""
    kind: NetemKind = run_isolated(_try_netem)
    return kind


def _try_netem() -> NetemKind:
    try:
        run("tc qdisc add dev lo root netem delay 1ms loss gemodel 1% 10% 100% 0%")
    except CalledProcessError:
        return "none"
    try:
        run("tc qdisc del dev lo root && tc qdisc add dev lo root netem loss random 1% seed 1")
    except CalledProcessError:
        return "unseeded"
    return "seeded"


def unsupported_by_netem(spec: LinkSpec) -> str:
    """Return the first attribute of a link that netem can't emulate exactly; "" if there is none."""
    if spec.discipline is not None:
        return f"queue {spec.discipline.model}"
    if spec.without_queue:
        return "queue 0"
    if spec.mtu is not None:
        return f"mtu {spec.mtu}"
    found = _netem_command(spec, "lo")
    return next(iter([*found.missing, *found.notes]), "")


def _netem_command(spec: LinkSpec, device: str) -> Netem:
    """Translate a link to netem, without rate and queue."""
    return netem_of(replace(spec, rate=inf, queue=None), device)


@dataclass(frozen=True, slots=True)
class NetemLink:
    """One direction of a link that netem impairs; `seed` is that of its random numbers, None where netem takes none."""

    spec: LinkSpec
    seed: int | None


def apply_netem(link: str, impaired: NetemLink, bucket: str, queue: int, device: str, pid: int | None) -> None:
    """Impair what leaves by `device` (in the network namespace of process `pid`), and verify that the kernel applied it.

    `bucket` is the token bucket behind netem in the words of `tc`, with a queue of `queue` packets; "" for none. Raises
    UnsupportedError naming the link.
    """
    spec = impaired.spec
    (command,) = _netem_command(spec, device).commands
    seed = "" if impaired.seed is None else f" seed {impaired.seed}"
    run(f"{command.replace(_ROOT, f'root handle 1: {size_table(spec.overhead)} netem')} limit {_LIMIT}{seed}", pid=pid)
    if bucket:
        run(
            f"tc qdisc add dev {device} parent 1:1 handle 2: {bucket} && "
            f"tc qdisc add dev {device} parent 2:1 handle 10: pfifo limit {queue}",
            pid=pid,
        )
    found = {item["kind"]: item["options"] for item in json.loads(run(f"tc -j qdisc show dev {device}", pid=pid))}
    _check(link, spec, found.get("netem", {}))
    applied = found.get("tbf", {}).get("rate", 0), found.get("pfifo", {}).get("limit")
    if bucket and (abs(applied[0] - spec.rate) > 0.001 * spec.rate + 1 or applied[1] != queue):
        raise UnsupportedError(f"link {link}: rate {spec.rate:g} B/s was not applied by the kernel: {found}")


def _check(link: str, spec: LinkSpec, applied: dict[str, Any]) -> None:
    """Raise UnsupportedError for the first attribute that netem does not report as requested."""
    for name, key, requested in _expected(spec):
        value = applied.get(name, {}).get(key)
        if value is None or abs(value - requested) > 1e-6 + 1e-4 * requested:
            raise UnsupportedError(f"link {link}: {name} {requested:g} was not applied by netem: {applied or 'no netem'}")


def _mean(model: DelayModel) -> float:
    """Return the mean in seconds of a delay model that netem supports."""
    if isinstance(model, UniformDelay):
        return (model.least + model.most) / 2
    assert isinstance(model, NormalDelay | ParetoDelay)
    return model.mean


def _expected(spec: LinkSpec) -> list[tuple[str, str, float]]:
    """Return what netem should report: attribute, key within it, value."""
    expected = []
    if spec.jitter is not None:
        expected.append(("delay", "delay", _mean(spec.jitter)))
    elif spec.delay:
        expected.append(("delay", "delay", spec.delay))
    if isinstance(spec.loss, GilbertElliott):
        expected += [("loss-gemodel", key, getattr(spec.loss, key)) for key in ("p", "r")]
    elif spec.loss.rate:
        expected.append(("loss-random", "loss", spec.loss.rate))
    return expected + [(name, name, value) for name in ("duplicate", "corrupt") if (value := getattr(spec, name))]
