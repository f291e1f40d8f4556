"""Examine a scenario by all rules, and state what its parameters mean in seconds."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from experiments.doctor.arq_rules import ARQ_RULES
from experiments.doctor.feedback_rules import FEEDBACK_RULES
from experiments.doctor.finding import PROBLEM, Finding
from experiments.doctor.network_rules import NETWORK_RULES, feedback_of_none, load_above_rate, loss_of_all, sending_time
from experiments.doctor.norm_rules import NORM_RULES, NormTiming, cache_below_load, stream_buffer
from experiments.doctor.session_facts import SessionFacts, lost_publications, sessions_of
from experiments.scenario.scenario import Scenario
from protocols.arq.config import AConfig
from protocols.errors import UsageError
from protocols.norm.config import NormConfig

__all__ = ["FORMAT", "Examination", "Implied", "examine"]

FORMAT = "mcastlab doctor 1"


@dataclass(frozen=True, slots=True)
class Implied:
    """What the parameters of one sender mean, times in seconds; None where the protocol has no such time.

    `repair` is the time from a loss to its repair at the most, `kept` how long an object is kept after it was sent.
    """

    sender: str
    receivers: int
    bytes: int
    round_trip: float
    loss: float
    sending: float
    repair: float | None
    kept: float | None


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of the rules for a scenario."""

    scenario: str
    digest: str
    implied: tuple[Implied, ...]
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether no content is expected to be late or lost."""
        return not any(finding.severity == PROBLEM for finding in self.findings)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "format": FORMAT,
            "scenario": self.scenario,
            "digest": self.digest,
            "implied": [asdict(row) for row in self.implied],
            "findings": [finding.plain() for finding in self.findings],
        }


def examine(scenario: Scenario, stream: int | None = None) -> Examination:
    """Apply all rules to a scenario, and those of streams to one with a buffer of `stream` bytes.

    UsageError for a stream of a protocol that has none.
    """
    sessions = sessions_of(scenario)
    found: dict[tuple[str, str], Finding] = {}
    for finding in _findings(scenario, sessions, stream):
        # Senders of one scenario share its parameters.
        found.setdefault((finding.rule, finding.key), finding)
    implied = tuple(_implied(scenario, facts) for facts in sessions)
    findings = sorted(found.values(), key=lambda finding: finding.severity != PROBLEM)
    return Examination(scenario.name, scenario.digest(), implied, tuple(findings))


def _findings(scenario: Scenario, sessions: list[SessionFacts], stream: int | None) -> Iterator[Finding]:
    config = scenario.protocol.config
    if stream is not None and not isinstance(config, NormConfig):
        raise UsageError(f"--stream-buffer: protocol {scenario.protocol.name} has no streams; norm has")
    yield from loss_of_all(scenario, lost_publications(scenario))
    yield from load_above_rate(scenario)
    if isinstance(config, NormConfig):
        yield from cache_below_load(scenario, config)
    for facts in sessions:
        if facts.lost.nodes:
            # Other rules would advise parameters for receivers that none of them helps.
            yield from loss_of_all(scenario, facts.lost)
            continue
        if silent := list(feedback_of_none(scenario, facts)):
            yield from silent
            continue
        for rule in NETWORK_RULES:
            yield from rule(scenario, facts)
        for kind, rules in ((NormConfig, (*NORM_RULES, *FEEDBACK_RULES)), (AConfig, ARQ_RULES)):
            if isinstance(config, kind):
                for rule in rules:
                    yield from rule(scenario, facts, config)
        if stream is not None:
            yield from stream_buffer(config, facts, stream)


def _implied(scenario: Scenario, facts: SessionFacts) -> Implied:
    config, sending = scenario.protocol.config, sending_time(scenario, facts)
    timing = NormTiming(config, facts) if isinstance(config, NormConfig) else None
    return Implied(
        sender=facts.sender,
        receivers=facts.receivers,
        bytes=facts.octets,
        round_trip=facts.rtt,
        loss=facts.loss,
        sending=sending,
        repair=None if timing is None else timing.repair,
        kept=None if timing is None else timing.rest,
    )
