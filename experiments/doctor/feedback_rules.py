"""Rules of NORM receivers that are silent, and of those whose NACKs go to the sender alone."""

from bisect import bisect_left
from collections.abc import Iterator
from math import ceil
from typing import Any

from experiments.doctor.finding import COST, PROBLEM, Finding
from experiments.doctor.network_rules import quoted
from experiments.doctor.norm_rules import UNSEEN, NormTiming, norm_finding
from experiments.doctor.session_facts import SessionFacts
from experiments.output.counted import counted
from experiments.scenario.scenario import Scenario
from experiments.theory.multicast import block_failure, nacks
from protocols.fec import MOST_SYMBOLS
from protocols.norm.config import NormConfig

__all__ = ["FEEDBACK_RULES"]

_MUCH, _FEW = 1.5, 3.0
"""NACKs per loss are reported from this factor above the best setting on, if there are at least so many."""


def _silent_below_loss(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    if config.feedback != "none" or not facts.is_lossy:
        return
    segments = [max(1, -(-work.size // scenario.segment)) for work in facts.works]
    block = min(config.block, max(segments))
    blocks = sum(work.count * ceil(size / block) for work, size in zip(facts.works, segments, strict=True))

    def lost(parity: int) -> float:
        """Return how many blocks are lost to a receiver, on average."""
        return facts.receivers * blocks * block_failure(block, block + parity, facts.loss)

    if lost(config.auto_parity) < UNSEEN and not facts.has_outages:
        return
    most = 0 if config.fec == 0 else MOST_SYMBOLS[config.fec_m] - config.block
    needed = bisect_left(range(most + 1), True, lo=config.auto_parity, key=lambda parity: lost(parity) < UNSEEN)
    total = facts.receivers * blocks
    implies = (
        f"receivers request nothing, and at {facts.loss:.3g} loss {min(lost(config.auto_parity), total):.2g} of "
        f"{counted(total, 'block')} miss more than {counted(config.auto_parity, 'symbol')}, the parity that comes with each"
    )
    if needed > most or facts.has_outages:
        settings = {"feedback": "multicast"}
    else:
        settings = {"auto_parity": str(needed), "parity": str(max(needed, config.parity))}
    yield norm_finding("silent-below-loss", PROBLEM, "auto_parity", str(config.auto_parity), implies, settings)


def _unicast_feedback(scenario: Scenario, facts: SessionFacts, config: NormConfig) -> Iterator[Finding]:
    del scenario
    timing, losers = NormTiming(config, facts), facts.losers
    if config.feedback != "unicast" or not config.backoff or not facts.is_lossy or losers < 2:
        return
    expected = nacks(config.gsize, config.backoff, timing.heard, losers)
    better = nacks(config.gsize, config.backoff, min(facts.apart / timing.grtt, 1.0), losers)
    if expected < _FEW or expected < _MUCH * better:
        return
    implies = (
        f"others are told of a NACK by the sender, {quoted(facts.rtt)} after it was sent; {losers} receivers that miss the "
        f"same packet send {expected:.3g} NACKs for it, {better:.3g} where they hear each other"
    )
    settings = {"feedback": "multicast"}
    yield norm_finding("unicast-feedback", COST, "feedback", "unicast", implies, settings)


FEEDBACK_RULES: Any = (_silent_below_loss, _unicast_feedback)
