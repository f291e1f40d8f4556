"""Rules of the ARQ protocols A, N1 and N2, and of SRM: repetition, feedback of a group, and timers against delay."""

from collections.abc import Iterator
from typing import Any

from experiments.doctor.finding import COST, Finding
from experiments.doctor.network_rules import quoted, rounded_up
from experiments.doctor.session_facts import SessionFacts
from experiments.scenario.scenario import Scenario
from protocols.arq.config import AConfig, N1Config, N2Config
from protocols.srm.config import SrmConfig
from topologies.units import format_duration

__all__ = ["ARQ_RULES"]

_GROUP = 20
"""Receivers from which on feedback that each of them sends is reported."""


def _timeout_below_path(scenario: Scenario, facts: SessionFacts, config: AConfig) -> Iterator[Finding]:
    wait = config.gather if isinstance(config, N1Config) else 0.0
    needed = facts.rtt + wait + (config.window if isinstance(config, N2Config) else 0.0)
    # SRM's requests wait for multiples of the distance.
    if config.timeout >= needed or isinstance(config, SrmConfig) or (not facts.is_lossy and isinstance(config, N1Config)):
        return
    what = "every packet is" if not isinstance(config, N1Config) else "requests are"
    answer = "an acknowledgement" if not isinstance(config, N1Config) else "a repair"
    implies = f"{what} repeated before {answer} can have come, which takes {quoted(needed)}"
    better = format_duration(rounded_up(1.5 * needed * 1000) / 1000)
    changes = {"protocol.timeout": better}
    value = format_duration(config.timeout)
    yield Finding("timeout-below-path", COST, "protocol.timeout", value, implies, f"timeout: {better}", changes)


def _feedback_of_all(scenario: Scenario, facts: SessionFacts, config: AConfig) -> Iterator[Finding]:
    name = scenario.protocol.name
    if isinstance(config, N2Config | SrmConfig) or facts.receivers < _GROUP:
        return
    if isinstance(config, N1Config):
        if not facts.is_lossy or facts.losers < _GROUP:
            return
        implies = f"each of {facts.losers} receivers that miss the same packet requests it from the sender"
    else:
        implies = f"each of {facts.receivers} receivers acknowledges every packet"
    changes = {"protocol.name": "n2"}
    advice = "n2, whose receivers send NACKs and suppress those of others"
    yield Finding("feedback-of-all", COST, "protocol.name", name, implies, advice, changes)


def _window_below_path(scenario: Scenario, facts: SessionFacts, config: AConfig) -> Iterator[Finding]:
    del scenario
    losers = facts.losers
    if not isinstance(config, N2Config) or not facts.is_lossy or losers < 2 or config.window >= losers / 4 * facts.apart:
        return
    sent = 1 + (losers - 1) * (min(1.0, facts.apart / config.window) if config.window else 1.0)
    implies = (
        f"a NACK reaches other receivers after {quoted(facts.apart)}: {sent:.0f} of {losers} receivers that miss the "
        "same packet have sent theirs by then"
    )
    better = format_duration(rounded_up(losers * facts.apart * 1000) / 1000)
    changes = {
        "protocol.window": better,
        "protocol.timeout": format_duration(max(config.timeout, _after(config, facts, losers))),
    }
    value = format_duration(config.window)
    yield Finding("window-below-path", COST, "protocol.window", value, implies, f"window: {better}", changes)


def _after(config: N2Config, facts: SessionFacts, losers: int) -> float:
    """Return a timeout behind the longer back-off, in seconds."""
    return rounded_up((losers * facts.apart + facts.rtt + config.gather) * 1500) / 1000


def _distance_below_path(scenario: Scenario, facts: SessionFacts, config: AConfig) -> Iterator[Finding]:
    del scenario
    if not isinstance(config, SrmConfig) or not facts.is_lossy or 4 * config.distance >= facts.rtt:
        return
    implies = (
        f"the longest one-way delay is {quoted(facts.rtt / 2)}: until session messages have measured it, requests and repairs "
        "of members do not suppress each other"
    )
    better = format_duration(rounded_up(facts.rtt * 500) / 1000)
    changes = {"protocol.distance": better}
    value = format_duration(config.distance)
    yield Finding("distance-below-path", COST, "protocol.distance", value, implies, f"distance: {better}", changes)


ARQ_RULES: Any = (_timeout_below_path, _feedback_of_all, _window_below_path, _distance_below_path)
