"""Rules of NORM: what its timing, group size, parity, cache and repetitions imply for a network and a workload."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log
from typing import Any

from experiments.doctor.finding import COST, PROBLEM, Finding
from experiments.doctor.network_rules import is_adaptive, published_by, quoted, rounded_up, sending_time
from experiments.doctor.session_facts import SessionFacts
from experiments.output.counted import counted
from experiments.scenario.scenario import Scenario
from experiments.theory.multicast import block_failure, first_nack, integrated, nacks, repetition
from protocols.fec import MOST_SYMBOLS
from protocols.norm.config import NormConfig
from protocols.norm.grtt import RTT_FLOOR
from topologies.units import format_duration, format_rate, format_size

__all__ = ["NORM_RULES", "UNSEEN", "NormTiming", "cache_below_load", "norm_finding", "stream_buffer"]

_FAR, _MANY = 10, 10_000
"""Factors that are reported: of the initial GRTT to the round-trip time, and of the estimated group size to the true one."""
UNSEEN = 1e-3
"""Probability that a receiver misses every announcement of the end, above which it is reported."""


@dataclass(frozen=True, slots=True)
class NormTiming:
    """Times of NORM in seconds: the longer of the initial GRTT and the round trip, and what follows from it."""

    config: NormConfig
    facts: SessionFacts

    @property
    def grtt(self) -> float:
        """The GRTT at which a session begins, or the one it comes to if that is longer."""
        return max(self.config.grtt, min(self.facts.rtt, self.config.grtt_max), RTT_FLOOR)

    @property
    def repair(self) -> float:
        """From a loss to its repair: the back-off, the time in which the sender aggregates NACKs, and a round trip."""
        factor = self.config.backoff
        return (2 * factor + 1 if factor else float(self.config.parity > 0)) * self.grtt + self.facts.rtt

    @property
    def heard(self) -> float:
        """From a NACK until other receivers receive it, or the sender's CMD(REPAIR_ADV) with its content, in GRTT."""
        return min((self.facts.rtt if self.config.feedback == "unicast" else self.facts.apart) / self.grtt, 1.0)

    @property
    def rest(self) -> float:
        """For how long an object, or a part of a stream, is kept after it was sent or requested."""
        return self.config.flow * (self.config.backoff + 1) * self.grtt


def _floor_above_link(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    if not is_adaptive(scenario) or config.rate_min <= facts.rate:
        return
    implies = (
        f"link {facts.narrowest} carries {format_rate(round(facts.rate))}, and congestion control can't go below this rate: "
        "the queue stays full"
    )
    lower = format_rate(int(facts.rate / 20 * 8 / 1000) * 1000 / 8)
    yield norm_finding("floor-above-link", COST, "rate_min", format_rate(config.rate_min), implies, {"rate_min": lower})


def _grtt_above_path(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    round_trip, timing = max(facts.rtt, RTT_FLOOR), NormTiming(config, facts)
    sending = sending_time(scenario, facts)
    if not facts.is_lossy or config.grtt <= _FAR * round_trip or timing.repair <= sending / 5:
        return
    better = format_duration(max(rounded_up(2 * facts.rtt * 1000) / 1000, 0.005))
    lasts = "for ever, since nothing probes" if config.probing == "none" else "until probes have lowered it"
    implies = (
        f"the round trip is {quoted(facts.rtt)}; {lasts}, a repair takes up to {quoted(timing.repair)}, and sending "
        f"everything takes {quoted(sending)}"
    )
    yield norm_finding("grtt-above-path", COST, "grtt", format_duration(config.grtt), implies, {"grtt": better})


def _grtt_below_path(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    is_bounded = config.grtt_max < facts.rtt
    hold_off = (config.backoff + 2) * min(max(config.grtt, RTT_FLOOR), config.grtt_max)
    if not (facts.is_lossy and (is_bounded or (2 * config.grtt < facts.rtt and hold_off < facts.rtt))):
        return
    key, value = ("grtt_max", config.grtt_max) if is_bounded else ("grtt", config.grtt)
    lasts = "always" if is_bounded or config.probing == "none" else "at the beginning"
    implies = (
        f"the round trip is {quoted(facts.rtt)}: {lasts}, receivers request again before the repair can have come, and do not "
        "hear each other in time"
    )
    changes = {"grtt": format_duration(rounded_up(1.2 * facts.rtt * 1000) / 1000)}
    if is_bounded:
        changes["grtt_max"] = format_duration(max(10.0, rounded_up(4 * facts.rtt)))
    yield norm_finding("grtt-below-path", COST, key, format_duration(value), implies, changes)


def _group_below_members(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    losers = facts.losers
    if not facts.is_lossy or not config.backoff or config.gsize * 2 > facts.receivers:
        return
    heard = NormTiming(config, facts).heard
    expected = nacks(config.gsize, config.backoff, heard, losers)
    better = nacks(facts.receivers, config.backoff, heard, losers)
    if expected < 1.5 * better or expected < 3:
        return
    implies = f"{losers} receivers that miss the same packet send {expected:.3g} NACKs for it, {better:.3g} with their number"
    yield norm_finding("group-below-members", COST, "gsize", str(config.gsize), implies, {"gsize": str(facts.receivers)})


def _group_above_members(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    if not facts.is_lossy or not config.backoff or config.gsize < _MANY * facts.receivers or facts.receivers == 0:
        return
    losers, grtt = facts.losers, NormTiming(config, facts).grtt
    now, then = (first_nack(size, config.backoff, losers, 2000) * grtt for size in (config.gsize, max(facts.receivers, 1)))
    implies = (
        f"the first NACK for a loss comes after {quoted(now)} on average, {quoted(then)} with the number there are, "
        f"{facts.receivers}"
    )
    yield norm_finding("group-above-members", COST, "gsize", str(config.gsize), implies, {"gsize": str(facts.receivers)})


def _backoff_none(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    losers = facts.losers
    if config.backoff or not facts.is_lossy or losers < _FAR:
        return
    implies = f"nothing suppresses NACKs: each of {losers} receivers that miss the same packet requests it"
    yield norm_finding("backoff-none", COST, "backoff", "0", implies, {"backoff": "4"})


def _robust_below_loss(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    unseen = facts.receivers * facts.loss ** (config.robust + 1)
    if facts.loss >= 1 or unseen < UNSEEN:
        return
    needed = ceil(log(UNSEEN / 100 / facts.receivers) / log(facts.loss)) if facts.loss else 1
    implies = (
        f"at {facts.loss:.3g} loss some receiver misses the last packet and every FLUSH behind it with probability "
        f"{min(unseen, 1.0):.2g}, and never requests it"
    )
    yield norm_finding("robust-below-loss", PROBLEM, "robust", str(config.robust), implies, {"robust": str(min(needed, 1000))})


def _kept(config: NormConfig, size: int) -> int:
    """Return how many objects of this size the sender keeps."""
    return min(config.cache_max, max(config.cache_min, config.cache_size // max(size, 1)))


def _cache_stalls(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    timing = NormTiming(config, facts)
    for work in facts.works:
        kept = _kept(config, work.size)
        each = sending_time(scenario, facts) / max(facts.octets, 1) * work.size
        if work.count <= kept or kept * each >= timing.rest:
            continue
        needed = min(ceil(1.2 * timing.rest / max(each, 1e-9)) + 1, work.count, 32_767)
        achieved = kept * work.size / timing.rest
        implies = (
            f"the sender keeps {counted(kept, 'object')} at a time, each for {quoted(timing.rest)} after it was sent: "
            f"{format_rate(int(achieved * 8 / 1000) * 1000 / 8)} at the most, of {format_rate(config.rate)}"
        )
        changes = {"cache_max": str(max(needed, config.cache_max)), "cache_min": str(max(needed, config.cache_min))}
        key = "cache_max" if kept == config.cache_max else "cache_size"
        value = str(config.cache_max) if key == "cache_max" else format_size(config.cache_size)
        yield norm_finding("cache-stalls", COST, key, value, implies, changes)
        return


def _flow_below_repair(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    timing = NormTiming(config, facts)
    request = config.backoff * timing.grtt + facts.rtt
    for work in facts.works:
        each = sending_time(scenario, facts) / max(facts.octets, 1) * work.size
        kept = _kept(config, work.size)
        if not facts.is_lossy or work.count <= kept or timing.rest + kept * each >= request:
            continue
        implies = (
            f"an object is dropped {quoted(timing.rest + kept * each)} after it was sent, and a NACK for it may come "
            f"{quoted(request)} after it: receivers lose the object for good"
        )
        yield norm_finding("flow-below-repair", PROBLEM, "flow", f"{config.flow:g}", implies, {"flow": "2"})
        return


def _window_below_repair(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    timing = NormTiming(config, facts)
    for work in facts.works:
        each = sending_time(scenario, facts) / max(facts.octets, 1) * work.size
        # The sender keeps no more than this, so a receiver can't be further behind.
        begun = min(timing.repair / max(each, 1e-9), work.count, _kept(config, work.size) + timing.rest / max(each, 1e-9))
        if not facts.is_lossy or begun <= config.window:
            continue
        needed = min(ceil(1.5 * begun), 16_384)
        implies = (
            f"{begun:.0f} objects begin while one is repaired ({quoted(timing.repair)}), and a receiver that waits for more "
            f"than {config.window} aborts the oldest"
        )
        yield norm_finding("window-below-repair", PROBLEM, "window", str(config.window), implies, {"window": str(needed)})
        return


def _parity_below_loss(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    if not config.parity or not facts.loss:
        return
    most = MOST_SYMBOLS[config.fec_m] - config.block

    def fails(parity: int) -> float:
        return min(1.0, facts.receivers * block_failure(config.block, config.block + parity, facts.loss))

    if config.block > MOST_SYMBOLS[8] or fails(config.parity) < 0.5 or config.parity >= most:
        return
    needed = next((parity for parity in range(config.parity, most + 1) if fails(parity) < 0.01), most)
    implies = (
        f"at {facts.loss:.3g} loss, {fails(config.parity):.0%} of the blocks have a receiver that misses more than "
        f"{config.parity} of {config.block}: what is missing is then repeated symbol by symbol"
    )
    yield norm_finding("parity-below-loss", COST, "parity", str(config.parity), implies, {"parity": str(needed)})


def _parity_none(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    loss = facts.own_loss
    if config.parity or not 0 < loss < 1 or facts.receivers < 2:
        return
    repeated = repetition(facts.receivers, loss)
    block = min(config.block, 64)
    coded = integrated(facts.receivers, loss, block)
    if repeated < 1.1 * coded:
        return
    implies = (
        f"{facts.receivers} receivers lose different packets, and each is repeated for all: {repeated:.3g} transmissions per "
        f"packet, {coded:.3g} with parity"
    )
    changes = {"parity": "16", "block": str(block)} | ({"fec": "5"} if config.fec == 0 else {})
    yield norm_finding("parity-none", COST, "parity", "0", implies, changes)


def cache_below_load(scenario: Scenario, config: NormConfig) -> Iterator[Finding]:
    """Judge publications: each message is an object, which the sender keeps for a while before it can drop it."""
    host, messages, octets = published_by(scenario)
    if not messages:
        return
    kept, rest = _kept(config, round(octets / messages)), config.flow * (config.backoff + 1) * config.grtt
    total = sum((work.count or messages * scenario.duration) * work.clients for work in scenario.publications)
    if messages * rest <= kept or total <= kept:
        return
    needed = min(ceil(1.2 * messages * rest), 32_767)
    implies = (
        f"{host} keeps {counted(kept, 'message')} at a time, each for {quoted(rest)}: {kept / rest:.3g} per second get "
        f"through, and {messages:.3g} are published"
    )
    changes = {"cache_max": str(needed), "cache_min": str(max(config.cache_min, needed))}
    yield norm_finding("cache-below-load", PROBLEM, "cache_max", str(config.cache_max), implies, changes)


def _nacking_none(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    if config.nacking == "normal" or config.feedback == "none" or not facts.is_lossy:
        return
    block = min(config.block, -(-facts.works[0].size // scenario.segment) or 1)
    fails = block_failure(block, block + config.auto_parity, facts.loss)
    if facts.receivers * fails < UNSEEN and not facts.has_outages:
        return
    implies = (
        f"receivers request nothing of the content, and at {facts.loss:.3g} loss one misses more than "
        f"{counted(config.auto_parity, 'symbol')}, the parity that comes with a block, in {fails:.2g} of its blocks: it never "
        "has the object"
    )
    yield norm_finding("nacking-none", PROBLEM, "nacking", config.nacking, implies, {"nacking": "normal"})


def stream_buffer(config: NormConfig, facts: SessionFacts, octets: int) -> Iterator[Finding]:
    """Judge the buffer, in bytes, of a stream from this sender: what was sent stays in it for `NormTiming.rest`."""
    rest = NormTiming(config, facts).rest
    needed = config.rate * rest
    if octets >= needed:
        return
    grtts = config.flow * (config.backoff + 1)
    implies = (
        f"what was sent is kept for {grtts:g} GRTT ({quoted(rest)}): the stream waits for room and gets "
        f"{format_rate(int(octets / rest * 8 / 1000) * 1000 / 8)} of {format_rate(config.rate)}"
    )
    better = format_size(int(rounded_up(1.2 * needed)))
    advice = f"a buffer of {better}: the rate times {grtts:g} GRTT"
    changes = {"--stream-buffer": better}
    yield Finding("stream-buffer", COST, "--stream-buffer", format_size(octets), implies, advice, changes)


def norm_finding(rule: str, severity: str, key: str, value: str, implies: str, settings: dict[str, str]) -> Finding:
    """Return a finding on a parameter of NORM; its advice is to set these parameters."""
    advice = ", ".join(f"{name}: {text}" for name, text in settings.items())
    changes = {f"protocol.{name}": text for name, text in settings.items()}
    return Finding(rule, severity, f"protocol.{key}", value, implies, advice, changes)


NORM_RULES: Any = (
    _floor_above_link,
    _grtt_above_path,
    _grtt_below_path,
    _group_below_members,
    _group_above_members,
    _backoff_none,
    _robust_below_loss,
    _cache_stalls,
    _flow_below_repair,
    _window_below_repair,
    _parity_below_loss,
    _parity_none,
    _nacking_none,
)
