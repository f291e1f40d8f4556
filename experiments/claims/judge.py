"""Run the scenarios of claims, and judge what was measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any, Literal

from experiments.claims.claim import FOLDER, Check, Claim, ClaimFile, World
from experiments.claims.expressions import Formula
from experiments.claims.probes import PROBES
from experiments.running.run import run
from experiments.scenario.cases import case_of
from experiments.scenario.scenario import Scenario, read
from experiments.validation.families import select, validate
from experiments.validation.references import mean_of, read_references
from experiments.zoo.observation import observe
from protocols.errors import UsageError

__all__ = ["Finding", "Judgement", "Verdict", "judge"]

Verdict = Literal["holds", "fails", "caveat"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A check, the mean of what was measured in all runs with its standard error, and whether it is as wanted."""

    what: str
    wanted: str
    measured: float
    error: float
    good: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a claim in one world. `scenario` is a file, `command` repeats the measurement.

    Without findings it was not judged, and `reason` says why; otherwise `reason` is that of a caveat or of a failure.
    """

    id: str
    claim: str
    criterion: str
    verdict: Verdict
    backend: World
    scenario: str
    command: str
    findings: tuple[Finding, ...]
    reason: str

    @property
    def wanted(self) -> str:
        """Criterion of the main check."""
        return f"{self.findings[0].what}: {self.findings[0].wanted}" if self.findings else self.criterion

    @property
    def measured(self) -> float | None:
        """Value measured by the main check."""
        return self.findings[0].measured if self.findings else None

    @property
    def error(self) -> float | None:
        """The standard error of `measured`; 0 if it is deterministic."""
        return self.findings[0].error if self.findings else None


def judge(claims: ClaimFile, wanted: Sequence[str], world: World, jobs: int = 1) -> Iterator[Judgement]:
    """Yield the judgement on each wanted claim, in order; `jobs` claims are measured at the same time, in processes."""
    one = partial(_judge, claims, world)
    if min(jobs, len(wanted)) < 2:
        yield from map(one, wanted)
        return
    with Pool(min(jobs, len(wanted)), signal, (SIGINT, SIG_IGN)) as pool:
        yield from pool.imap(one, wanted)


def _judge(claims: ClaimFile, world: World, name: str) -> Judgement:
    claim = claims.claims[name]
    path = FOLDER / claims.seed / f"{claim.scenario_on(world)}.yaml"
    shown = path.relative_to(FOLDER.parents[1]).as_posix()
    command = f"mcastlab claims {claims.seed} --only {name}" + ("" if world == "sim" else f" --on {world}")
    make = partial(Judgement, name, claim.claim, claim.criterion, backend=world, scenario=shown, command=command)
    why_not = "" if world in claim.worlds else f"not judged in this world: {claim.why_not}"
    if why_not and world not in claim.shown:
        return make(verdict="caveat", findings=(), reason=why_not)
    findings = _measure(claim, path, world)
    if why_not:
        return make(verdict="caveat", findings=findings, reason=why_not)
    checks = claim.checks_on(world)
    if not all(found.good for found in findings):
        return make(verdict="fails", findings=findings, reason=claim.reason)
    close = [check.what for check, found in zip(checks, findings, strict=True) if check.is_close(found.measured, found.error)]
    doubt = f"{close[0]}: the limit is within two standard errors" if close else ""
    reason = claim.caveat_on(world) or doubt
    return make(verdict="caveat" if reason else "holds", findings=findings, reason=reason)


def _measure(claim: Claim, path: Path, world: World) -> tuple[Finding, ...]:
    """Measure all checks in all runs."""
    fixed: dict[str, Any] = {}
    if world == "sim":
        fixed = {"agree": {family: _agreeing(family) for family in claim.families}}
        fixed |= {probe: dict(PROBES[probe]()) for probe in claim.probes}
    checks = claim.checks_on(world)
    samples: list[list[float]] = [[] for _ in checks]
    first = case_of(read(path), "", path).seed
    for seed in range(first, first + claim.runs):
        names = {**fixed, **_results(claim, path, seed, world)}
        for values, check in zip(samples, checks, strict=True):
            values.append(Formula(check.measure).value(names))
    return tuple(_finding(check, values) for check, values in zip(checks, samples, strict=True))


def _finding(check: Check, values: list[float]) -> Finding:
    mean = mean_of(values)
    return Finding(check.what, check.wanted, mean.value, mean.error, check.allows(mean.value, mean.error))


def _agreeing(family: str) -> float:
    """Return the share of the reference values of a family that agree with what is measured."""
    checks = [check for found in validate(select(read_references(), [family])) for check in found]
    return sum(check.good for check in checks) / len(checks)


def _results(claim: Claim, path: Path, seed: int, world: World) -> Mapping[str, Any]:
    """Run all cases; return their results by name, in which `_` stands for `-`; one that is alone is called `run`."""
    data = read(path, seed=seed)
    names = data.get("compare") or [""]
    return {name.replace("-", "_") or "run": _result(partial(case_of, data, name, path), claim, world) for name in names}


def _result(load: Callable[[], Scenario], claim: Claim, world: World) -> dict[str, Any]:
    """Return the result of a run as plain values, with `refused` (the scenario, or what it does, is an error) and `broken`."""
    try:
        scenario = load()
        if claim.rules and world == "sim":
            seen = observe(scenario)
            told = {} if seen.result is None else seen.result.plain()
            return {**told, "refused": 0, "broken": sum(broken.times for broken in seen.breaks)}
        result = run(scenario, world)
    except UsageError:
        return {"refused": 1}
    untold = (result.metrics.get("messages") or {}).get("untold", 0)
    return {**result.plain(), "refused": 0, "broken": len(result.violations) + untold}
