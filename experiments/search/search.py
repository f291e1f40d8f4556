"""Search for a fault schedule that violates an invariant, and shrink it to a minimal counterexample.

Schedules are plain entries of a scenario file, drawn from a random stream keyed by (seed, run number); a counterexample is
therefore a scenario file.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.running.run import run
from experiments.scenario.protocol_faults import with_place
from experiments.scenario.scenario import SEEDS, Scenario, parse
from experiments.search.plans import Plan, random_plan, targets_of
from experiments.zoo.observation import RAISED, observe
from protocols.rng import Rng, key_of

__all__ = ["BrokenRule", "Counterexample", "check_run", "search", "shrink"]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """The violated rule with details, and the fingerprint of the run (None if it did not end)."""

    rule: str
    what: str
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A scenario (plain values, as in a file) that violates a rule; its `faults` are the smallest schedule found."""

    scenario: dict[str, Any]
    verdict: BrokenRule
    number: int
    """Number of the run that found it, from 1."""
    tried: int
    """Runs needed for shrinking."""


def check_run(scenario: Scenario, complete: bool = False) -> BrokenRule | None:
    """Return the first rule the run violates, or None.

    With `complete`, every receiver must be complete in a run without crashes.
    """
    if scenario.protocol.spec.repairs is not None:
        # Rules about requests need the strict engine.
        seen = observe(scenario)
        result = seen.result
        if seen.breaks:
            return BrokenRule(seen.breaks[0].rule, seen.breaks[0].what, None if result is None else result.fingerprint)
        assert result is not None
    else:
        try:
            result = run(scenario)
        except RAISED as error:
            return BrokenRule("raises", with_place(error), None)
        if result.violations:
            first = result.violations[0]
            return BrokenRule(
                first["rule"], f"{first['what']} ({first['host'] or 'network'} at {first['at']:.6g} s)", result.fingerprint
            )
    if complete and not result.completed and not any(fault.crash for fault in scenario.faults):
        lacking = [row.name for row in result.receivers if not row.equal]
        return BrokenRule("complete", f"incomplete at {', '.join(lacking[:5])}", result.fingerprint)
    return None


def search(
    data: dict[str, Any],
    origin: str,
    *,
    runs: int,
    seed: int,
    complete: bool = False,
) -> Counterexample | None:
    """Run the scenario with `runs` random schedules added to its faults, each with its own seed.

    Returns the first counterexample, shrunk, or None.
    """
    base = parse(data, origin)
    topology, fixed = base.build_topology(), list(data.get("faults", ()))
    targets, span = targets_of(base, topology), _span(base)
    for number in range(1, runs + 1):
        plan = random_plan(Rng(key_of(seed, "search", number)), topology, span, targets) if number > 1 else []
        drawn = {**data, "seed": (base.seed + number - 1) % SEEDS}

        def check(plan: Plan, drawn: dict[str, Any] = drawn) -> BrokenRule | None:
            return check_run(parse({**drawn, "faults": fixed + plan}, origin), complete)

        verdict = check(plan)
        if verdict is not None:
            small, verdict, tried = shrink(plan, verdict, check)
            return Counterexample({**drawn, "faults": fixed + small}, verdict, number, tried)
    return None


def _span(base: Scenario) -> float:
    """Return the duration in seconds of a run without added faults."""
    try:
        return float(run(base).metrics["duration"])
    except RAISED:
        return base.duration


# -- shrinking ------------------------------------------------------------------------------------------------------------


def shrink(plan: Plan, verdict: BrokenRule, check: Callable[[Plan], BrokenRule | None]) -> tuple[Plan, BrokenRule, int]:
    """Shrink a schedule while it violates the same rule; return (schedule, violation, runs needed)."""
    tried = 0
    again = True
    while again:
        again = False
        for candidate in _simpler(plan):
            tried += 1
            found = check(candidate)
            if found is not None and found.rule == verdict.rule:
                plan, verdict, again = candidate, found, True
                break
    return plan, verdict, tried


def _simpler(plan: Plan) -> Iterator[Plan]:
    """Yield schedules one step simpler, largest reductions first."""
    for place in range(len(plan)):
        yield plan[:place] + plan[place + 1 :]
    for place, fault in enumerate(plan):
        for simpler in _simpler_faults(fault):
            yield [*plan[:place], simpler, *plan[place + 1 :]]


def _simpler_faults(fault: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if fault.get("times", 1) > 1:
        yield {**fault, "times": fault["times"] - 1}
    if fault.get("oneway") is False:
        # A one-way fault is simpler than a two-way one.
        yield {**fault, "oneway": True}
    for verb in ("partition", "hold"):
        if verb in fault and len(fault[verb][0]) > 1:
            first, *others = fault[verb]
            # Half of a large site first.
            for part in (first[: len(first) // 2], first[len(first) // 2 :]) if len(first) > 3 else ():
                yield {**fault, verb: [part, *others]}
            for name in first:
                yield {**fault, verb: [[other for other in first if other != name], *others]}
    for key in ("for", "at"):
        for shorter in _rounder(fault.get(key)):
            yield {**fault, key: shorter}


def _rounder(value: float | None) -> Iterator[float]:
    """Yield half the value while it is above 1 ms, then the value with one digit."""
    if value is None or value == 0:
        return
    if value > 1e-3:
        yield round(value / 2, 9)
    short = float(f"{value:.1g}")
    if short != value:
        yield short
