"""Rules of every protocol that sends files or messages at a rate: time, rate, MTU, scope and load."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, inf
from typing import Any

from experiments.doctor.finding import COST, PROBLEM, Finding
from experiments.doctor.session_facts import HEADER, LostWays, SessionFacts
from experiments.output.counted import counted
from experiments.scenario.scenario import Scenario
from protocols.arq.config import AConfig
from topologies.generators import AnyTopology
from topologies.names import first_names
from topologies.spec import LinkAttributes, LinkSpec
from topologies.units import format_duration, format_rate, format_size

__all__ = [
    "NETWORK_RULES",
    "feedback_of_none",
    "is_adaptive",
    "load_above_rate",
    "loss_of_all",
    "published_by",
    "quoted",
    "rate_of",
    "rounded_up",
    "sending_time",
]

_SPARE = 0.9
"""Share of the narrowest link that a sender should use at the most."""
_SLOWEST = 8
"""Bits per second that a sender has to send at the least."""
_DIGITS = 2
_SMALLER = {"loss": "1%", "corrupt": "1%", "bit_errors": "1e-7"}
"""Small probabilities to be set for the attributes of a link that make it lose every packet."""
_IP_UDP = 28
"""Bytes of the headers of IPv4 and UDP."""
_NAMED = 3
"""Hosts or links that a finding names."""
_MANY_ROUTERS = 64
"""A TTL that is enough for every network that is built here."""


def is_adaptive(scenario: Scenario) -> bool:
    """Return whether congestion control finds the rate."""
    return str(getattr(scenario.protocol.config, "congestion", "none")) != "none"


def rate_of(scenario: Scenario) -> float:
    """Return the rate of the protocol in bytes of UDP payload per second, the highest one; inf where it has none."""
    return float(getattr(scenario.protocol.config, "rate_max" if is_adaptive(scenario) else "rate", inf))


def rounded_up(value: float) -> float:
    """Return the value rounded up to two significant digits."""
    power = 10 ** (len(str(int(value))) - _DIGITS) if value >= 1 else 10.0**-6
    return ceil(value / power * (1 - 1e-9)) * power


def quoted(seconds: float) -> str:
    """Format seconds with three digits for people: 1274.4 is "21 min"."""
    if seconds == inf:
        return "for ever"
    if seconds >= 120:
        return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def sending_time(scenario: Scenario, facts: SessionFacts) -> float:
    """Return the seconds that it takes to send everything once at the rate of the protocol."""
    rate = rate_of(scenario)
    return facts.octets * (1 + HEADER / scenario.segment) / (min(rate, facts.rate) if is_adaptive(scenario) else rate)


def loss_of_all(scenario: Scenario, lost: LostWays) -> Iterator[Finding]:
    """Judge the ways to receivers or subscribers: on some, every packet is lost."""
    if lost.nodes:
        implies = f"every packet of content to {first_names(lost.nodes, _NAMED)} is lost on the way"
        yield _loss_finding("loss-of-all", scenario, lost, implies, ", whatever else is set")


def feedback_of_none(scenario: Scenario, facts: SessionFacts) -> Iterator[Finding]:
    """Judge the ways back: on some, every packet is lost, and the protocol needs one."""
    config = scenario.protocol.config
    # A's sender waits for each ACK; of the others only those that lost something send what a sender waits for.
    needs_feedback = facts.is_lossy and "none" not in (getattr(config, "feedback", ""), getattr(config, "nacking", ""))
    is_acked = type(config) is AConfig
    if facts.unheard.nodes and (needs_feedback or is_acked):
        implies = f"every {'ACK' if is_acked else 'NACK'} of {first_names(facts.unheard.nodes, _NAMED)} is lost on the way back"
        result = (
            ": the sender stops when its window is full"
            if is_acked
            else ": what they miss is repaired only if others request it"
        )
        yield _loss_finding("feedback-of-none", scenario, facts.unheard, implies, result)


def _loss_finding(rule: str, scenario: Scenario, lost: LostWays, implies: str, result: str) -> Finding:
    """Return a finding about links that lose every packet."""
    settings = dict(_settings(scenario.topology, [cause for spec in lost.links.values() for cause in _causes(spec)]))
    key = next(iter(settings), "topology")
    value = settings.get(key, "100%")
    implies = f"{implies} (link {first_names(lost.links, _NAMED)}){result}"
    changes = {key: _SMALLER[key.rpartition(".")[2]] for key in settings}
    return Finding(rule, PROBLEM, key, value, implies, f"less than that, such as {changes.get(key, '1%')}", changes)


def _causes(spec: LinkSpec) -> list[tuple[str, object]]:
    """Return the attributes by which a link loses every packet, with their values."""
    causes: list[tuple[str, object]] = []
    if spec.loss.rate >= 1:
        causes.append(("loss", spec.loss))
    if spec.corrupt >= 1:
        causes.append(("corrupt", spec.corrupt))
    return causes or [("bit_errors", spec.bit_errors)]


def _settings(topology: AnyTopology, causes: Sequence[tuple[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield the keys that set one of these attributes, as `--set` takes them, with their values."""
    for name in type(topology).model_fields:
        value = getattr(topology, name)
        listed = {f"{name}.{n}": edge for n, edge in enumerate(value)} if isinstance(value, tuple) else {name: value}
        for key, link in listed.items():
            if isinstance(link, LinkAttributes):
                sides = {f"{key}.down": link.down, f"{key}.up": link.up, key: link}
                for (side, written), (attribute, found) in product(sides.items(), causes):
                    if written and getattr(written, attribute) == found:
                        yield f"topology.{side}.{attribute}", f"{found:g}" if attribute == "bit_errors" else "100%"


def _rate_below_duration(scenario: Scenario, facts: SessionFacts) -> Iterator[Finding]:
    rate, begin = rate_of(scenario), min(work.at for work in facts.works)
    needed = sending_time(scenario, facts)
    left = scenario.duration - begin
    if rate == inf or needed < left:
        return
    implies = (
        f"{format_rate(rate)} means {quoted(needed)} for {format_size(facts.octets)}, and the run ends after {quoted(left)}"
    )
    faster = rounded_up(1.5 * rate * needed / left * 8) / 8 if left > 0 and not is_adaptive(scenario) else inf
    if faster <= _SPARE * facts.rate:
        advice, changes = f"send at {format_rate(faster)}", {"protocol.rate": format_rate(faster)}
    else:
        longer = format_duration(rounded_up(begin + 1.5 * needed))
        advice, changes = f"give the run {longer}", {"duration": longer}
    yield Finding("rate-below-duration", PROBLEM, "protocol.rate", format_rate(rate), implies, advice, changes)


def _rate_above_link(scenario: Scenario, facts: SessionFacts) -> Iterator[Finding]:
    rate = rate_of(scenario)
    if rate == inf or rate <= facts.rate or is_adaptive(scenario):
        return
    lost = 1 - facts.rate / rate
    implies = (
        f"link {facts.narrowest} carries {format_rate(round(facts.rate * 8) / 8)} of it: its queue grows, "
        f"and {lost:.0%} of the packets are dropped when it is full"
    )
    bits = int(_SPARE * facts.rate * 8)
    slower = format_rate((bits - bits % 1000 if bits >= 1000 else max(bits, _SLOWEST)) / 8)
    changes = {"protocol.rate": slower}
    yield Finding("rate-above-link", COST, "protocol.rate", format_rate(rate), implies, f"send at {slower}", changes)


def _segment_above_mtu(scenario: Scenario, facts: SessionFacts) -> Iterator[Finding]:
    size = scenario.segment + HEADER + _IP_UDP
    if facts.mtu is None or size <= facts.mtu or not hasattr(scenario.protocol.config, "segment"):
        return
    frames = ceil(size / facts.mtu)
    # A packet is damaged once, but each of its fragments can be lost.
    loss = 1 - (1 - facts.loss) * (1 - facts.fragment_loss) ** (frames - 1)
    fragments = f"each packet is {frames} fragments at an MTU of {facts.mtu}"
    implies = f"{fragments}; one lost loses all: {loss:.1%} in place of {facts.loss:.1%}"
    fits = (facts.mtu - HEADER - _IP_UDP) // 8 * 8
    changes = {"protocol.segment": str(fits)}
    advice = f"a segment of {fits} bytes"
    yield Finding("segment-above-mtu", COST, "protocol.segment", str(scenario.segment), implies, advice, changes)


def _ttl_below_path(scenario: Scenario, facts: SessionFacts) -> Iterator[Finding]:
    if not facts.out_of_scope or facts.ttl is None:
        return
    named = any(work.members for work in facts.works)
    some = first_names(facts.out_of_scope, _NAMED)
    what = "where nothing arrives" if named else "which the session leaves out"
    implies = f"more routers than that are on the way to {counted(len(facts.out_of_scope), 'host')} ({some}), {what}"
    numbers = [n for n, work in enumerate(scenario.workload) if work in facts.works]
    keys = ["workload.ttl"] if len(scenario.workload) == 1 else [f"workload.{n}.ttl" for n in numbers]
    changes = dict.fromkeys(keys, str(_MANY_ROUTERS))
    advice = f"a TTL of {_MANY_ROUTERS}"
    yield Finding("ttl-below-path", PROBLEM if named else COST, keys[0], str(facts.ttl), implies, advice, changes)


def published_by(scenario: Scenario) -> tuple[str, float, float]:
    """Return the host that publishes most, as far as the workload limits it: its name, messages and bytes per second.

    The bytes are those of UDP payload; zeros if nobody publishes at a limited rate.
    """
    topology = scenario.build_topology()
    offered: dict[str, tuple[float, float]] = {}
    for work in scenario.publications:
        each = (work.rate or (1 / work.think if work.think else 0.0)) * work.clients
        size = work.mean_size + ceil(work.mean_size / scenario.segment) * 2 * HEADER
        if each < inf:
            for host in [host for name in work.hosts for host in topology.hosts_of(name)]:
                messages, octets = offered.get(host, (0.0, 0.0))
                offered[host] = messages + each, octets + each * size
    host, (messages, octets) = max(offered.items(), key=lambda item: item[1][1], default=("", (0.0, 0.0)))
    return host, messages, octets


def load_above_rate(scenario: Scenario) -> Iterator[Finding]:
    """Judge publications: applications publish more than the protocol sends."""
    rate = rate_of(scenario)
    host, _, octets = published_by(scenario)
    if octets <= rate:
        return
    implies = f"{host} publishes {format_rate(round(octets))}: messages wait, and the publisher is blocked again and again"
    faster = format_rate(rounded_up(1.5 * octets * 8) / 8)
    changes = {"protocol.rate": faster}
    yield Finding("load-above-rate", PROBLEM, "protocol.rate", format_rate(rate), implies, f"send at {faster}", changes)


NETWORK_RULES: Any = (_rate_below_duration, _rate_above_link, _segment_above_mtu, _ttl_below_path)
