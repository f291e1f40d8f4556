"""Conversion of a LinkSpec to the Linux `tc` commands that come nearest to it, with notes on the differences."""

from dataclasses import dataclass, field
from math import inf
from typing import Any, assert_never

from topologies.channels import Bernoulli, Channel, GilbertElliott, Perfect, Recorded
from topologies.delays import DelayModel, NormalDelay, ParetoDelay, UniformDelay
from topologies.queues import Codel, Discipline, DropTail, Priority, Red, TokenBucket
from topologies.service_classes import DEFAULT_RANK, RANKS, rank_of
from topologies.spec import LinkSpec

__all__ = ["Netem", "netem_of"]

_NETEM_LIMIT = 1000
_UNLIMITED = 1_000_000
_MTU_ON_THE_LINE = 1514


@dataclass(slots=True)
class Netem:
    """The `commands` for one direction; `notes` on differences in behaviour, `missing` for what tc doesn't support."""

    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def netem_of(spec: LinkSpec, device: str) -> Netem:
    """Return the commands for packets sent on `device`."""
    found = Netem()
    words = [*_limit(spec), *_delay(spec, found), *_loss(spec.loss, found)]
    for name in ("duplicate", "corrupt"):
        value = getattr(spec, name)
        words += [name, _percent(value)] if value else []
    if spec.bit_errors:
        found.missing.append(f"bit_errors {spec.bit_errors:g}: netem corrupts packets, not bits; use corrupt")
    if spec.mtu is not None:
        found.commands.append(f"ip link set dev {device} mtu {spec.mtu}")
    if spec.rate < inf and not isinstance(spec.discipline, TokenBucket):
        words += ["rate", f"{round(spec.rate * 8)}bit"]
    # Without `limit`, netem queues 1000 packets.
    found.commands.append(" ".join((f"tc qdisc add dev {device} root handle 1: netem", *words)))
    if spec.discipline is not None:
        _queue(spec.discipline, spec, device, found)
    return found


def _percent(value: float) -> str:
    return f"{value * 100:.6g}%"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.6g}ms"


def _limit(spec: LinkSpec) -> list[str]:
    if spec.discipline is not None or spec.rate == inf:
        return []
    wanted = _UNLIMITED if spec.queue is None else spec.queue + 1
    return [] if wanted == _NETEM_LIMIT else ["limit", str(wanted)]


def _delay(spec: LinkSpec, found: Netem) -> list[str]:
    model = spec.jitter
    if model is None:
        return ["delay", _time(spec.delay)] if spec.delay else []
    if model.order == "fifo" and spec.rate == inf:
        found.notes.append("netem reorders packets if the delay varies")
    words = _distribution(model, found)
    if not words:
        found.missing.append(f"delay {model.model}: netem doesn't support this distribution")
    return words


def _distribution(model: DelayModel, found: Netem) -> list[str]:
    if isinstance(model, UniformDelay):
        return ["delay", _time((model.least + model.most) / 2), _time((model.most - model.least) / 2)]
    if isinstance(model, NormalDelay):
        return ["delay", _time(model.mean), _time(model.sd), "distribution", "normal"]
    if isinstance(model, ParetoDelay) and model.shape > 2:
        excess = model.mean - model.least
        sd = excess * (model.shape / (model.shape - 2)) ** 0.5
        found.notes.append("netem's pareto is a table of a fixed shape; mean and standard deviation are those of the model")
        return ["delay", _time(model.mean), _time(sd), "distribution", "pareto"]
    return []


def _loss(channel: Channel, found: Netem) -> list[str]:
    if isinstance(channel, Perfect) or (channel.plain and not channel.rate):
        return []
    if isinstance(channel, Bernoulli):
        return ["loss", "random", _percent(channel.p)]
    if isinstance(channel, Recorded) and 0 < channel.rate < 1:
        found.notes.append("netem can't replay a recording; this is the Gilbert model with the same loss rate and mean burst")
        channel = _gilbert(channel)
    if isinstance(channel, GilbertElliott):
        values: list[Any] = [channel.p, channel.r, channel.loss_bad, channel.loss_good]
        return ["loss", "gemodel", *map(_percent, values)]
    found.missing.append(f"loss {channel.model}: netem doesn't support this loss; links in user space do")
    return []


def _gilbert(recorded: Recorded) -> GilbertElliott:
    """Return the Gilbert model with the loss rate and the mean burst of a recording; as that is repeated, its ends meet."""
    lost = [number & 1 for number, length in enumerate(recorded.runs) if length]
    bursts = sum(after > before for before, after in zip([lost[-1], *lost], lost, strict=False))
    return GilbertElliott(p=bursts / sum(recorded.runs[::2]), r=bursts / sum(recorded.runs[1::2]))


def _queue(model: Discipline, spec: LinkSpec, device: str, found: Netem) -> None:
    """Add a child qdisc for the queue; netem then only delays and loses."""
    if isinstance(model, (DropTail, TokenBucket)) and model.bytes is not None and model.packets is not None:
        found.missing.append(f"packets {model.packets}: the kernel's queue has one limit, here that of bytes")
    begin = f"tc qdisc add dev {device} parent 1: handle 10:"
    if isinstance(model, Codel):
        ecn = " ecn" if model.ecn else ""
        found.commands.append(
            f"{begin} codel limit {model.packets} target {_time(model.target)} interval {_time(model.interval)}{ecn}"
        )
    elif isinstance(model, DropTail):
        kind, limit = ("bfifo", model.bytes) if model.bytes is not None else ("pfifo", model.packets)
        found.commands.append(f"{begin} {kind} limit {limit if limit is not None else _UNLIMITED}")
    elif isinstance(model, TokenBucket):
        limit = _UNLIMITED * _MTU_ON_THE_LINE if model.packets is None else model.packets * _MTU_ON_THE_LINE
        limit = limit if model.bytes is None else model.bytes
        found.commands.append(f"{begin} tbf rate {round(spec.rate * 8)}bit burst {model.burst} limit {limit}")
    elif isinstance(model, Priority):
        found.notes.append("prio here tells the classes of IPv4 packets apart, all others are of the default one")
        found.commands += _bands(begin, device, _UNLIMITED if model.packets is None else model.packets)
    elif isinstance(model, Red):
        sizes = [count * _MTU_ON_THE_LINE for count in (model.packets, model.least, model.most)]
        burst = (2 * model.least + model.most) // 3 + 1
        ecn = " ecn" if model.ecn else ""
        rate = f" bandwidth {round(spec.rate * 8)}bit" if spec.rate < inf else ""
        found.notes.append(f"red counts bytes: thresholds are for packets of {_MTU_ON_THE_LINE} bytes")
        found.commands.append(
            f"{begin} red limit {sizes[0]} min {sizes[1]} max {sizes[2]} avpkt {_MTU_ON_THE_LINE} burst {burst} "
            f"probability {model.p:g}{rate}{ecn}"
        )
    else:
        assert_never(model)


def _bands(begin: str, device: str, packets: int) -> list[str]:
    """Return the commands for a band of each rank, the highest first, and for filters that tell the classes apart."""
    default = RANKS - 1 - DEFAULT_RANK
    commands = [f"{begin} prio bands {RANKS} priomap {' '.join([str(default)] * 16)}"]
    for band in range(1, RANKS + 1):
        commands.append(f"tc qdisc add dev {device} parent 10:{band:x} handle {band + 10}0: pfifo limit {packets}")
    # Most classes rank by their first three bits, whose filters come behind those of the others.
    filters = [(1, dscp, 0xFC) for dscp in range(64) if rank_of(dscp) != rank_of(dscp & 56 | 2)]
    filters += [(2, precedence << 3, 0xE0) for precedence in range(1, 8)]
    for order, dscp, mask in filters:
        rank = rank_of(dscp if mask == 0xFC else dscp | 2)
        match = f"u32 match ip dsfield {dscp << 2:#04x} {mask:#04x}"
        commands.append(f"tc filter add dev {device} parent 10: protocol ip prio {order} {match} flowid 10:{RANKS - rank:x}")
    return commands
