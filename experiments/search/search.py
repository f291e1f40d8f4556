"""Search for a fault schedule that violates an invariant, and shrink it to a minimal counterexample.

Schedules are plain entries of a scenario file, drawn from a random stream keyed by (seed, run number); a counterexample is
therefore a scenario file.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.running.run import run
from experiments.scenario.scenario import Scenario, parse
from protocols.errors import LivelockError
from protocols.rng import Rng, key_of
from topologies.spec import Topology

__all__ = ["BrokenRule", "Counterexample", "check_run", "random_plan", "search", "shrink"]

Plan = list[dict[str, Any]]
MOST_FAULTS = 4
RAISED = (LivelockError, AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of a faulty machine; UsageError, a mistake of the user, is none of them."""


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
    try:
        result = run(scenario)
    except RAISED as error:
        return BrokenRule("raises", f"{type(error).__name__}: {error}", None)
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
    progress: Callable[[int], None] = lambda number: None,
) -> Counterexample | None:
    """Run the scenario with `runs` random schedules added to its faults, each with its own seed.

    Returns the first counterexample, shrunk, or None.
    """
    base = parse(data, origin)
    topology, fixed = base.build_topology(), list(data.get("faults", ()))
    span = _span(base)
    for number in range(1, runs + 1):
        progress(number)
        plan = random_plan(Rng(key_of(seed, "search", number)), topology, span) if number > 1 else []
        drawn = {**data, "seed": (base.seed + number - 1) % 2**64}

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


# -- plans ----------------------------------------------------------------------------------------------------------------


def random_plan(rng: Rng, topology: Topology, span: float) -> Plan:
    """Draw one to four faults within `span` seconds; durations are distributed log-uniformly."""
    return [_random_fault(rng, topology, span) for _ in range(1 + _below(rng, MOST_FAULTS))]


def _random_fault(rng: Rng, topology: Topology, span: float) -> dict[str, Any]:
    verb = list(_DRAW)[_below(rng, len(_DRAW))]
    fault: dict[str, Any] = {"at": round(rng.uniform() * span, 6)}
    fault |= _DRAW[verb](rng, topology)
    if verb != "step":
        longest = 0.02 if verb == "storm" else 0.5
        fault["for"] = round(span * longest * 10 ** (-3 * rng.uniform()), 9)
    return fault


def _below(rng: Rng, count: int) -> int:
    return int(rng.uniform() * count)


def _host(rng: Rng, topology: Topology) -> str:
    return topology.hosts[_below(rng, len(topology.hosts))]


def _some(rng: Rng, topology: Topology) -> list[str]:
    """Draw one to three distinct hosts, never all."""
    most = min(3, len(topology.hosts) - 1)
    return list(dict.fromkeys(_host(rng, topology) for _ in range(1 + _below(rng, most))))


def _divided(verb: str, rng: Rng, topology: Topology) -> dict[str, Any]:
    return {verb: [_some(rng, topology), "rest"], "oneway": rng.uniform() < 0.5}


def _flap(rng: Rng, topology: Topology) -> dict[str, Any]:
    ends = list(topology.graph.edges)[_below(rng, topology.graph.number_of_edges())]
    pair = [topology.member_name(end, _below(rng, topology.size(end))) if end in topology.host_nodes else end for end in ends]
    return {"flap": pair, "times": 1 + _below(rng, 3)}


def _pick(rng: Rng, values: list[Any]) -> Any:
    return values[_below(rng, len(values))]


_DRAW: dict[str, Callable[[Rng, Topology], dict[str, Any]]] = {
    "partition": lambda rng, topology: _divided("partition", rng, topology),
    "hold": lambda rng, topology: _divided("hold", rng, topology),
    "flap": _flap,
    "crash": lambda rng, topology: {"crash": _host(rng, topology)},
    "slow": lambda rng, topology: {
        "slow": _host(rng, topology),
        "takes": _pick(rng, ["100us", "1ms", "10ms"]),
        "room": _pick(rng, [1, 8, 64]),
    },
    "drift": lambda rng, topology: {"drift": _host(rng, topology), "factor": _pick(rng, [0.5, 0.99, 1.01, 2.0])},
    "step": lambda rng, topology: {"step": _host(rng, topology), "forward": _pick(rng, ["10ms", "1s", "100s"])},
    "storm": lambda rng, topology: {"storm": _host(rng, topology), "rate": _pick(rng, ["1Mbit", "10Mbit", "100Mbit"])},
}


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
